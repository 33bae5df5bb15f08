//! Calls that wait, whoever makes them: one loop, with a limit, seen by observers and ended by them,
//! interruptible, and with a look at whoever has to live.
//!
//! What blocks knows the program around it through `Host` alone. Python is one
//! (`python/src/host/python.rs`); a program in C, whose library has no Python in it, is another. What is
//! waited for is a `Goal`: a message (`receive`), room for one on its `Channel` (`ring`, `credit`,
//! `link`), or what a host waits for besides.

mod bare;
mod blocked;
mod channel;
mod credit;
mod end;
mod link;
mod receive;
mod ring;
mod waiting;

pub use bare::Bare;
pub use blocked::{Blocked, TICK};
pub use channel::Channel;
pub use end::End;
pub use receive::{Matcher, Receive, Search, Watch};
pub use waiting::{deadline, wait, Deadline};

use std::time::Duration;

use crate::bell::Woken;
use crate::segment::Doing;

/// The program that a call belongs to.
pub trait Host {
    /// What ends a call early.
    type Error;

    /// A signal came while the call waited, or may have come to another thread: an error ends it.
    fn signals(&self) -> Result<(), Self::Error>;

    /// Do `work` without what others of the program may need meanwhile, such as Python's GIL.
    fn release<T: Send>(&self, work: impl Send + FnOnce() -> T) -> T;

    /// What of the program could go on while this thread waits: JSON for observers, empty where
    /// nothing could (`sfm_kernel/endpoint/bystanders.py`). None where that cannot be known.
    fn bystanders(&self) -> Result<Option<String>, Self::Error>;

    /// Our own reasons to end a call, as the host's.
    fn ended(&self, why: End) -> Self::Error;

    /// Whether `failure` says that a peer is lost.
    fn is_loss(&self, failure: &Self::Error) -> bool;
}

/// A peer, as its host knows it.
pub trait Peer<H: Host> {
    /// Its name, as observers are shown it.
    fn shown(&self) -> &str;

    /// An error where nothing can arrive there any more.
    fn check(&self, host: &H) -> Result<(), H::Error>;

    /// Why a message to it was not sent, as the host's error: `End::MessagesLost`, `TooLarge`,
    /// `Reentered`.
    fn failed(&self, host: &H, why: End) -> H::Error;
}

/// What a wait has looked at, for observers: see `Shared::examined`.
#[derive(Clone, Copy, Debug)]
pub enum Examined {
    /// So much that has arrived here.
    Arrived(u64),
    /// So much that a peer has taken.
    Taken(u64),
}

/// What observers are told of a call at once.
pub struct WaitFacts {
    pub doing: Doing,
    /// What it waits for, in a line; and as JSON, where that is known yet.
    pub text: String,
    pub facts: String,
}

/// What is waited for.
pub trait Goal<H: Host> {
    type Out;

    /// Whether it is reached. `all`: somebody may have died between writing and ringing.
    fn poll(&mut self, host: &H, all: bool) -> Result<Option<Self::Out>, H::Error>;

    /// Wait for a moment, of which nobody is told, until a look may give more; false where that did
    /// not pay off.
    fn spin(&mut self, host: &H) -> bool;

    /// Sleep until a look may give more. What the host is to be released of is released here.
    fn sleep(&mut self, host: &H, limit: Duration) -> Woken;

    /// What the latest look has looked at.
    fn examined(&self) -> Examined;

    /// The wait begins to be seen. None: it is not to be seen at all.
    fn facts(&mut self, host: &H) -> Result<Option<WaitFacts>, H::Error>;

    /// Called about every 100 ms: what observers are to know besides, as JSON. An error ends the wait.
    fn tick(&mut self, host: &H) -> Result<Option<String>, H::Error>;

    /// What a lost peer has sent before may still be what is waited for.
    fn outlives_peers(&self) -> bool {
        false
    }

    /// What `tick` tells includes what helpers have told (core/helpers.rs).
    fn hears_helpers(&self) -> bool {
        false
    }

    /// It was reached because somebody else has given up: perhaps this call was to, too.
    fn was_broken(&self) -> bool {
        false
    }
}
