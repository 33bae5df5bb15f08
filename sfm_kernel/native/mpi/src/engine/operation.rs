//! The common half of sends and receives: each ends once, with an outcome.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::errors::{fail, Failure};
use crate::handles::*;

/// The result of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub status: MPI_Status,
    /// MPI_SUCCESS, or the error.
    pub code: c_int,
}

impl Outcome {
    /// The error of a failed operation.
    pub fn failure(&self) -> Failure {
        let fits = "do all processes give matching counts and datatypes?";
        let text = match self.code {
            MPI_ERR_TRUNCATE => {
                format!("another process sends more bytes than are expected here: {fits}")
            }
            MPI_ERR_COUNT => {
                format!("another process sends fewer bytes than are expected here: {fits}")
            }
            MPI_ERR_PROC_ABORTED => "the process on the other side has ended".into(),
            MPI_ERR_BUFFER => {
                "the sender has freed the message's memory before it was received; it has to \
                keep the request, and wait for it"
                    .into()
            }
            code => format!("the operation failed with error {code}"),
        };
        fail(self.code, text)
    }

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

/// The end of an operation: written once, then read by any thread that waits.
pub struct End {
    done: AtomicBool,
    outcome: UnsafeCell<Outcome>,
}

// SAFETY: one thread ends the operation; it writes `outcome` before it sets `done`, and the others
// read it after that.
unsafe impl Sync for End {}

impl End {
    pub fn new() -> End {
        End { done: AtomicBool::new(false), outcome: UnsafeCell::new(Outcome::of_send()) }
    }

    /// End the operation. Only one caller ever does: the receive's message, its cancellation, or
    /// the send's answer.
    pub fn set(&self, outcome: Outcome) {
        // SAFETY: no thread reads it before `done`, and only this one ends the operation.
        unsafe { *self.outcome.get() = outcome };
        self.done.store(true, Ordering::Release);
    }

    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// The outcome; None before the end.
    pub fn get(&self) -> Option<Outcome> {
        // SAFETY: after `done` it is never written again.
        self.is_done().then(|| unsafe { *self.outcome.get() })
    }
}
