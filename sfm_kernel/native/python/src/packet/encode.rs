//! Python values to packets.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyException, PyMemoryError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::errors::error;
use crate::host::gil::{without_gil, InCall};
use crate::packet::arrays::numbers;
use sfm_native::packet::{Builder, Gather, Kind, Packet};

/// Bytes of a value in the table, at most; larger values are copied only once, out of band.
const INLINE: usize = 1024;

static DUMPS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

pub fn pickle<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    cell.get_or_try_init(py, || Ok(py.import("pickle")?.getattr(name)?.unbind()))
        .map(|function| function.bind(py))
}

/// One encoded message.
#[pyclass(name = "Packet", module = "sfm_kernel._native", frozen)]
pub struct PyPacket {
    pub packet: Arc<Packet>,
}

#[pymethods]
impl PyPacket {
    fn __len__(&self) -> usize {
        self.packet.len()
    }

    /// # Safety
    /// Called by Python with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = slf.get().packet.contiguous().expect("packed into one place");
        let (start, length) = (bytes.as_ptr().cast_mut(), bytes.len());
        // SAFETY: the packet lives as long as the object, which the view keeps alive; read-only.
        unsafe { fill_view(slf.as_any(), view, flags, start, length, true) }
    }
}

/// # Safety
/// `start` is valid for `length` bytes as long as `owner` lives.
pub unsafe fn fill_view(
    owner: &Bound<'_, PyAny>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
    start: *mut u8,
    length: usize,
    readonly: bool,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("no view given"));
    }
    // SAFETY: Python's own helper; it takes a reference to the owner.
    let result = unsafe {
        ffi::PyBuffer_FillInfo(
            view,
            owner.as_ptr(),
            start.cast(),
            length as isize,
            c_int::from(readonly),
            flags,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(PyErr::fetch(owner.py()))
    }
}

/// Keeps an out-of-band buffer alive and in its position until it is copied.
enum Owner<'py> {
    Object(#[expect(dead_code, reason = "held")] Bound<'py, PyAny>),
    View(#[expect(dead_code, reason = "held")] PyBuffer<u8>),
}

thread_local! {
    /// A builder that is not in use: with it, encoding a small message allocates nothing.
    static SPARE: Cell<Option<Builder>> = const { Cell::new(None) };
}

/// Bytes of a builder that is reused for the next message, at most.
const SPARE_BYTES: usize = 1 << 16;

/// Encodes attributes into a packet; keeps the objects whose memory the packet refers to.
pub struct Encoder<'py> {
    builder: Builder,
    owners: Vec<Owner<'py>>,
    /// The receiver reads no pickled values.
    pub plain: bool,
}

impl<'py> Encoder<'py> {
    pub fn new() -> Encoder<'py> {
        let mut builder = SPARE.take().unwrap_or_default();
        builder.clear();
        Encoder { builder, owners: Vec::new(), plain: false }
    }

    /// Add already encoded attributes without buffers.
    pub fn extend(&mut self, entries: &[u8], count: usize) {
        self.builder.extend(entries, count);
    }

    /// Set the context in which the packet is matched.
    pub fn set_context(&mut self, context: u64) {
        self.builder.set_context(context);
    }

    /// The table so far.
    pub fn entries(&self) -> &[u8] {
        self.builder.entries()
    }

    /// The packet; nothing may be added afterwards.
    pub fn gather(&mut self) -> Gather<'_> {
        // SAFETY: the owners keep the sources in their position as long as self lives. If another
        // thread changes them meanwhile, only the message changes.
        unsafe { self.builder.finish() }
    }

    pub fn add(&mut self, name: &str, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = value.py();
        let done = if let Ok(value) = value.cast_exact::<PyString>() {
            match value.to_str() {
                Ok(text) if text.len() <= INLINE => {
                    self.builder.attribute(name, Kind::Str, &[text.as_bytes()])
                }
                Ok(text) => self.large(name, Kind::BigStr, text.as_bytes(), value),
                // Lone surrogates have no UTF-8; pickle can encode them.
                Err(_) => return self.object(name, value),
            }
        } else if let Ok(value) = value.cast_exact::<PyInt>() {
            match value.extract::<i64>() {
                Ok(value) => self.builder.attribute(name, Kind::Int, &[&value.to_le_bytes()]),
                Err(_) => self.builder.attribute(name, Kind::BigInt, &[&big_int(value)?]),
            }
        } else if let Ok(value) = value.cast_exact::<PyBytes>() {
            let bytes = value.as_bytes();
            if bytes.len() <= INLINE {
                self.builder.attribute(name, Kind::Bytes, &[bytes])
            } else {
                self.large(name, Kind::BigBytes, bytes, value)
            }
        } else if let Ok(value) = value.cast_exact::<PyFloat>() {
            self.builder.attribute(name, Kind::Float, &[&value.value().to_le_bytes()])
        } else if value.is_none() {
            self.builder.attribute(name, Kind::None, &[])
        } else if let Ok(value) = value.cast_exact::<PyBool>() {
            let kind = if value.is_true() { Kind::True } else { Kind::False };
            self.builder.attribute(name, kind, &[])
        } else if let Some(numbers) = numbers(value) {
            let index = self.builder.buffer(numbers.from, numbers.length).to_le_bytes();
            self.owners.push(Owner::Object(value.clone()));
            self.builder.attribute(name, Kind::Array, &[&index, &numbers.front, &numbers.extents])
        } else {
            return self.object(name, value);
        };
        done.map_err(|why| error(py, "EncodeError", (name, why)))
    }

    fn large(
        &mut self,
        name: &str,
        kind: Kind,
        bytes: &[u8],
        owner: &Bound<'py, PyAny>,
    ) -> Result<(), String> {
        let index = self.builder.buffer(bytes.as_ptr(), bytes.len());
        self.owners.push(Owner::Object(owner.clone()));
        self.builder.attribute(name, kind, &[&index.to_le_bytes()])
    }

    /// Add any other value: pickle protocol 5, its buffers out of band.
    fn object(&mut self, name: &str, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = value.py();
        if self.plain {
            let kind = value.get_type().name()?;
            let why = format!("its receiver reads no pickled values, as this {kind} would be");
            let hint = "Send None, booleans, integers, floats, texts, bytes or arrays of numbers";
            return Err(error(py, "EncodeError", (name, why, hint)));
        }
        let _in_call = InCall::enter(py);
        let views = PyList::empty(py);
        let options = PyDict::new(py);
        options.set_item(intern!(py, "protocol"), 5)?;
        options.set_item(intern!(py, "buffer_callback"), views.getattr(intern!(py, "append"))?)?;
        let dumped = pickle(py, &DUMPS, "dumps")?.call((value,), Some(&options));
        let dumped = dumped.map_err(|cause| unpicklable(py, name, cause))?;
        let dumped = dumped.cast_into::<PyBytes>()?;
        let bytes = dumped.as_bytes();
        let inline = bytes.len() <= INLINE;
        let first = self.builder.buffers();
        if !inline {
            self.builder.buffer(bytes.as_ptr(), bytes.len());
            self.owners.push(Owner::Object(dumped.clone().into_any()));
        }
        for view in views.iter() {
            let view: PyBuffer<u8> = PyBuffer::get(&view.call_method0(intern!(py, "raw"))?)?;
            self.builder.buffer(view.buf_ptr().cast(), view.len_bytes());
            self.owners.push(Owner::View(view));
        }
        let (first, count) = (first.to_le_bytes(), (self.builder.buffers() - first).to_le_bytes());
        let done = if inline {
            self.builder.attribute(name, Kind::Pickle, &[&first, &count, bytes])
        } else {
            self.builder.attribute(name, Kind::BigPickle, &[&first, &count])
        };
        done.map_err(|why| error(py, "EncodeError", (name, why)))
    }
}

