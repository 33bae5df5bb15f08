//! The network thread: keeps rings from filling up while the program computes, answers observers,
//! gives back memory, and by its end shows others at once that the process has died.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sfm_native::core::Core;
use sfm_native::signals::Unsignalled;

use crate::directory::Member;
use crate::host::{InternalThread, Surroundings};

/// Time that it sleeps when nobody rings.
const PAUSE: Duration = Duration::from_millis(500);

/// Start it; it ends when the endpoint is closed.
pub fn serve(
    core: Arc<Core>,
    surroundings: Arc<dyn Surroundings>,
    member: &Member,
) -> JoinHandle<()> {
    let work = move || {
        let _life = core.shared().life.hold();
        let mut requests = 0;
        while core.serve(PAUSE, &mut requests, &|| surroundings.examine(&core)) {}
    };
    helper(&format!("sfm-network-{}", member.name), work).expect("a thread")
}

/// A thread of the library's own, which does nothing for the program.
pub fn helper<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let name: String = name.chars().take(15).collect(); // the kernel keeps no more of it
    let _unsignalled = Unsignalled::enter();
    thread::Builder::new().name(name).spawn(|| {
        let _internal = InternalThread::enter();
        work()
    })
}
