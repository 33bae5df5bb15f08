//! Python values to packets and back.

use std::ffi::c_int;
use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use super::errors::{error, packet_error};
use super::message::Message;
use crate::core::packet_from;
use crate::packet::{buffer, head, u32_at, u64_at, Attribute, Builder, Head, Kind, Packet};
use crate::value::text;

/// Values up to this size stand in the table; larger ones are copied only once, out of band.
const INLINE: usize = 1024;

static DUMPS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

fn pickle<'py>(
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
        let packet = &slf.get().packet;
        let (at, length) = (packet.as_ptr(), packet.len());
        // SAFETY: the packet lives as long as the object, which the view keeps alive.
        unsafe { fill_view(slf.as_any(), view, flags, at, length, true) }
    }
}

/// A part of a received packet, as writable memory that keeps the packet alive.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Region {
    packet: Arc<Packet>,
    at: usize,
    length: usize,
}

#[pymethods]
impl Region {
    /// # Safety
    /// Called by Python with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let region = slf.get();
        // SAFETY: `at` lies inside the packet (validated).
        let at = unsafe { region.packet.as_ptr().add(region.at) };
        // SAFETY: the packet lives as long as the object, which the view keeps alive. Regions of
        // a packet do not overlap, and Rust reads none of them after handing it out.
        unsafe { fill_view(slf.as_any(), view, flags, at, region.length, false) }
    }
}

