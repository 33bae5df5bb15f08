//! Calls: the base class of endpoints, with `send`, `recv`, `recv_nb` and `peek`.
//!
//! The Python class that inherits from it has these four as attributes, by assignment. Rare cases
//! are done in Python, through `CallHooks`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::fastcall::{add_methods, method};
use super::receive::{find_any, peek, recv, recv_nb};
use super::send::send;
use crate::packet::message::{Message, Source};
use crate::transport::inbox::Inbox;
use sfm_native::core::Core;

/// The base class of endpoints: connects the calls with an inbox, and with the known peers.
#[pyclass(subclass, frozen, module = "sfm_kernel._native")]
pub struct Calls {
    wires: PyOnceLock<Wires>,
    buffering: AtomicU64,
}

pub(super) struct Wires {
    pub core: Arc<Core>,
    /// `core`, for received messages.
    pub source: Py<Source>,
    /// Name or rank -> Channel, of the peers with a route.
    pub channels: Py<PyDict>,
    /// Rank -> name, for `src=rank` in a template.
    pub ranks: Py<PyDict>,
    hooks: Py<CallHooks>,
    /// The context in which messages are matched.
    pub context: u64,
    /// The total number of senders to this inbox when `ranks` was made or renewed.
    pub ranks_as_of: AtomicU64,
}

impl Wires {
    pub fn hooks(&self) -> &CallHooks {
        self.hooks.get()
    }
}

/// Python functions for rare cases, documented in `_native.pyi`. Their first argument is the
/// `Calls`: bound methods would keep it alive.
#[pyclass(frozen, module = "sfm_kernel._native")]
pub struct CallHooks {
    pub channel: Py<PyAny>,
    pub successor: Py<PyAny>,
    pub canonical: Py<PyAny>,
    pub begin_wait: Py<PyAny>,
    pub timed_out: Py<PyAny>,
    pub would_block: Py<PyAny>,
    pub polled: Py<PyAny>,
}

#[pymethods]
impl CallHooks {
    #[new]
    #[pyo3(signature = (*, channel, successor, canonical, begin_wait, timed_out, would_block, polled))]
    fn new(
        channel: Py<PyAny>,
        successor: Py<PyAny>,
        canonical: Py<PyAny>,
        begin_wait: Py<PyAny>,
        timed_out: Py<PyAny>,
        would_block: Py<PyAny>,
        polled: Py<PyAny>,
    ) -> CallHooks {
        CallHooks { channel, successor, canonical, begin_wait, timed_out, would_block, polled }
    }
}

#[pymethods]
impl Calls {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Calls {
        Calls { wires: PyOnceLock::new(), buffering: AtomicU64::new(0) }
    }

    /// Connect the calls with an inbox and the known peers.
    #[pyo3(signature = (inbox, channels, ranks, hooks, context=0))]
    fn _wire(
        &self,
        py: Python<'_>,
        inbox: &Bound<'_, Inbox>,
        channels: Py<PyDict>,
        ranks: Py<PyDict>,
        hooks: Py<CallHooks>,
        context: u64,
    ) -> PyResult<()> {
        let core = inbox.get().core.clone();
        let source = Py::new(py, Source::of(&core))?;
        let ranks_as_of = AtomicU64::new(0);
        let wires = Wires { core, source, channels, ranks, hooks, context, ranks_as_of };
        self.wires.set(py, wires).map_err(|_| PyRuntimeError::new_err("wired already"))
    }

    /// The index of the first template (of a list of dicts) that a message matches, and the message;
    /// None if there is none. Without `take` the message stays queued.
    fn _any(
        slf: &Bound<'_, Self>,
        templates: &Bound<'_, PyList>,
        take: bool,
    ) -> PyResult<Option<(usize, Py<Message>)>> {
        find_any(slf, templates, take)
    }

    #[getter(_buffering)]
    pub fn get_buffering(&self) -> u64 {
        self.buffering.load(Ordering::Relaxed)
    }

    #[setter(_buffering)]
    fn set_buffering(&self, nbytes: u64) {
        self.buffering.store(nbytes, Ordering::Relaxed);
    }
}

pub(super) type Me<'a, 'py> = &'a Bound<'py, Calls>;

pub(super) fn wires<'a>(slf: Me<'a, '_>) -> PyResult<&'a Wires> {
    let wires = slf.get().wires.get(slf.py());
    wires.ok_or_else(|| PyRuntimeError::new_err("this endpoint was never opened"))
}

/// The value of a user's object in a dict. An unhashable object (a list) counts as absent: the slow
/// path raises its error. Stop may interrupt the object's comparison, and is passed on.
pub fn looked_up<'py>(
    dict: &Bound<'py, PyDict>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match dict.get_item(key) {
        Err(failure) if failure.is_instance_of::<PyException>(dict.py()) => Ok(None),
        found => found,
    }
}

/// Add the methods of `Calls` to the module; the Python class assigns them to its attributes.
pub fn add_calls(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let methods = [
        method!("send", send, "send.txt"),
        method!("recv", recv, "recv.txt"),
        method!("recv_nb", recv_nb, "recv_nb.txt"),
        method!("peek", peek, "peek.txt"),
    ];
    add_methods(module, &module.py().get_type::<Calls>(), &methods)
}
