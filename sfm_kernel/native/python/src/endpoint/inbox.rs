//! Inbox: the receiving half of an endpoint.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::endpoint::search::duration;
use crate::host::gil::{without_gil, InCall};
use crate::host::python::PyHost;
use crate::observe::location;
use crate::observe::main_thread;
use crate::packet::message::queued_message;
use crate::transport::segment::PySegment;
use sfm_native::bell::Woken;
use sfm_native::calls::{self, deadline, Examined, Goal, Host, WaitFacts};
use sfm_native::code_location::helping;
use sfm_native::core::Core;
use sfm_native::matching::Taken;
use sfm_native::segment::Activity;

/// How long the network thread sleeps when nobody rings.
const PAUSE: Duration = Duration::from_millis(500);

/// All that arrived and was not received; and the doorbell that wakes who waits for it.
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

    /// The network thread's work, until the endpoint closes: keeps rings from filling up, and
    /// asks `choose(message)` for each message while callbacks are registered which function, if
    /// any, is to be called with it.
    fn serve(&self, py: Python<'_>, choose: &Bound<'_, PyAny>) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        let core = &self.core;
        let look = || main_thread::look(core);
        let _life = core.shared().life.hold();
        let mut wishes = 0;
        loop {
            let open = without_gil(py, || loop {
                if !core.serve(PAUSE, &mut wishes, &look) {
                    break false;
                }
                if core.has_undecided() {
                    break true;
                }
            });
            if !open {
                return Ok(());
            }
            for news in core.undecided() {
                if let Err(failure) = show(py, core, news, choose) {
                    failure.write_unraisable(py, Some(choose));
                }
            }
        }
    }

    /// Wait until `look()` is true; it is called whenever something has come. `text` is what
    /// observers see, where it is not empty; `tick()` is called about every 100 ms, and what it
    /// raises ends the wait. `sending`: it is for what this process has sent to be received. `limit`: seconds after which
    /// `look()` will raise.
    #[pyo3(signature = (look, text, tick, sending=false, limit=None))]
    fn wait_until(
        &self,
        py: Python<'_>,
        look: &Bound<'_, PyAny>,
        text: &str,
        tick: &Bound<'_, PyAny>,
        sending: bool,
        limit: Option<f64>,
    ) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        location::mark(py)?;
        let core = &*self.core;
        let doing = if sending { Activity::Sending } else { Activity::Receiving };
        let (version, examined) = (core.version(), core.arrived());
        let mut goal = Truth { core, look, text, tick, doing, version, examined };
        let until = deadline(limit.and_then(duration));
        while calls::wait(&PyHost(py), core, &mut goal, until)?.is_none() {
            // The time is up, which `look` is about to find out, too.
            let version = goal.version;
            without_gil(py, || core.wait(version, Duration::from_millis(1)));
        }
        Ok(())
    }

    /// Where in its program this thread is now, as a number for `help`.
    #[staticmethod]
    fn location(py: Python<'_>) -> PyResult<u64> {
        location::current(py)
    }

    /// This thread works, as the helper with this number (not 0), for a call that another thread has
    /// made at `place`: observers see what it sends there, and its waits through `helper_facts`.
    /// `apart`: calls that do not wait for it have nothing to do with it.
    fn help(&self, number: u64, location: u64, apart: bool) {
        sfm_native::code_location::set_current(location);
        sfm_native::code_location::set_helping(number);
        self.core.begin_help(number, apart);
    }

    /// The end of `help`.
    fn end_help(&self) {
        self.core.end_help(helping());
        sfm_native::code_location::set_helping(0);
    }

    /// What a helper waits for, as JSON for observers; None while it does not wait.
    fn helper_facts(&self, number: u64) -> Option<String> {
        self.core.helper_facts(number)
    }

    /// Wait until something has come, for at most so many microseconds.
    fn rest(&self, py: Python<'_>, limit: u64) -> PyResult<()> {
        let core = &*self.core;
        let version = core.version();
        if without_gil(py, || core.wait(version, Duration::from_micros(limit))) == Woken::Signal {
            py.check_signals()?;
        }
        Ok(())
    }

    /// A call has asked in vain for what `tell()` says, as JSON; it is seldom called.
    fn polled(&self, py: Python<'_>, tell: &Bound<'_, PyAny>) -> PyResult<()> {
        let shared = self.core.shared();
        if shared.polled() {
            location::mark(py)?;
            shared.publish_polls(&tell.call0()?.extract::<String>()?);
        }
        Ok(())
    }

    /// Wake all who wait in `wait_until`, to look again.
    fn wake(&self) {
        self.core.wake();
    }

    /// Whether callbacks are registered.
    fn set_callbacks(&self, active: bool) {
        self.core.set_callbacks(active);
    }

    /// Say what the process is doing between calls.
    fn set_running(&self, running: bool) {
        let shared = self.core.shared();
        shared.others.write("");
        shared.set_activity(if running { Activity::Running } else { Activity::Idle });
        shared.polls.end();
    }

    /// Say that this process waits for others to end a cell: a line, and JSON, for observers.
    fn set_waiting(&self, text: &str, facts: &str) {
        let shared = self.core.shared();
        shared.begin_call(Activity::Cell, text, facts, 0);
        shared.examined.store(0, Ordering::Release);
    }

    /// What could go on meanwhile, or has been left by a program that has come to its end.
    fn set_others(&self, others: &str) {
        let told = &self.core.shared().others;
        if told.read().as_deref() != Some(others) {
            told.write(others); // only then: observers notice each change
        }
    }

    /// It waits no more.
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

