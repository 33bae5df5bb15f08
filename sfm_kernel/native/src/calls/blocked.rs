//! A waiting call as observers see it, and how they can end it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{End, Host, WaitFacts};
use crate::clock::now;
use crate::core::Core;
use crate::segment::UNSETTLED;

/// The interval at which a blocked call checks for signals that another thread took, and for dead
/// peers.
pub const TICK: Duration = Duration::from_millis(100);

/// While it lives, observers see the process as blocked.
pub struct Blocked<'a> {
    core: &'a Core,
    call: u64,
    /// Published as `examined` once the call has published what else could go on.
    examined: u64,
    published: bool,
    /// The last text about what else could go on.
    others: String,
}

impl<'a> Blocked<'a> {
    /// `limit`: the time after which the wait ends by itself.
    pub fn enter(core: &'a Core, shown: &WaitFacts, limit: Option<Duration>) -> Blocked<'a> {
        let until = limit.map_or(0, |limit| now().saturating_add(limit.as_nanos() as u64));
        let call = core.shared().begin_call(shown.activity, &shown.text, &shown.facts, until);
        Blocked { core, call, examined: UNSETTLED, published: false, others: String::new() }
    }

    /// Tell observers what else could go on, and what the call waits for. Called at each tick.
    pub fn publish<H: Host>(&mut self, host: &H, facts: Option<&str>) -> Result<(), H::Error> {
        let shared = self.core.shared();
        if let Some(facts) = facts {
            shared.facts.write(facts);
        }
        if let Some(others) = host.bystanders()? {
            self.published = true;
            if others != self.others {
                shared.others.write(&others); // only then: observers notice each change
                self.others = others;
            }
        }
        self.settle(self.examined);
        Ok(())
    }

    /// The call is about to sleep, and has examined this much.
    pub fn settle(&mut self, examined: u64) {
        self.examined = examined;
        let known = if self.published { examined } else { UNSETTLED };
        self.core.shared().examined.store(known, Ordering::Release);
    }

    /// Fail if an observer has found that nothing can end this call.
    pub fn judged(&self) -> Result<(), End> {
        let shared = self.core.shared();
        if shared.judged.load(Ordering::Acquire) != self.call {
            return Ok(());
        }
        Err(End::Deadlock(shared.judgement.read().unwrap_or_default()))
    }
}

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        self.core.shared().end_call();
    }
}
