//! A waiting call as observers see it, and how they can end it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{End, Examined, Host, WaitFacts};
use crate::clock::now;
use crate::code_location::helping;
use crate::core::Core;
use crate::segment::UNSETTLED;

/// The interval at which a blocked call checks for signals that another thread took, and for dead
/// peers.
pub const TICK: Duration = Duration::from_millis(100);

/// While it lives, observers see the process as blocked; a helper's wait they see only through the
/// call that it works for (core/helpers.rs).
pub struct Blocked<'a> {
    core: &'a Core,
    call: u64,
    /// The number of the helper; 0 if the call itself is shown.
    helper: u64,
    /// Published as `examined` once the call has published what else could go on.
    examined: Examined,
    published: bool,
    /// The last text about what else could go on.
    others: String,
}

impl<'a> Blocked<'a> {
    /// `limit`: the time after which the wait ends by itself.
    pub fn enter(core: &'a Core, shown: &WaitFacts, limit: Option<Duration>) -> Blocked<'a> {
        let helper = helping();
        let call = if helper == 0 {
            core.settle(UNSETTLED, true);
            let until = limit.map_or(0, |limit| now().saturating_add(limit.as_nanos() as u64));
            core.shared().begin_call(shown.activity, &shown.text, &shown.facts, until)
        } else {
            core.settle_helper(helper, UNSETTLED);
            u64::MAX
        };
        let (published, others) = (false, String::new());
        Blocked { core, call, helper, examined: Examined::Taken(UNSETTLED), published, others }
    }

    /// Tell observers what else could go on, and what the call waits for. Called at each tick.
    pub fn publish<H: Host>(&mut self, host: &H, facts: Option<&str>) -> Result<(), H::Error> {
        let shared = self.core.shared();
        if self.helper != 0 {
            if let Some(facts) = facts {
                self.core.publish_helper(self.helper, facts);
                self.published = true;
            }
            self.settle(self.examined);
            return Ok(());
        }
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

    /// This call's facts include all that its helpers had published up to `version`:
    /// see `Core::helpers_version`.
    pub fn include_helpers(&self, version: u64) {
        if self.helper == 0 {
            self.core.include_helpers(Some(version));
        }
    }

    /// The call is about to sleep, and has examined this much.
    pub fn settle(&mut self, examined: Examined) {
        self.examined = examined;
        let (count, apart) = match examined {
            Examined::Arrived(count) => (count, false),
            Examined::Taken(count) => (count, true),
        };
        let count = if self.published { count } else { UNSETTLED };
        if self.helper == 0 {
            self.core.settle(count, apart);
        } else {
            self.core.settle_helper(self.helper, count);
        }
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
        if self.helper == 0 {
            self.core.settle(UNSETTLED, true);
            self.core.include_helpers(None);
            self.core.shared().end_call();
        } else {
            self.core.settle_helper(self.helper, UNSETTLED);
        }
    }
}