/// A function of Python's says that it is so.
struct Truth<'a, 'py> {
    core: &'a Core,
    look: &'a Bound<'py, PyAny>,
    text: &'a str,
    tick: &'a Bound<'py, PyAny>,
    doing: Activity,
    version: u64,
    examined: u64,
}

impl<'py> Goal<PyHost<'py>> for Truth<'_, 'py> {
    type Out = ();

    fn poll(&mut self, _host: &PyHost<'py>, _all: bool) -> PyResult<Option<()>> {
        (self.version, self.examined) = (self.core.version(), self.core.arrived());
        Ok(self.look.call0()?.is_truthy()?.then_some(()))
    }

    fn spin(&mut self, host: &PyHost<'py>) -> bool {
        let Truth { core, version, .. } = *self;
        core.spin_briefly(version) || host.release(|| core.spin(version))
    }

    fn sleep(&mut self, host: &PyHost<'py>, limit: Duration) -> Woken {
        let Truth { core, version, .. } = *self;
        host.release(|| core.wait(version, limit))
    }

    fn examined(&self) -> Examined {
        Examined::Arrived(self.examined)
    }

    fn facts(&mut self, _host: &PyHost<'py>) -> PyResult<Option<WaitFacts>> {
        let (doing, text, facts) = (self.doing, self.text.to_owned(), String::new());
        Ok((!text.is_empty()).then_some(WaitFacts { activity: doing, text, facts }))
    }

    fn tick(&mut self, _host: &PyHost<'py>) -> PyResult<Option<String>> {
        self.tick.call0()?.extract()
    }

    fn outlives_peers(&self) -> bool {
        true
    }

    fn includes_helpers(&self) -> bool {
        true
    }
}

/// Show a message that has arrived to the callbacks.
fn show(py: Python<'_>, core: &Core, news: Taken, choose: &Bound<'_, PyAny>) -> PyResult<()> {
    let message = Bound::new(py, queued_message(&news.packet));
    let chosen = message.and_then(|message| Ok((choose.call1((&message,))?, message)));
    match chosen {
        Ok((function, message)) if !function.is_none() => {
            // Received from here on: its sender, with `buffering` 0, may be waiting for that, and
            // the function for an answer of that sender.
            sfm_native::code_location::set_current(0); // no line of a program
            core.consumed(&news);
            let outcome = function.call1((message,));
            drop(news.packet.forget_decoded());
            outcome.map(drop)
        }
        other => {
            core.decline(news);
            other.map(drop)
        }
    }
}
