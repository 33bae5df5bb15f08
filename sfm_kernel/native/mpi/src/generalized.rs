//! Generalized requests: operations that the program defines and ends itself.

use std::sync::atomic::{AtomicBool, Ordering};

use sfm_endpoint::callers::kept;

use crate::engine::{running, Outcome};
use crate::handles::*;

pub struct Generalized {
    query: MPI_Grequest_query_function,
    free: MPI_Grequest_free_function,
    cancel: MPI_Grequest_cancel_function,
    /// The program's extra state, passed to all three functions; an address, so that it may cross
    /// threads.
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

    /// The program has ended it, perhaps in another thread than the waiting one.
    pub fn end(&self) {
        self.done.store(true, Ordering::Release);
        if let Some(engine) = running() {
            engine.core.wake();
        }
    }

    /// The outcome according to the program.
    pub fn query(&self) -> Outcome {
        let mut outcome = Outcome::of_send();
        if let Some(query) = self.query {
            // SAFETY: the program gave this function for this use.
            outcome.code = unsafe { kept(|| query(self.extra(), &mut outcome.status)) };
        }
        outcome
    }

    /// Call the program's function that frees its state; returns its code.
    pub fn free(&self) -> c_int {
        // SAFETY: the program gave this function for this use, and the argument with it.
        self.free.map_or(MPI_SUCCESS, |free| unsafe { kept(|| free(self.extra())) })
    }

    /// Call the program's function that cancels; returns its code.
    pub fn cancel(&self) -> c_int {
        let done = c_int::from(self.is_done());
        // SAFETY: the program gave this function for this use, and the argument with it.
        self.cancel.map_or(MPI_SUCCESS, |cancel| unsafe { kept(|| cancel(self.extra(), done)) })
    }
}
