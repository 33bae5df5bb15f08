//! The network thread: keeps rings from filling up while the program computes, answers observers,
//! gives back memory, and by its end tells others at once that the process has died.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sfm_native::core::Core;

use crate::directory::Member;
use crate::host::Ours;

/// How long it sleeps when nobody rings.
const PAUSE: Duration = Duration::from_millis(500);

/// Start it; it ends when the endpoint is closed.
pub fn serve(core: Arc<Core>, member: &Member) -> JoinHandle<()> {
    let work = move || {
        let _life = core.shared().life.hold();
        let mut wishes = 0;
        while core.serve(PAUSE, &mut wishes, &|| ()) {}
    };
    let name = format!("sfm-network-{}", member.name);
    spawn(&name, work)
}

/// A thread of the library's own, to which no signal comes: observers do not count what it does as
/// the program's. Of its name 15 bytes are seen.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let name: String = name.chars().take(15).collect();
    let _unsignalled = Unsignalled::new();
    let work = move || {
        let _ours = Ours::enter();
        work();
    };
    thread::Builder::new().name(name).spawn(work).expect("a thread")
}

/// While it lives, no signal comes to this thread, nor to those that it starts, ever: handlers are
/// the program's, and run in its threads.
struct Unsignalled(libc::sigset_t);

impl Unsignalled {
    fn new() -> Unsignalled {
        // SAFETY: sets of our own.
        unsafe {
            let (mut all, mut before) = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            Unsignalled(before)
        }
    }
}

impl Drop for Unsignalled {
    fn drop(&mut self) {
        // SAFETY: what this thread had before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}