/// # Safety
/// `at` is valid for `length` bytes for as long as `owner` lives.
unsafe fn fill_view(
    owner: &Bound<'_, PyAny>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
    at: *mut u8,
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
            at.cast(),
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

/// What goes into an out-of-band buffer.
enum Source<'py> {
    Bytes(Bound<'py, PyBytes>),
    Text(Bound<'py, PyString>),
    View(PyBuffer<u8>),
}

/// Encode `attributes` in their order.
#[pyfunction]
#[pyo3(signature = (attributes, /))]
pub fn pack(attributes: &Bound<'_, PyDict>) -> PyResult<PyPacket> {
    let py = attributes.py();
    let mut builder = Builder::new();
    let mut sources: Vec<Source<'_>> = Vec::new();
    for (name, value) in attributes.iter() {
        let name = name.cast::<PyString>()?;
        let Ok(name) = name.to_str() else {
            return Err(error(py, "EncodeError", (name, "its name is not valid text")));
        };
        encode(&mut builder, &mut sources, name, &value)?;
    }
    let mut failed = None;
    let packet = builder.finish(|nth, memory| match &sources[nth] {
        Source::Bytes(bytes) => memory.copy_from_slice(bytes.as_bytes()),
        Source::Text(text) => match text.to_str() {
            Ok(text) => memory.copy_from_slice(text.as_bytes()),
            Err(failure) => failed = Some(failure),
        },
        Source::View(view) => {
            if let Err(failure) = view.copy_to_slice(py, memory) {
                failed = Some(failure);
            }
        }
    });
    if let Some(failure) = failed {
        return Err(failure);
    }
    let packet = packet.ok_or_else(|| {
        pyo3::exceptions::PyMemoryError::new_err("no memory to encode the message")
    })?;
    Ok(PyPacket { packet: Arc::new(packet) })
}

fn encode<'py>(
    builder: &mut Builder,
    sources: &mut Vec<Source<'py>>,
    name: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let py = value.py();
    let refuse = |why: String| error(py, "EncodeError", (name, why));
    let done = if value.is_none() {
        builder.attribute(name, Kind::None, &[])
    } else if let Ok(value) = value.cast_exact::<PyString>() {
        match value.to_str() {
            Ok(text) if text.len() <= INLINE => {
                builder.attribute(name, Kind::Str, &[text.as_bytes()])
            }
            Ok(text) => {
                let index = builder.buffer(text.len());
                sources.push(Source::Text(value.clone()));
                builder.attribute(name, Kind::BigStr, &[&index.to_le_bytes()])
            }
            // Lone surrogates have no UTF-8; pickle has a way of its own.
            Err(_) => return encode_object(builder, sources, name, value),
        }
    } else if let Ok(value) = value.cast_exact::<PyInt>() {
        match value.extract::<i64>() {
            Ok(value) => builder.attribute(name, Kind::Int, &[&value.to_le_bytes()]),
            Err(_) => builder.attribute(name, Kind::BigInt, &[&big_int(value)?]),
        }
    } else if let Ok(value) = value.cast_exact::<PyFloat>() {
        builder.attribute(name, Kind::Float, &[&value.value().to_le_bytes()])
    } else if let Ok(value) = value.cast_exact::<PyBool>() {
        builder.attribute(name, if value.is_true() { Kind::True } else { Kind::False }, &[])
    } else if let Ok(value) = value.cast_exact::<PyBytes>() {
        let bytes = value.as_bytes();
        if bytes.len() <= INLINE {
            builder.attribute(name, Kind::Bytes, &[bytes])
        } else {
            let index = builder.buffer(bytes.len());
            sources.push(Source::Bytes(value.clone()));
            builder.attribute(name, Kind::BigBytes, &[&index.to_le_bytes()])
        }
    } else {
        return encode_object(builder, sources, name, value);
    };
    done.map_err(refuse)
}

fn big_int(value: &Bound<'_, PyInt>) -> PyResult<Vec<u8>> {
    let py = value.py();
    let bits: usize = value.call_method0(intern!(py, "bit_length"))?.extract()?;
    let signed = PyDict::new(py);
    signed.set_item(intern!(py, "signed"), true)?;
    let bytes =
        value.call_method(intern!(py, "to_bytes"), (bits / 8 + 1, "little"), Some(&signed))?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
}

/// Everything else: pickle protocol 5, its buffers out of band.
fn encode_object<'py>(
    builder: &mut Builder,
    sources: &mut Vec<Source<'py>>,
    name: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let py = value.py();
    let views = PyList::empty(py);
    let options = PyDict::new(py);
    options.set_item(intern!(py, "protocol"), 5)?;
    options.set_item(intern!(py, "buffer_callback"), views.getattr(intern!(py, "append"))?)?;
    let dumped = pickle(py, &DUMPS, "dumps")?.call((value,), Some(&options)).map_err(|cause| {
        // Stop, or no memory, is not the value's fault.
        if !cause.is_instance_of::<pyo3::exceptions::PyException>(py)
            || cause.is_instance_of::<pyo3::exceptions::PyMemoryError>(py)
        {
            return cause;
        }
        let failure = error(py, "EncodeError", (name, cause.value(py).to_string()));
        failure.set_cause(py, Some(cause));
        failure
    })?;
    let dumped = dumped.cast_into::<PyBytes>()?;
    let bytes = dumped.as_bytes();
    let inline = bytes.len() <= INLINE;
    let first = builder.buffers();
    if !inline {
        builder.buffer(bytes.len());
        sources.push(Source::Bytes(dumped.clone()));
    }
    for view in views.iter() {
        let view: PyBuffer<u8> = PyBuffer::get(&view.call_method0(intern!(py, "raw"))?)?;
        builder.buffer(view.len_bytes());
        sources.push(Source::View(view));
    }
    let (first, count) = (first.to_le_bytes(), (builder.buffers() - first).to_le_bytes());
    let refuse = |why: String| error(py, "EncodeError", (name, why));
    if inline {
        builder.attribute(name, Kind::Pickle, &[&first, &count, bytes])
    } else {
        builder.attribute(name, Kind::BigPickle, &[&first, &count])
    }
    .map_err(refuse)
}

