//! What observers see of a call that waits, and how they can end it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{End, Examined, Host, WaitFacts};
use crate::clock::now;
use crate::code_location::helping;
use crate::core::Core;
use crate::segment::UNSETTLED;

/// How often a blocked call looks up: for signals that another thread took, and for dead peers.
pub const TICK: Duration = Duration::from_millis(100);

/// While it lives, observers see the process as blocked; where it is a helper's, only through the
/// call that it works for (core/helpers.rs).
pub struct Blocked<'a> {
    core: &'a Core,
    call: u64,
    /// The number of the helper; 0 where the call is shown.
    helper: u64,
    /// What `examined` becomes once it has been looked for who else could go on.
    examined: Examined,
    looked: bool,
    /// What was last said of who else could go on.
    others: String,
}

impl<'a> Blocked<'a> {
    /// `limit`: when the wait ends by itself.
    pub fn enter(core: &'a Core, shown: &WaitFacts, limit: Option<Duration>) -> Blocked<'a> {
        let helper = helping();
        let call = if helper == 0 {
            core.settle(UNSETTLED, true);
            let until = limit.map_or(0, |limit| now().saturating_add(limit.as_nanos() as u64));
            core.shared().begin_call(shown.doing, &shown.text, &shown.facts, until)
        } else {
            core.settle_helper(helper, UNSETTLED);
            u64::MAX
        };
        let (looked, others) = (false, String::new());
        Blocked { core, call, helper, examined: Examined::Taken(UNSETTLED), looked, others }
    }

    /// What a tick does for observers: say who else could go on, and what is waited for.
    pub fn tell<H: Host>(&mut self, host: &H, facts: Option<&str>) -> Result<(), H::Error> {
        let shared = self.core.shared();
        if self.helper != 0 {
            if let Some(facts) = facts {
                self.core.tell_of_helper(self.helper, facts);
                self.looked = true;
            }
            self.settle(self.examined);
            return Ok(());
        }
        if let Some(facts) = facts {
            shared.facts.write(facts);
        }
        if let Some(others) = host.bystanders()? {
            self.looked = true;
            if others != self.others {
                shared.others.write(&others); // only then: observers notice each change
                self.others = others;
            }
        }
        self.settle(self.examined);
        Ok(())
    }

    /// What this call has told includes what its helpers had told before: `Core::told_by_helpers`.
    pub fn hear(&self, told: u64) {
        if self.helper == 0 {
            self.core.heard_helpers(Some(told));
        }
    }

    /// The call is about to sleep, and has looked at so much.
    pub fn settle(&mut self, examined: Examined) {
        self.examined = examined;
        let (looked_at, apart) = match examined {
            Examined::Arrived(count) => (count, false),
            Examined::Taken(count) => (count, true),
        };
        let looked_at = if self.looked { looked_at } else { UNSETTLED };
        if self.helper == 0 {
            self.core.settle(looked_at, apart);
        } else {
            self.core.settle_helper(self.helper, looked_at);
        }
    }

    /// An observer has found that nothing can end this call.
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
            self.core.heard_helpers(None);
            self.core.shared().end_call();
        } else {
            self.core.settle_helper(self.helper, UNSETTLED);
        }
    }
}
