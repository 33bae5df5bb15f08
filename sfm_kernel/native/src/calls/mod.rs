//! Calls that wait: one loop for all of them, with a limit, seen and ended by observers,
//! interruptible, and with a check of the peers that must be alive.
//!
//! A blocking call knows the program around it through `Host` alone. Python is one host
//! (`python/src/host/python.rs`); a program in C, whose library has no Python in it, is another
//! (`endpoint/src/host.rs`). A call waits for a `Goal`: a message (`receive`), room for one on its
//! `Channel` (`ring`, `credit`, `link`), or another goal of the host's.

mod blocked;
mod channel;
mod credit;
mod end;
mod link;
mod receive;
mod ring;
mod waiting;

pub use blocked::{Blocked, TICK};
pub use channel::Channel;
pub use end::End;
pub use receive::{Matcher, Search, Watch};
pub use waiting::{deadline, wait, Deadline};

use std::time::Duration;

use crate::bell::Woken;
use crate::segment::Activity;

/// The program that a call belongs to.
pub trait Host {
    /// The error that ends a call early.
    type Error;

    /// A signal came while the call waited, or may have come to another thread: an error ends it.
    fn signals(&self) -> Result<(), Self::Error>;

    /// Do `work` without holding what other threads may need meanwhile, such as Python's GIL.
    fn release<T: Send>(&self, work: impl Send + FnOnce() -> T) -> T;

    /// Which other parts of the program could go on while this thread waits: JSON for observers,
    /// empty if none could (`sfm_kernel/endpoint/bystanders.py`). None if that cannot be known.
    fn bystanders(&self) -> Result<Option<String>, Self::Error>;

    /// Note where in the program the call comes from (`code_location`), if the call has not done so
    /// when it began: before it blocks, or when its message is on its way.
    fn locate(&self) {}

    /// The host's error for the core's reason to end a call.
    fn ended(&self, why: End) -> Self::Error;

    /// Whether `failure` says that a peer is lost.
    fn is_loss(&self, failure: &Self::Error) -> bool;
}

/// A peer, as its host knows it.
pub trait Peer<H: Host> {
    /// Its name, as observers are shown it.
    fn shown(&self) -> &str;

    /// An error if nothing can arrive there any more.
    fn check(&self, host: &H) -> Result<(), H::Error>;

    /// The host's error for a message that was not sent: `End::MessagesLost`, `TooLarge`,
    /// `Reentered`.
    fn failed(&self, host: &H, why: End) -> H::Error;
}

/// The facts that a call publishes when it is first seen to wait.
pub struct WaitFacts {
    pub activity: Activity,
    /// The goal of the wait, in one line; and as JSON, if that is known yet.
    pub text: String,
    pub facts: String,
}

/// The goal of a waiting call.
pub trait Goal<H: Host> {
    type Out;

    /// Whether it is reached. `all`: a sender may have died between writing and ringing.
    fn poll(&mut self, host: &H, all: bool) -> Result<Option<Self::Out>, H::Error>;

    /// Wait for a moment, unseen, until a poll may succeed; false if that did not pay off.
    fn spin(&mut self, host: &H) -> bool;

    /// Sleep until a poll may succeed. The host's lock is released here.
    fn sleep(&mut self, host: &H, limit: Duration) -> Woken;

    /// The extent of what the latest poll has examined, for observers: see `Shared::examined`.
    fn examined(&self) -> u64;

    /// The facts to publish when the wait is first shown. None: it is never shown.
    fn facts(&mut self, host: &H) -> Result<Option<WaitFacts>, H::Error>;

    /// Called about every 100 ms: further facts for observers, as JSON. An error ends the wait.
    fn tick(&mut self, host: &H) -> Result<Option<String>, H::Error>;

    /// Messages that a lost peer has sent before may still reach the goal.
    fn outlives_peers(&self) -> bool {
        false
    }

    /// Whether the loss that a tick has reported still prevents the goal, now that everything which
    /// the lost peer had sent has been looked at.
    fn still_needs_lost(&mut self) -> bool {
        true
    }

    /// It was reached, and then it was seen that an observer has judged the call: perhaps before what
    /// has reached it. None if a later poll will have the same outcome.
    fn undo(&mut self, out: Self::Out) -> Option<Self::Out> {
        Some(out)
    }
}
