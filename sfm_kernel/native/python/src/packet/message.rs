//! The message: a received packet whose values are decoded when they are first read.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use pyo3::exceptions::{PyAttributeError, PyKeyError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyString, PyTuple};

use crate::host::gil::InCall;
use crate::packet::decode::value_of;
use crate::packet::decoded::DecodedValues;
use sfm_native::core::Core;
use sfm_native::matching::{Taken, Ticket};
use sfm_native::packet::{Kind, Packet};

/// A received packet. Its values are decoded when they are first read.
///
/// ``m.tag`` and ``m["tag"]`` are the value of an attribute, ``"tag" in m`` shows whether there is
/// one, and ``dict(m)`` has all of them; ``src`` and ``dest`` are always there. Values are the
/// receiver's, and writable, arrays too.
///
/// Reading a pickled value runs code of the message's maker: in a world, a member.
/// ``repr`` and every display read all values.
/// Raises:
///     AttributeError, KeyError: the message has no such attribute.
/// Source: SFM paper, section 2.
/// Example:
///     >>> with sfm_kernel.join("doc", name="A") as sfm:
///     ...     sfm.send(dest="A", tag=42, data=[1, 2])
///     ...     m = sfm.recv()
///     >>> m.tag, m["data"], "other" in m, m.src
///     (42, [1, 2], False, 'A')
///     >>> m
///     Message: {'dest': 'A', 'src': 'A', 'tag': 42, 'data': [1, 2]}
#[pyclass(module = "sfm_kernel.message", frozen)]
pub struct Message {
    pub packet: Arc<Packet>,
    /// Its former position in a queue.
    origin: Option<Origin>,
    /// The receiver has read it.
    touched: AtomicBool,
    /// The position behind the attribute that was read last.
    near: AtomicU32,
    values: DecodedValues,
    /// The values that matching has decoded while the message was queued.
    shared: Option<Arc<DecodedValues>>,
}

/// The position to which a message may have to return.
struct Origin {
    inbox: Py<Source>,
    seq: u64,
    ticket: Ticket,
}

/// The inbox of received messages, which may outlive it. One object for all of them: to count a
/// reference of Python's costs less than one of Rust's.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Source(Weak<Core>);

impl Source {
    pub fn of(core: &Arc<Core>) -> Source {
        Source(Arc::downgrade(core))
    }
}

impl Message {
    pub fn new(packet: Arc<Packet>) -> Message {
        let (touched, near) = (AtomicBool::new(false), AtomicU32::new(0));
        let values = DecodedValues::default();
        Message { packet, origin: None, touched, near, values, shared: None }
    }

    /// The value of `name`, for the receiver alone; None if there is no such attribute.
    pub fn value<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.touched.store(true, Ordering::Relaxed);
        let near = self.near.load(Ordering::Relaxed) as usize;
        let Some((attribute, behind)) = self.packet.find_near(name, near) else { return Ok(None) };
        self.near.store(u32::try_from(behind).unwrap_or(0), Ordering::Relaxed);
        if is_small(attribute.kind) {
            return value_of(py, &self.packet, &attribute).map(Some); // cheaper than storing it
        }
        let values = self.shared.as_deref().unwrap_or(&self.values);
        if let Some(value) = values.get(py, &attribute) {
            return Ok(Some(value));
        }
        let value = value_of(py, &self.packet, &attribute)?;
        Ok(Some(values.put(&attribute, value)))
    }

    /// Return the message to its position in its queue.
    fn put_back(&self) {
        let Some(Origin { inbox, seq, ticket }) = &self.origin else { return };
        if let Some(core) = inbox.get().0.upgrade() {
            core.put_back(Taken { seq: *seq, packet: self.packet.clone(), ticket: *ticket });
        }
    }

    /// All attributes with their values.
    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let attributes = PyDict::new(py);
        for name in self.names() {
            attributes.set_item(name, self.value(py, name)?)?;
        }
        Ok(attributes)
    }

    fn names(&self) -> Vec<&str> {
        self.packet.attributes().map(|attribute| attribute.name).collect()
    }
}

/// Whether a value is immutable and quickly made.
fn is_small(kind: Kind) -> bool {
    use Kind::*;
    matches!(kind, None | False | True | Int | Float | Str | Bytes)
}

impl Drop for Message {
    /// Stop may interrupt between the end of `recv` and the assignment of its result. The message is
    /// then dropped unread during a KeyboardInterrupt: it returns to its position in the queue.
    fn drop(&mut self) {
        if *self.touched.get_mut() || self.origin.is_none() {
            return;
        }
        // SAFETY: only Python drops messages that were received, with the GIL.
        let interrupted = unsafe {
            !ffi::PyErr_Occurred().is_null()
                && ffi::PyErr_ExceptionMatches(ffi::PyExc_KeyboardInterrupt) != 0
        };
        if interrupted {
            self.put_back();
        }
    }
}

#[pymethods]
impl Message {
    /// Attributes of the message take precedence over those of every object; except `keys`, which
    /// makes `dict(message)` work, and names that begin with an underscore. (`__getattr__` alone
    /// would be called only after a useless AttributeError, which costs a microsecond.)
    fn __getattribute__<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let text = name.to_str()?;
        if !text.starts_with('_') && text != "keys" {
            if let Some(value) = slf.get().value(slf.py(), text)? {
                return Ok(value);
            }
        }
        // SAFETY: two live objects; the result is a new reference, or null with an exception.
        unsafe {
            let generic = ffi::PyObject_GenericGetAttr(slf.as_ptr(), name.as_ptr());
            Bound::from_owned_ptr_or_err(slf.py(), generic)
        }
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.value(py, name)?.ok_or_else(|| {
            let names = self.names().join(", ");
            PyAttributeError::new_err(format!(
                "the message has no attribute '{name}'; it has: {names}"
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
        let _in_call = InCall::enter(slf.py());
        Ok(format!("Message: {}", slf.get().dict(slf.py())?.repr()?))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let _in_call = InCall::enter(slf.py());
        slf.py().import("sfm_kernel.message")?.call_method1("message_html", (slf,))
    }

    /// A message can itself be sent, copied and pickled. Its values are encoded again, since the
    /// receiver may have changed them.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let _in_call = InCall::enter(py);
        let rebuild = py.import("sfm_kernel.message")?.getattr("rebuild_message")?;
        PyTuple::new(py, [rebuild, PyTuple::new(py, [slf.get().dict(py)?])?.into_any()])
    }
}

/// The message of a queued packet, with the same values each time.
pub fn queued_message(packet: &Arc<Packet>) -> Message {
    let mut message = Message::new(packet.clone());
    message.shared = Some(packet.decoded(|| Arc::new(DecodedValues::default())));
    message
}

/// The message of a taken packet, with the values that matching has decoded.
pub fn received_message(inbox: &Bound<'_, Source>, taken: Taken) -> Message {
    let Taken { seq, packet, ticket } = taken;
    let mut message = Message::new(packet);
    message.origin = Some(Origin { inbox: inbox.clone().unbind(), seq, ticket });
    message.shared = message.packet.take_decoded();
    message
}
