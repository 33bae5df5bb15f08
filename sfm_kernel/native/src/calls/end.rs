//! Reasons why a call ends early.

use std::fmt;

use crate::core::{Core, Trouble};

/// The core's reasons; a host turns them into its errors.
#[derive(Debug)]
pub enum End {
    /// The endpoint was closed.
    Closed,
    /// An observer has found that nothing can end it: JSON that names the deadlock's members, and
    /// the cause.
    Deadlock(String),
    /// A sender's bytes made no sense.
    Damaged(String),
    /// This process lacks the resources to open a new sender's ring.
    Unopened(std::io::Error),
    /// The peer takes nothing more from this process: its bytes made no sense to it.
    MessagesLost,
    /// The peer has no memory for a message of this many bytes.
    TooLarge(usize),
    /// This thread was already sending to that peer when something interrupted it.
    Reentered,
    /// There is no memory for a copy of the message.
    NoMemory,
}

impl End {
    /// An error if a call on this core makes no sense any more, or a sender's trouble is to be
    /// reported.
    pub fn check(core: &Core) -> Result<(), End> {
        if core.is_closed() {
            return Err(End::Closed);
        }
        match core.trouble() {
            None => Ok(()),
            Some(Trouble::Damaged(why)) => Err(End::Damaged(why)),
            Some(Trouble::Unopened(error)) => Err(End::Unopened(error)),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Closed => write!(to, "this endpoint is closed: join the world again"),
            End::Deadlock(_) => write!(to, "nothing can end this call: it is part of a deadlock"),
            End::Damaged(why) => {
                let rest = "What it had sent is lost; what it sends next arrives";
                write!(to, "{why}. {rest}")
            }
            End::Unopened(error) => write!(
                to,
                "a new sender's ring cannot be opened now ({error}). Nothing is lost: close files, \
                 or raise the limit (ulimit -n), and receive again"
            ),
            End::MessagesLost => write!(to, "the peer takes nothing more that comes from here"),
            End::TooLarge(nbytes) => {
                write!(to, "the peer has no memory for a message of {nbytes} bytes")
            }
            End::Reentered => write!(
                to,
                "this thread was sending to that peer already when a signal handler (or a finalizer) came \
                 in between, which cannot send to it now. Let it set a flag or an event instead"
            ),
            End::NoMemory => write!(to, "no memory for a copy of the message"),
        }
    }
}

impl std::error::Error for End {}
