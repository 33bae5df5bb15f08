//! A host that is a plain program: no interpreter, no lock to release.

use super::{End, Host, Peer};

/// A program in C, or in another compiled language. The handlers of its signals have run when a
/// signal wakes a call, and the call goes on; `interrupted()` may end it all the same.
#[derive(Default)]
pub struct Bare {
    pub interrupted: Option<fn() -> bool>,
    /// Which other threads of the program could go on; see `Host::bystanders`.
    pub bystanders: Option<fn() -> String>,
}

impl Host for Bare {
    type Error = End;

    fn signals(&self) -> Result<(), End> {
        match self.interrupted {
            Some(interrupted) if interrupted() => Err(End::Interrupted),
            _ => Ok(()),
        }
    }

    fn release<T: Send>(&self, work: impl Send + FnOnce() -> T) -> T {
        work()
    }

    fn bystanders(&self) -> Result<Option<String>, End> {
        Ok(self.bystanders.map(|bystanders| bystanders()))
    }

    fn ended(&self, why: End) -> End {
        why
    }

    fn is_loss(&self, failure: &End) -> bool {
        matches!(failure, End::PeerLost(_))
    }
}

/// A peer of which only the name is known: it counts as alive.
impl Peer<Bare> for str {
    fn shown(&self) -> &str {
        self
    }

    fn check(&self, _host: &Bare) -> Result<(), End> {
        Ok(())
    }

    fn failed(&self, _host: &Bare, why: End) -> End {
        why
    }
}
