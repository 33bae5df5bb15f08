//! Receiving in Python: predicates, and what a wait is told and asked.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;

use crate::host::python::PyHost;
use crate::packet::template::Template;
use sfm_native::calls::{self, deadline, Matcher, Watch};
use sfm_native::core::Core;
use sfm_native::matching::{self, Taken};
use sfm_native::packet::Packet;

/// A search that remembers what it has seen.
pub struct Search<'a, 'py>(calls::Search<'a, Template<'a, 'py>>);

/// What `Search::wait` gave.
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

    /// Take the first match, if it is there.
    pub fn take(&mut self, py: Python<'py>) -> PyResult<Option<Taken>> {
        self.0.take(&PyHost(py))
    }

    /// Whether there is a match.
    pub fn peek(&mut self, py: Python<'py>) -> PyResult<bool> {
        self.0.peek(&PyHost(py))
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

/// Seconds as users give them: None where that is no duration.
pub fn duration(seconds: f64) -> Option<Duration> {
    (seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}
