//! The message: a received packet whose values are decoded when they are first read.

use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyKeyError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyIterator, PyList, PyString, PyTuple};

use super::encode::value_of;
use crate::matching::Taken;
use crate::packet::{table, Packet};

/// Where a message stood in its queue, should it have to go back.
#[derive(Clone, Copy)]
pub struct Origin {
    pub seq: u64,
    pub lane: u32,
    pub ack: bool,
}

#[pyclass(module = "sfm_kernel.message", frozen)]
pub struct Message {
    pub packet: Arc<Packet>,
    pub origin: Option<Origin>,
    values: PyOnceLock<Py<PyDict>>,
}

impl Message {
    pub fn new(packet: Arc<Packet>) -> Message {
        Message { packet, origin: None, values: PyOnceLock::new() }
    }

    pub fn received(taken: Taken) -> Message {
        let Taken { seq, packet, lane, ack } = taken;
        Message { packet, origin: Some(Origin { seq, lane, ack }), values: PyOnceLock::new() }
    }

    /// The value of `name`, decoded at most once; None if there is no such attribute.
    pub fn value<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let values = self.values.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
        if let Some(value) = values.get_item(name)? {
            return Ok(Some(value));
        }
        let Some(one) = self.packet.find(name) else { return Ok(None) };
        let value = value_of(py, &self.packet, &one)?;
        values.set_item(name, &value)?;
        Ok(Some(value))
    }

    fn names(&self) -> Vec<&str> {
        table(self.packet.bytes()).map(|one| one.name).collect()
    }
}

#[pymethods]
impl Message {
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.value(py, name)?.ok_or_else(|| {
            let there = self.names().join(", ");
            PyAttributeError::new_err(format!(
                "the message has no attribute '{name}'; it has: {there}"
            ))
        })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.value(py, name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        match name.cast::<PyString>().map(|name| name.to_str()) {
            Ok(Ok(name)) => self.packet.find(name).is_some(),
            _ => false,
        }
    }

    fn __len__(&self) -> usize {
        self.names().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }

    /// The names of the attributes, as sent. Makes `dict(message)` work.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.names())
    }

    fn __dir__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.keys(py)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let attributes = PyDict::new(slf.py());
        for name in slf.get().names() {
            attributes.set_item(name, slf.get().value(slf.py(), name)?)?;
        }
        Ok(format!("Message: {}", attributes.repr()?))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("sfm_kernel.message")?.call_method1("message_html", (slf,))
    }

    /// A message can itself be sent, copied and pickled: its packet travels. Not before its
    /// values are encoded anew, since the receiver may have changed them.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let attributes = PyDict::new(py);
        for name in slf.get().names() {
            attributes.set_item(name, slf.get().value(py, name)?)?;
        }
        let rebuild = py.import("sfm_kernel.message")?.getattr("rebuild_message")?;
        PyTuple::new(py, [rebuild, PyTuple::new(py, [attributes])?.into_any()])
    }
}

/// The message that a queued packet decodes to, the same object each time it is asked for.
pub fn shared_message(py: Python<'_>, packet: &Arc<Packet>) -> PyResult<Py<Message>> {
    if let Some(kept) = packet.decoded.get().and_then(|any| any.downcast_ref::<Values>()) {
        let message = Message::new(packet.clone());
        let _ = message.values.set(py, kept.0.clone_ref(py));
        return Py::new(py, message);
    }
    let message = Message::new(packet.clone());
    let values = message.values.get_or_init(py, || PyDict::new(py).unbind());
    let _ = packet.decoded.set(Box::new(Values(values.clone_ref(py))));
    Py::new(py, message)
}

/// Values that were decoded for matching. Holding them, not the message, avoids a cycle of
/// references between packet and message that nothing would ever break.
struct Values(Py<PyDict>);

/// The message of what was taken; values that matching has decoded are not decoded again.
pub fn received_message(py: Python<'_>, taken: Taken) -> Message {
    let packet = taken.packet.clone();
    let message = Message::received(taken);
    if let Some(kept) = packet.decoded.get().and_then(|any| any.downcast_ref::<Values>()) {
        let _ = message.values.set(py, kept.0.clone_ref(py));
    }
    message
}