/// The value of one attribute, private to the caller; to be asked for once, since writable memory
/// is the packet's own.
pub fn value_of<'py>(
    py: Python<'py>,
    packet: &Arc<Packet>,
    one: &Attribute<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let region = |nth: u32| {
        let (at, length) = buffer(packet.bytes(), nth as usize);
        Region { packet: packet.clone(), at, length }
    };
    let slice = |nth: u32| {
        let (at, length) = buffer(packet.bytes(), nth as usize);
        &packet.bytes()[at..at + length]
    };
    Ok(match one.kind {
        Kind::None => py.None().into_bound(py),
        Kind::False => PyBool::new(py, false).to_owned().into_any(),
        Kind::True => PyBool::new(py, true).to_owned().into_any(),
        Kind::Int => (u64_at(one.value, 0) as i64).into_pyobject(py)?.into_any(),
        Kind::Float => PyFloat::new(py, f64::from_bits(u64_at(one.value, 0))).into_any(),
        Kind::Str => PyString::new(py, text(one.value)).into_any(),
        Kind::Bytes => PyBytes::new(py, one.value).into_any(),
        Kind::BigInt => {
            let signed = PyDict::new(py);
            signed.set_item(intern!(py, "signed"), true)?;
            let arguments = (PyBytes::new(py, one.value), "little");
            py.get_type::<PyInt>().call_method(
                intern!(py, "from_bytes"),
                arguments,
                Some(&signed),
            )?
        }
        Kind::BigBytes => PyBytes::new(py, slice(u32_at(one.value, 0))).into_any(),
        Kind::BigStr => {
            let text = std::str::from_utf8(slice(u32_at(one.value, 0)))
                .map_err(|_| packet_error(py, &format!("attribute {:?} is not text", one.name)))?;
            PyString::new(py, text).into_any()
        }
        Kind::Pickle | Kind::BigPickle => {
            let (mut first, mut count) = (u32_at(one.value, 0), u32_at(one.value, 4));
            let dumped = if one.kind == Kind::Pickle {
                PyBytes::new(py, &one.value[8..]).into_any()
            } else {
                first += 1;
                count -= 1;
                Bound::new(py, region(first - 1))?.into_any()
            };
            let loads = pickle(py, &LOADS, "loads")?;
            if count == 0 {
                loads.call1((dumped,))?
            } else {
                let views = PyList::empty(py);
                for nth in first..first + count {
                    views.append(Bound::new(py, region(nth))?)?;
                }
                let options = PyDict::new(py);
                options.set_item(intern!(py, "buffers"), views)?;
                loads.call((dumped,), Some(&options))?
            }
        }
    })
}

/// Messages that are complete at the head of `data`, and the leftover.
#[pyfunction]
#[pyo3(signature = (data, /))]
pub fn decode<'py>(data: &Bound<'py, PyAny>) -> PyResult<(Vec<Message>, Bound<'py, PyBytes>)> {
    let py = data.py();
    with_bytes(data, |bytes| {
        let mut messages = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            match head(&bytes[at..]).map_err(|why| packet_error(py, &why))? {
                Head::Packet(total) if total <= (bytes.len() - at) as u64 => {
                    let whole = &bytes[at..at + total as usize];
                    let packet = packet_from(whole).map_err(|why| packet_error(py, &why))?;
                    messages.push(Message::new(Arc::new(packet)));
                    at += total as usize;
                }
                _ => break,
            }
        }
        Ok((messages, PyBytes::new(py, &bytes[at..])))
    })
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
        return work(packet.get().packet.bytes());
    }
    let view = PyBuffer::<u8>::get(data)?;
    if !view.is_c_contiguous() {
        return Err(PyBufferError::new_err("the bytes must be contiguous"));
    }
    // SAFETY: the view keeps the memory alive and of this size; the GIL is held throughout, and
    // a caller that changes the bytes from another thread meanwhile changes its own packet.
    let bytes =
        unsafe { std::slice::from_raw_parts(view.buf_ptr().cast::<u8>(), view.len_bytes()) };
    if view.len_bytes() == 0 {
        return work(&[]);
    }
    work(bytes)
}

/// Whether `bytes` is a packet; its copy in memory of our own.
pub fn copy_packet(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Arc<Packet>> {
    with_bytes(data, |bytes| packet_from(bytes).map(Arc::new).map_err(|why| packet_error(py, &why)))
}