impl Drop for Encoder<'_> {
    fn drop(&mut self) {
        if self.builder.entries().len() <= SPARE_BYTES {
            SPARE.set(Some(std::mem::take(&mut self.builder)));
        }
    }
}

fn unpicklable(py: Python<'_>, name: &str, cause: PyErr) -> PyErr {
    // Stop and MemoryError are not caused by the value.
    if !cause.is_instance_of::<PyException>(py) || cause.is_instance_of::<PyMemoryError>(py) {
        return cause;
    }
    let failure = error(py, "EncodeError", (name, cause.value(py).to_string()));
    failure.set_cause(py, Some(cause));
    failure
}

/// Encode `attributes` in their order.
#[pyfunction]
#[pyo3(signature = (attributes, /, context=0))]
pub fn pack(attributes: &Bound<'_, PyDict>, context: u64) -> PyResult<PyPacket> {
    let py = attributes.py();
    let mut encoder = Encoder::new();
    encoder.set_context(context);
    for (name, value) in attributes.iter() {
        encoder.add(text_of(name.cast::<PyString>()?)?, &value)?;
    }
    let gather = encoder.gather();
    let packet = if gather.len() >= DETACH_FROM {
        without_gil(py, || gather.to_packet())
    } else {
        gather.to_packet()
    };
    let packet = packet.ok_or_else(|| PyMemoryError::new_err("no memory to encode the message"))?;
    Ok(PyPacket { packet: Arc::new(packet) })
}

/// The name of an attribute.
pub fn text_of<'a>(name: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    let invalid = |_| error(name.py(), "EncodeError", (name, "its name is not valid text"));
    name.to_str().map_err(invalid)
}

/// Bytes from which on a copy releases the GIL.
pub const DETACH_FROM: usize = 1 << 18;

fn big_int(value: &Bound<'_, PyInt>) -> PyResult<Vec<u8>> {
    let py = value.py();
    let bits: usize = value.call_method0(intern!(py, "bit_length"))?.extract()?;
    let signed = [(intern!(py, "signed"), true)].into_py_dict(py)?;
    let bytes =
        value.call_method(intern!(py, "to_bytes"), (bits / 8 + 1, "little"), Some(&signed))?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
}

/// Run `work` on the bytes of any contiguous bytes-like object, without copying them.
pub fn with_bytes<T>(
    data: &Bound<'_, PyAny>,
    work: impl FnOnce(&[u8]) -> PyResult<T>,
) -> PyResult<T> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return work(bytes.as_bytes());
    }
    if let Ok(packet) = data.cast::<PyPacket>() {
        return work(packet.get().packet.contiguous().expect("packed into one place"));
    }
    let view = PyBuffer::<u8>::get(data)?;
    if !view.is_c_contiguous() {
        return Err(PyBufferError::new_err("the bytes must be contiguous"));
    }
    if view.len_bytes() == 0 {
        return work(&[]); // its address may be null
    }
    // SAFETY: the view keeps the memory alive and of this size; the GIL is held throughout. A
    // caller that changes the bytes in another thread meanwhile changes only its packet.
    work(unsafe { std::slice::from_raw_parts(view.buf_ptr().cast::<u8>(), view.len_bytes()) })
}
