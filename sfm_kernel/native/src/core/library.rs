//! A library that receives here by posted receives, as MPI does.
//!
//! What arrives may cause work, such as an answer to the sender. A posted receive only notes it,
//! because it runs under the lock of the queue, and the library's calls do it. If a call that is none
//! of the library's takes the message in, the network thread does the work: the sender may wait for
//! it, and nobody may call the library for a long time. For the same reason it sends what a full
//! ring has held back when the library's last call returned.

use std::time::Duration;

use super::Core;

/// The time between two attempts of the network thread to send what is held back.
const RETRY: Duration = Duration::from_millis(2);

/// All of it but `has_work` is called by the network thread.
pub trait Library: Send + Sync {
    fn has_work(&self) -> bool;

    /// Do what is noted.
    fn work(&self);

    /// Send what is held back, as far as there is room, if the library has asked for it
    /// (`send_later`); whether more is left.
    fn send_held_back(&self) -> bool;
}

impl Core {
    /// Only the first call has an effect.
    pub fn set_library(&self, library: &'static dyn Library) {
        let _ = self.library.set(library);
    }

    pub(super) fn library_has_work(&self) -> bool {
        self.library.get().is_some_and(|library| library.has_work())
    }

    /// After messages were taken in: leave the work that they have caused to the network thread.
    pub(super) fn pass_work_on(&self) {
        if self.library_has_work() {
            self.shared().network.0.ring();
        }
    }

    /// Have the network thread send what the library holds back.
    pub fn send_later(&self) {
        self.shared().network.0.ring();
    }

    /// Do the library's work; returns for how long the network thread may then sleep, at most for
    /// `limit`.
    pub(super) fn work_for_library(&self, limit: Duration) -> Duration {
        let Some(library) = self.library.get() else { return limit };
        if library.has_work() {
            library.work();
        }
        match library.send_held_back() {
            true => limit.min(RETRY),
            false => limit,
        }
    }
}
