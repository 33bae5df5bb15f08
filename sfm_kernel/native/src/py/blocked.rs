//! What observers see of a call that waits, and how they can end it.

use std::time::{Duration, Instant};

use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::errors;
use crate::clock::now;
use crate::core::Core;
use crate::places::helping;
use crate::segment::{Doing, UNSETTLED};

/// How often a blocked call looks up: for signals that another thread took, and for dead peers.
pub const TICK: Duration = Duration::from_millis(100);

/// Called when a call has waited for a while: what of the program could go on meanwhile.
static BYSTANDERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Have `function()` tell what of this process could go on while this thread is blocked: a text for
/// observers, empty where there is nothing. Only the first has an effect.
#[pyfunction]
#[pyo3(signature = (function, /))]
pub fn set_bystanders(py: Python<'_>, function: Py<PyAny>) {
    let _ = BYSTANDERS.set(py, function);
}

/// While it lives, observers see the process as blocked; where it is a helper's, only through the
/// call that it works for (core/helpers.rs).
pub struct Blocked<'a> {
    core: &'a Core,
    ticked: Instant,
    call: u64,
    /// What it has looked at is no number of arrivals.
    apart: bool,
    /// The number of the helper; 0 where the call is shown.
    helper: u64,
    /// What `examined` becomes once it has been looked for who else could go on.
    examined: u64,
    looked: bool,
    /// What was last said of who else could go on.
    others: String,
}

impl<'a> Blocked<'a> {
    /// `text`: what it waits for, in a line; `facts`: the same as JSON, where it is known yet;
    /// `limit`: when the wait ends by itself.
    pub fn enter(
        core: &'a Core,
        doing: Doing,
        text: &str,
        facts: &str,
        limit: Option<Duration>,
    ) -> Blocked<'a> {
        let helper = helping();
        let call = if helper == 0 {
            core.settle(UNSETTLED, true);
            let until = limit.map_or(0, |limit| now().saturating_add(limit.as_nanos() as u64));
            core.shared().begin_call(doing, text, facts, until)
        } else {
            core.settle_helper(helper, UNSETTLED);
            u64::MAX
        };
        Blocked {
            core,
            ticked: Instant::now(),
            call,
            apart: false,
            helper,
            examined: UNSETTLED,
            looked: false,
            others: String::new(),
        }
    }

    /// True about every 100 ms (sooner where the whole wait is shorter), however often it is woken.
    pub fn ticks(&mut self, limit: Duration) -> bool {
        let due = self.ticked.elapsed() >= limit.min(TICK);
        if due {
            self.ticked = Instant::now();
        }
        due
    }

    /// What a tick does for observers: say who else could go on, and what is waited for.
    pub fn tell(&mut self, py: Python<'_>, facts: Option<&str>) -> PyResult<()> {
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
        if let Some(function) = BYSTANDERS.get(py) {
            let others: String = function.bind(py).call0()?.extract()?;
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
    pub fn settle(&mut self, examined: u64) {
        self.examined = examined;
        let examined = if self.looked { examined } else { UNSETTLED };
        if self.helper == 0 {
            self.core.settle(examined, self.apart);
        } else {
            self.core.settle_helper(self.helper, examined);
        }
    }

    /// The same of a send, which has looked at what the other side has taken.
    pub fn settle_send(&mut self, taken: u64) {
        self.apart = true;
        self.settle(taken);
    }

    /// An observer has found that nothing can end this call: DeadlockDetected.
    pub fn judged(&self, py: Python<'_>) -> PyResult<()> {
        let shared = self.core.shared();
        if shared.judged.load(Ordering::Acquire) != self.call {
            return Ok(());
        }
        let why = shared.judgement.read().unwrap_or_default();
        Err(errors::deadlock(py, &why))
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
