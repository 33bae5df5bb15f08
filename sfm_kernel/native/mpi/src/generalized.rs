//! Generalized requests: operations of the program's own, which it ends itself.

use std::sync::atomic::{AtomicBool, Ordering};

use sfm_endpoint::callers::kept;

use crate::engine::{running, Outcome};
use crate::handles::*;

pub struct Generalized {
    query: MPI_Grequest_query_function,
    free: MPI_Grequest_free_function,
    cancel: MPI_Grequest_cancel_function,
    /// The program's, handed to all three; an address, so that it may cross threads.
    extra: usize,
    done: AtomicBool,
}

impl Generalized {
    pub fn new(
        query: MPI_Grequest_query_function,
        free: MPI_Grequest_free_function,
        cancel: MPI_Grequest_cancel_function,
        extra: *mut c_void,
    ) -> Generalized {
        let done = AtomicBool::new(false);
        Generalized { query, free, cancel, extra: extra as usize, done }
    }

    fn extra(&self) -> *mut c_void {
        self.extra as *mut c_void
    }

    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// The program has ended it, perhaps in another thread than the one that waits.
    pub fn end(&self) {
        self.done.store(true, Ordering::Release);
        if let Some(engine) = running() {
            engine.core.wake();
        }
    }

    /// What the program says of it.
    pub fn query(&self) -> Outcome {
        let mut outcome = Outcome::of_send();
        if let Some(query) = self.query {
            // SAFETY: the program gave this function for this use.
            outcome.code = unsafe { kept(|| query(self.extra(), &mut outcome.status)) };
        }
        outcome
    }

    pub fn free(&self) {
        if let Some(free) = self.free {
            // SAFETY: as in `query`.
            unsafe { kept(|| free(self.extra())) };
        }
    }

    pub fn cancel(&self) {
        if let Some(cancel) = self.cancel {
            // SAFETY: as in `query`.
            unsafe { kept(|| cancel(self.extra(), c_int::from(self.is_done()))) };
        }
    }
}
