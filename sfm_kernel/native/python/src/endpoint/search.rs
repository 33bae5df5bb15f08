//! Receives of Python: predicates, and the hooks of a wait.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;

use crate::host::python::PyHost;
use crate::packet::template::Template;
use sfm_native::calls::{self, deadline, Matcher, Watch};
use sfm_native::core::Core;
use sfm_native::matching::{self, Taken};
use sfm_native::packet::Packet;

/// A search that compares each message once.
pub struct Search<'a, 'py>(calls::Search<'a, Template<'a, 'py>>);

/// The outcome of `Search::wait`.
pub enum Waited {
    Taken(Taken),
    TimedOut,
}

impl<'a, 'py> Matcher<'a, PyHost<'py>> for Template<'a, 'py> {
    fn native(&self) -> &matching::Template<'a> {
        &self.native
    }

    fn accepts(&self, host: &PyHost<'py>, packet: &Arc<Packet>) -> PyResult<bool> {
        Template::accepts(self, host.0, packet)
    }
}

impl<'a, 'py> Search<'a, 'py> {
    pub fn new(core: &'a Core, context: u64, template: Template<'a, 'py>) -> Search<'a, 'py> {
        Search(calls::Search::new(core, context, template))
    }

    /// Take the first match, if there is one.
    pub fn take(&mut self, py: Python<'py>) -> PyResult<Option<Taken>> {
        self.0.take(&PyHost(py))
    }

    /// Whether there is a match.
    pub fn peek(&mut self, py: Python<'py>) -> PyResult<bool> {
        self.0.peek(&PyHost(py))
    }

    /// Take the first match, waiting for it for at most `timeout`. Before the first sleep
    /// `waiter()` returns a text for observers, and a function to call about every 100 ms, which may
    /// return facts for observers (as JSON). An error of either ends the wait.
    pub fn wait(
        &mut self,
        py: Python<'py>,
        timeout: Option<Duration>,
        waiter: impl FnOnce() -> PyResult<(String, Bound<'py, PyAny>)>,
    ) -> PyResult<Waited> {
        let watch = Waiting { waiter: Some(waiter), tick: None };
        let taken = self.0.wait(&PyHost(py), deadline(timeout), watch)?;
        Ok(taken.map_or(Waited::TimedOut, Waited::Taken))
    }
}

struct Waiting<'py, F> {
    waiter: Option<F>,
    tick: Option<Bound<'py, PyAny>>,
}

impl<'py, F> Watch<PyHost<'py>> for Waiting<'py, F>
where
    F: FnOnce() -> PyResult<(String, Bound<'py, PyAny>)>,
{
    fn text(&mut self, _host: &PyHost<'py>) -> PyResult<String> {
        let (text, tick) = self.waiter.take().expect("asked once")()?;
        self.tick = Some(tick);
        Ok(text)
    }

    fn tick(&mut self, _host: &PyHost<'py>) -> PyResult<Option<String>> {
        match &self.tick {
            Some(tick) => tick.call0()?.extract(),
            None => Ok(None),
        }
    }
}

/// A user's number of seconds as a duration; None if it is not valid.
pub fn duration(seconds: f64) -> Option<Duration> {
    (seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}
