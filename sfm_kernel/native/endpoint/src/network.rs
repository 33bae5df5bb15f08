//! The network thread: keeps rings from filling up while the program computes, answers observers,
//! gives back memory, and by its end shows others at once that the process has died.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sfm_native::core::Core;

use crate::directory::Member;
use crate::host::InternalThread;

/// Time that it sleeps when nobody rings.
const PAUSE: Duration = Duration::from_millis(500);

/// Start it; it ends when the endpoint is closed.
pub fn serve(core: Arc<Core>, member: &Member) -> JoinHandle<()> {
    let work = move || {
        let _life = core.shared().life.hold();
        let mut requests = 0;
        while core.serve(PAUSE, &mut requests, &|| ()) {}
    };
    helper(&format!("sfm-network-{}", member.name), work).expect("a thread")
}

/// A thread of the library's own, which does nothing for the program.
pub fn helper<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let name: String = name.chars().take(15).collect(); // the kernel keeps no more of it
    let _unsignalled = Unsignalled::new();
    thread::Builder::new().name(name).spawn(|| {
        let _internal = InternalThread::enter();
        work()
    })
}

/// While it lives, this thread gets no signals, nor do the threads that it starts, ever: handlers
/// are the program's, and run in its threads.
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
        // SAFETY: the mask that this thread had before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}
