//! Inbox: the receiving half of an endpoint.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::segment::PySegment;
use crate::host::gil::{without_gil, InCall};
use crate::host::python::PyHost;
use crate::host::{location, variables};
use crate::observe::main_thread;
use crate::packet::message::queued_message;
use sfm_native::bell::Woken;
use sfm_native::calls::{self, deadline, Goal, Host, WaitFacts};
use sfm_native::core::Core;
use sfm_native::matching::Taken;
use sfm_native::segment::Activity;

/// Time that the network thread sleeps if the bell does not ring.
const PAUSE: Duration = Duration::from_millis(500);

/// All messages that have arrived and were not received, and the bell that wakes receivers.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Inbox {
    pub core: Arc<Core>,
    pub folder: Option<PathBuf>,
}

#[pymethods]
impl Inbox {
    #[new]
    #[pyo3(signature = (segment=None))]
    fn new(segment: Option<&Bound<'_, PySegment>>) -> PyResult<Inbox> {
        let folder = segment.map(|segment| segment.get().folder.clone());
        let mapping = match segment {
            None => None,
            Some(segment) => match segment.get().mapping.lock().expect("never poisoned").take() {
                Some(mapping) => Some(mapping),
                None => return Err(PyRuntimeError::new_err("the segment has an inbox already")),
            },
        };
        Ok(Inbox { core: Arc::new(Core::new(mapping, folder.clone())?), folder })
    }

    /// The network thread's work, until the endpoint closes: it keeps rings from filling up, and
    /// while callbacks are registered calls `choose(message)` for each message, which returns the
    /// function to call with it, or None.
    fn serve(&self, py: Python<'_>, choose: &Bound<'_, PyAny>) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        let core = &self.core;
        let examine = || {
            variables::ask(core);
            main_thread::examine(core);
        };
        let _life = core.shared().life.hold();
        let mut requests = 0;
        loop {
            let open = without_gil(py, || loop {
                if !core.serve(PAUSE, &mut requests, &examine) {
                    break false;
                }
                if core.has_undecided() {
                    break true;
                }
            });
            if !open {
                return Ok(());
            }
            for taken in core.undecided() {
                if core.is_closed() {
                    return Ok(()); // what is left is discarded, as messages that nobody receives
                }
                if let Err(failure) = run_callback(py, core, taken, choose) {
                    failure.write_unraisable(py, Some(choose));
                }
                core.handled();
            }
        }
    }

    /// Wait until `condition()` is true; it is called whenever a message has arrived. Observers see
    /// `text`, if it is not empty. `tick()` is called about every 100 ms; an error that it raises
    /// ends the wait. `sending`: the wait is for the receipt of messages that this process has sent.
    /// `limit`: seconds after which `condition()` is true or raises.
    #[pyo3(signature = (condition, text, tick, sending=false, limit=None))]
    fn wait_until(
        &self,
        py: Python<'_>,
        condition: &Bound<'_, PyAny>,
        text: &str,
        tick: &Bound<'_, PyAny>,
        sending: bool,
        limit: Option<f64>,
    ) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        location::mark(py)?;
        let core = &*self.core;
        let activity = if sending { Activity::Sending } else { Activity::Receiving };
        let (version, examined) = (core.version(), core.arrived());
        let mut goal = Condition { core, condition, text, tick, activity, version, examined };
        let until = deadline(limit.and_then(duration));
        while calls::wait(&PyHost(py), core, &mut goal, until)?.is_none() {
            // The time is up; `condition` is about to find that out, too.
            let version = goal.version;
            without_gil(py, || core.wait(version, Duration::from_millis(1)));
        }
        Ok(())
    }

    /// Take in what has arrived; returns a number for `is_handled`.
    fn take_in_all(&self, py: Python<'_>) -> u64 {
        without_gil(py, || self.core.take_in_all())
    }

    /// Whether callbacks have returned for all messages that had arrived at `take_in_all`.
    fn is_handled(&self, number: u64) -> bool {
        self.core.is_handled(number)
    }

    /// Set whether callbacks are registered.
    fn set_callbacks(&self, active: bool) {
        self.core.set_callbacks(active);
    }

    /// Publish the process's activity between calls.
    fn set_running(&self, running: bool) {
        let shared = self.core.shared();
        shared.others.write("");
        shared.set_activity(if running { Activity::Running } else { Activity::Idle });
        shared.polls.end();
    }

    /// Publish that this process waits for others to end a cell: a text, and JSON.
    fn set_waiting(&self, text: &str, facts: &str) {
        let shared = self.core.shared();
        shared.begin_call(Activity::Cell, text, facts, 0);
        shared.examined.store(0, Ordering::Release);
    }

    /// Publish the bystanders of a wait, or those that a program has left at its end.
    fn set_others(&self, others: &str) {
        let published = &self.core.shared().others;
        if published.read().as_deref() != Some(others) {
            published.write(others); // only a new text: observers notice each write
        }
    }

    /// End `set_waiting`.
    fn end_waiting(&self) {
        self.core.shared().end_call();
    }

    fn trace_off(&self) {
        self.core.shared().trace.switch_off();
    }

    fn set_info(&self, info: &str) {
        self.core.publish_info(info);
    }

    #[getter]
    fn depth(&self) -> u64 {
        self.core.shared().depth.load(Ordering::Relaxed)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.core.is_closed()
    }

    fn close(&self) {
        self.core.close();
    }

    fn abandon(&self) {
        self.core.abandon();
    }
}

