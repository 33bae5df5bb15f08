//! Receives of Python: predicates, and the hooks of a wait.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::host::python::PyHost;
use crate::packet::template::Template;
use sfm_native::calls::{Matcher, Watch};
use sfm_native::matching;
use sfm_native::packet::Packet;

impl<'a, 'py> Matcher<'a, PyHost<'py>> for Template<'a, 'py> {
    fn native(&self) -> &matching::Template<'a> {
        &self.native
    }

    fn accepts(&self, host: &PyHost<'py>, packet: &Arc<Packet>) -> PyResult<bool> {
        Template::accepts(self, host.0, packet)
    }
}

/// The hooks of a wait. Before the first sleep `waiter()` returns a text for observers, and a
/// function to call about every 100 ms, which may return facts for observers (as JSON). An error of
/// either ends the wait.
pub struct Waiting<'py, F> {
    waiter: Option<F>,
    tick: Option<Bound<'py, PyAny>>,
}

impl<F> Waiting<'_, F> {
    pub fn new(waiter: F) -> Self {
        Waiting { waiter: Some(waiter), tick: None }
    }
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
