//! What a send and a receive have in common: it ends once, and says how.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::handles::*;

/// How an operation ended.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub status: MPI_Status,
    /// MPI_SUCCESS, or what went wrong.
    pub code: c_int,
}

impl Outcome {
    pub fn of_send() -> Outcome {
        Outcome { status: MPI_Status::empty(), code: MPI_SUCCESS }
    }

    pub fn failed(code: c_int) -> Outcome {
        Outcome { code, ..Outcome::of_send() }
    }

    pub fn cancelled() -> Outcome {
        let mut outcome = Outcome::of_send();
        outcome.status.set_cancelled(true);
        outcome
    }
}

/// The end of an operation: written once, then read by whoever waits.
pub struct End {
    done: AtomicBool,
    outcome: UnsafeCell<Outcome>,
}

// SAFETY: `outcome` is written before `done` is set, by the one who ends it, and read after.
unsafe impl Sync for End {}

impl End {
    pub fn new() -> End {
        End { done: AtomicBool::new(false), outcome: UnsafeCell::new(Outcome::of_send()) }
    }

    /// Whoever ends it is the only one: the receive's message, its cancellation, the send's answer.
    pub fn set(&self, outcome: Outcome) {
        // SAFETY: nobody reads it before `done`, and nobody else ends it.
        unsafe { *self.outcome.get() = outcome };
        self.done.store(true, Ordering::Release);
    }

    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// How it ended; None before.
    pub fn get(&self) -> Option<Outcome> {
        // SAFETY: after `done` nobody writes it any more.
        self.is_done().then(|| unsafe { *self.outcome.get() })
    }
}