/// The goal of a wait: a Python function returns true.
struct Condition<'a, 'py> {
    core: &'a Core,
    condition: &'a Bound<'py, PyAny>,
    text: &'a str,
    tick: &'a Bound<'py, PyAny>,
    activity: Activity,
    version: u64,
    examined: u64,
}

impl<'py> Goal<PyHost<'py>> for Condition<'_, 'py> {
    type Out = ();

    fn poll(&mut self, _host: &PyHost<'py>, _all: bool) -> PyResult<Option<()>> {
        (self.version, self.examined) = (self.core.version(), self.core.arrived());
        Ok(self.condition.call0()?.is_truthy()?.then_some(()))
    }

    fn spin(&mut self, host: &PyHost<'py>) -> bool {
        let Condition { core, version, .. } = *self;
        core.spin_briefly(version) || host.release(|| core.spin(version))
    }

    fn sleep(&mut self, host: &PyHost<'py>, limit: Duration) -> Woken {
        let Condition { core, version, .. } = *self;
        host.release(|| core.wait(version, limit))
    }

    fn examined(&self) -> u64 {
        self.examined
    }

    fn facts(&mut self, _host: &PyHost<'py>) -> PyResult<Option<WaitFacts>> {
        let (activity, text, facts) = (self.activity, self.text.to_owned(), String::new());
        Ok((!text.is_empty()).then_some(WaitFacts { activity, text, facts }))
    }

    fn tick(&mut self, _host: &PyHost<'py>) -> PyResult<Option<String>> {
        self.tick.call0()?.extract()
    }

    fn outlives_peers(&self) -> bool {
        true
    }
}

/// Run the callback that a new message matches; without one, leave the message in the queue.
fn run_callback(
    py: Python<'_>,
    core: &Core,
    taken: Taken,
    choose: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let message = Bound::new(py, queued_message(&taken.packet));
    let chosen = message.and_then(|message| Ok((choose.call1((&message,))?, message)));
    match chosen {
        Ok((function, message)) if !function.is_none() => {
            // It counts as received before the function runs: the sender, with `buffering` 0, may
            // wait for that, and the function for an answer of the sender.
            sfm_native::code_location::set_current(0); // no line of a program
            core.consumed(&taken);
            let outcome = function.call1((message,));
            drop(taken.packet.forget_decoded());
            outcome.map(drop)
        }
        other => {
            core.decline(taken);
            other.map(drop)
        }
    }
}

/// A user's number of seconds as a duration; None if it is not valid.
pub fn duration(seconds: f64) -> Option<Duration> {
    (seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}
