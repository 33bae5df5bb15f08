//! Forked children: they have their parent's memory, but are not in the parent's worlds.

use std::sync::{Once, Weak};

use sfm_native::core::Core;
use sfm_native::fork_list::ForkList;

/// The open endpoints' cores.
static OPEN: ForkList<Core> = ForkList::new();

/// Close this core's endpoint in forked children, so that it does not look alive for its parent.
pub fn watch(core: Weak<Core>) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: functions that live as long as the library, which is never unloaded: see c/build.rs.
        unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
    });
    OPEN.add(core);
}

extern "C" fn before() {
    OPEN.lock();
}

extern "C" fn parent() {
    OPEN.unlock();
}

extern "C" fn child() {
    OPEN.empty(|core| {
        core.abandon();
        // Another thread of the parent may have been about to drop the last reference, which must
        // not happen here: it would wait for threads that are not in this process.
        std::mem::forget(core);
    });
}
