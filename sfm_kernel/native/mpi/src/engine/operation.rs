//! What a send and a receive have in common: it ends once, and says how.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::errors::{fail, Failure};
use crate::handles::*;

/// How an operation ended.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub status: MPI_Status,
    /// MPI_SUCCESS, or what went wrong.
    pub code: c_int,
}

impl Outcome {
    /// The error, should it have failed.
    pub fn failure(&self) -> Failure {
        let fits = "do all give counts and datatypes that fit?";
        let text = match self.code {
            MPI_ERR_TRUNCATE if self.status.MPI_SOURCE == MPI_ANY_SOURCE => {
                format!("another process sends more than is expected here: {fits}")
            }
            MPI_ERR_COUNT => format!("another process sends less than is expected here: {fits}"),
            MPI_ERR_TRUNCATE => format!(
                "a message from rank {} with tag {} is longer than the {} bytes that the receive has \
                 room for; give it a larger count",
                self.status.MPI_SOURCE,
                self.status.MPI_TAG,
                self.status.bytes()
            ),
            MPI_ERR_PROC_ABORTED => "the process on the other side has ended".into(),
            MPI_ERR_BUFFER => {
                "the sender has freed the message's memory before it was received; it has \
                               to keep its request, and to wait for that"
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
