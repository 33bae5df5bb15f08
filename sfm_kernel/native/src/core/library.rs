//! A library that receives here by posted receives, as MPI does.
//!
//! What arrives may cause work, such as an answer to the sender. A posted receive only notes it,
//! because it runs under the lock of the queue, and the library's calls do it. If a call that is none
//! of the library's takes the message in, the network thread does the work: the sender may wait for
//! it, and nobody may call the library for a long time.

use super::Core;

pub trait Library: Send + Sync {
    fn has_work(&self) -> bool;

    /// Do what is noted. Called by the network thread.
    fn work(&self);
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

    pub(super) fn work_for_library(&self) {
        if let Some(library) = self.library.get().filter(|library| library.has_work()) {
            library.work();
        }
    }
}
