//! What observers see of a call that waits, and how they can end it.

use std::time::{Duration, Instant};

use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::errors;
use crate::clock::now;
use crate::core::Core;
use crate::segment::{Doing, UNSETTLED};

/// How often a blocked call looks up: for signals that another thread took, and for dead peers.
pub const TICK: Duration = Duration::from_millis(100);

/// Called when a call has waited for a while: the names of threads that could go on meanwhile.
static BYSTANDERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Have `function()` tell which other threads of this process could go on while one is blocked: a
/// text, empty where there are none. Only the first has an effect.
#[pyfunction]
#[pyo3(signature = (function, /))]
pub fn set_bystanders(py: Python<'_>, function: Py<PyAny>) {
    let _ = BYSTANDERS.set(py, function);
}

/// While it lives, observers see the process as blocked.
pub struct Blocked<'a> {
    core: &'a Core,
    ticked: Instant,
    call: u64,
    /// What `examined` becomes once it is known who else could go on.
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
        let until = limit.map_or(0, |limit| now().saturating_add(limit.as_nanos() as u64));
        let call = core.shared().begin_call(doing, text, facts, until);
        Blocked {
            core,
            ticked: Instant::now(),
            call,
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
        if let Some(facts) = facts {
            shared.facts.write(facts);
        }
        if let Some(function) = BYSTANDERS.get(py) {
            let others: String = function.bind(py).call0()?.extract()?;
            self.looked = others.is_empty();
            if others != self.others {
                shared.others.write(&others); // only then: observers notice each change
                self.others = others;
            }
        }
        self.settle(self.examined);
        Ok(())
    }

    /// The call is about to sleep, and has looked at so much.
    pub fn settle(&mut self, examined: u64) {
        self.examined = examined;
        let examined = if self.looked { examined } else { UNSETTLED };
        self.core.shared().examined.store(examined, Ordering::Release);
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
        self.core.shared().end_call();
    }
}
