//! Finding the first match in an inbox, and waiting for it.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::blocked::{Blocked, TICK};
use super::detached::without_gil;
use super::errors::{self, closed, packet_error};
use super::template::Template;
use crate::bell::Woken;
use crate::core::{is_answer, Core, Found, Trouble};
use crate::matching::Taken;
use crate::segment::Doing;
use crate::summary::Wanted;

/// How long callbacks may take to decide whether what a dead peer had sent is for them.
const PATIENCE: Duration = Duration::from_secs(10);

/// A search that remembers what it has seen.
pub struct Search<'a, 'py> {
    core: &'a Core,
    context: u64,
    template: Template<'a, 'py>,
    cursor: u64,
    /// Where the message number `cursor` stood.
    near: Option<u32>,
    rewinds: u64,
    version: u64,
    /// What had arrived when nothing was found.
    examined: u64,
}

/// What `Search::wait` gave.
pub enum Waited {
    Taken(Taken),
    TimedOut,
}

impl<'a, 'py> Search<'a, 'py> {
    pub fn new(core: &'a Core, context: u64, template: Template<'a, 'py>) -> Search<'a, 'py> {
        let rewinds = core.rewinds();
        Search { core, context, template, cursor: 0, near: None, rewinds, version: 0, examined: 0 }
    }

    /// Take the first match, if it is there.
    pub fn take(&mut self, py: Python<'py>) -> PyResult<Option<Taken>> {
        open(py, self.core)?;
        Ok(self.next(py, true, false)?.map(|taken| taken.expect("taken")))
    }

    /// Whether there is a match.
    pub fn peek(&mut self, py: Python<'py>) -> PyResult<bool> {
        open(py, self.core)?;
        Ok(self.next(py, false, false)?.is_some())
    }

    /// Take the first match, waiting for it for at most `timeout`. Before the first sleep
    /// `waiter()` gives a text for observers and a function that is called about every 100 ms, and
    /// may return what observers are to know besides (as JSON); what either raises ends the wait.
    pub fn wait(
        &mut self,
        py: Python<'py>,
        timeout: Option<Duration>,
        waiter: impl FnOnce() -> PyResult<(String, Bound<'py, PyAny>)>,
    ) -> PyResult<Waited> {
        let core = self.core;
        if let Some(taken) = self.take(py)? {
            return Ok(Waited::Taken(taken));
        }
        // Too far away to be counted: no deadline.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let left = || deadline.map(|at| at.saturating_duration_since(Instant::now()));
        // With the GIL, but so shortly that giving it back and taking it would cost more. Not for
        // ever: where other messages stream in, nobody here looks for signals and for the dead.
        for _ in 0..100 {
            if left() == Some(Duration::ZERO)
                || !(core.glance(self.version) || without_gil(py, || core.spin(self.version)))
            {
                break;
            }
            if let Some(taken) = self.take(py)? {
                return Ok(Waited::Taken(taken));
            }
        }
        let mut blocked: Option<(Blocked<'_>, Bound<'_, PyAny>)> = None;
        let mut _wants: Option<Wants<'_>> = None;
        let mut waiter = Some(waiter);
        let mut all = false;
        let mut lost: Option<(PyErr, u64, Instant)> = None;
        loop {
            open(py, core)?;
            // What a dead peer had sent before is still received, also if callbacks, which are
            // asked first, take their time.
            let last = lost.take_if(|(_, arrived, since)| {
                core.is_decided(*arrived) || since.elapsed() > PATIENCE
            });
            if let Some(taken) = self.next(py, true, all)? {
                return Ok(Waited::Taken(taken.expect("taken")));
            }
            if let Some((failure, ..)) = last {
                return Err(failure);
            }
            let version = self.version;
            let limit = left().map_or(TICK, |left| left.min(TICK));
            if limit.is_zero() {
                return Ok(Waited::TimedOut);
            }
            if let Some(waiter) = waiter.take() {
                let (text, tick) = waiter()?;
                let limit = left();
                _wants = Some(Wants::of(core, self.context, &self.template));
                let doing = if is_answer(self.context) { Doing::Sending } else { Doing::Receiving };
                blocked = Some((Blocked::enter(core, doing, &text, "", limit), tick));
                // Between the look and the sleep nothing is lost: the version decides.
            } else if let Some((blocked, tick)) = &mut blocked {
                if blocked.ticks(limit) {
                    py.check_signals()?;
                    if lost.is_none() {
                        match tick.call0().and_then(|facts| facts.extract::<Option<String>>()) {
                            Ok(facts) => blocked.tell(py, facts.as_deref())?,
                            Err(failure) if errors::is(py, &failure, "PeerLost") => {
                                lost = Some((failure, core.take_in_all(), Instant::now()));
                                continue;
                            }
                            Err(failure) => return Err(failure),
                        }
                    }
                }
            }
            if let Some((blocked, _)) = &mut blocked {
                blocked.judged(py)?;
                blocked.settle(self.examined);
            }
            let woken = without_gil(py, || core.wait(version, limit));
            all = woken != Woken::Rung;
            if woken == Woken::Signal {
                py.check_signals()?;
            }
        }
    }

    /// The first match among what the search has not seen yet; `Ok(None)` if there is none.
    /// With `take` it leaves the queue.
    fn next(&mut self, py: Python<'py>, take: bool, all: bool) -> PyResult<Option<Option<Taken>>> {
        loop {
            let rewinds = self.core.rewinds();
            if rewinds != self.rewinds {
                (self.rewinds, self.cursor, self.near) = (rewinds, 0, None);
            }
            let (context, template) = (self.context, &self.template.native);
            match self.core.look(context, template, self.cursor, self.near, take, all) {
                Found::Taken(taken) => return Ok(Some(Some(taken))),
                Found::Nothing { cursor, version, examined } => {
                    (self.cursor, self.version, self.examined) = (cursor, version, examined);
                    self.near = None;
                    // A predicate of ours may have let another thread put a message back.
                    if self.core.rewinds() == self.rewinds {
                        return Ok(None);
                    }
                }
                Found::Ask(candidate) => {
                    if candidate.certain || self.template.accepts(py, &candidate.packet)? {
                        if !take {
                            return Ok(Some(None));
                        }
                        if let Some(taken) = self.core.take(&candidate) {
                            return Ok(Some(Some(taken)));
                        }
                    } else {
                        (self.cursor, self.near) = (candidate.seq, Some(candidate.slot));
                    }
                }
            }
        }
    }
}

/// While it lives, observers are shown what nearly fits this template.
struct Wants<'a>(&'a Core);

impl<'a> Wants<'a> {
    fn of(core: &'a Core, context: u64, template: &Template<'_, '_>) -> Wants<'a> {
        core.want(Some(Wanted::of(context, &template.native)));
        Wants(core)
    }
}

impl Drop for Wants<'_> {
    fn drop(&mut self) {
        self.0.want(None);
    }
}

fn open(py: Python<'_>, core: &Core) -> PyResult<()> {
    if core.is_closed() {
        return Err(closed(py));
    }
    match core.trouble() {
        Some(Trouble::Damaged(why)) => Err(packet_error(
            py,
            &format!("{why}. What it had sent is lost; what it sends next arrives"),
        )),
        Some(Trouble::Unopened(error)) => Err(errors::error(
            py,
            "SFMError",
            (format!(
                "a new sender's ring cannot be opened now ({error}). Nothing is lost: close files, \
                 or raise the limit (ulimit -n), and receive again"
            ),),
        )),
        None => Ok(()),
    }
}

/// Seconds as users give them: None where that is no duration.
pub fn duration(seconds: f64) -> Option<Duration> {
    (seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}
