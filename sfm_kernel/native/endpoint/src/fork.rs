//! Forked children: they have their parent's memory, but are not in the parent's worlds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, Weak};

use sfm_native::core::Core;

/// The open endpoints' cores, under a lock that can be held over a fork: only the holder of a guard
/// can release a mutex of the standard library.
struct Open {
    busy: AtomicBool,
    cores: std::cell::UnsafeCell<Vec<Weak<Core>>>,
}

// SAFETY: the thread that has set `busy` has the list alone.
unsafe impl Sync for Open {}

static OPEN: Open =
    Open { busy: AtomicBool::new(false), cores: std::cell::UnsafeCell::new(Vec::new()) };

impl Open {
    fn lock(&self) {
        // SYNC POINT fork: held for a few instructions, or over a fork.
        while self.busy.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn unlock(&self) {
        self.busy.store(false, Ordering::Release);
    }
}

/// Close this core's endpoint in forked children, so that it does not look alive for its parent.
pub fn watch(core: Weak<Core>) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: functions that live as long as the library, which is never unloaded: see c/build.rs.
        unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
    });
    OPEN.lock();
    // SAFETY: under the lock.
    let cores = unsafe { &mut *OPEN.cores.get() };
    cores.retain(|core| core.strong_count() > 0);
    cores.push(core);
    OPEN.unlock();
}

extern "C" fn before() {
    OPEN.lock();
}

extern "C" fn parent() {
    OPEN.unlock();
}

extern "C" fn child() {
    // SAFETY: this thread has had the lock since before the fork.
    for core in unsafe { &*OPEN.cores.get() } {
        if let Some(core) = core.upgrade() {
            core.abandon();
            // Another thread of the parent may have been about to drop the last reference, which
            // must not happen here: it would wait for threads that are not in this process.
            std::mem::forget(core);
        }
    }
    OPEN.unlock();
}
