//! Packets to Python values.

use std::ffi::c_int;
use std::sync::Arc;

use pyo3::exceptions::PyUnicodeDecodeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyBool, PyBytes, PyFloat, PyInt, PyList, PyString};
use pyo3::{ffi, intern};

use crate::errors::{packet_error, unfit};
use crate::host::gil::InCall;
use crate::packet::arrays::array;
use crate::packet::encode::{fill_view, pickle, with_bytes};
use crate::packet::message::Message;
use sfm_native::core::packet_from;
use sfm_native::packet::{head, u32_at, u64_at, Attribute, Head, Kind, Packet, Shape};
use sfm_native::value::text;

static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// One buffer of a received packet, as writable memory that keeps the packet alive.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Region {
    packet: Arc<Packet>,
    nth: u32,
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
        let (start, length) = region.packet.buffer(region.nth as usize);
        // SAFETY: the packet lives as long as the object, which the view keeps alive. Regions of
        // a packet do not overlap, and Rust reads none of them after handing it out.
        unsafe { fill_view(slf.as_any(), view, flags, start, length, false) }
    }
}

/// The value of one attribute, for the caller alone. Call it once for each attribute, since writable
/// values are memory of the packet.
pub fn value_of<'py>(
    py: Python<'py>,
    packet: &Arc<Packet>,
    attribute: &Attribute<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let region = |nth: u32| Bound::new(py, Region { packet: packet.clone(), nth });
    let slice = |nth: u32| packet.buffer_bytes(nth as usize);
    Ok(match attribute.kind {
        Kind::None => py.None().into_bound(py),
        Kind::False => PyBool::new(py, false).to_owned().into_any(),
        Kind::True => PyBool::new(py, true).to_owned().into_any(),
        Kind::Int => (u64_at(attribute.value, 0) as i64).into_pyobject(py)?.into_any(),
        Kind::Float => PyFloat::new(py, f64::from_bits(u64_at(attribute.value, 0))).into_any(),
        Kind::Str => PyString::new(py, text(attribute.value)).into_any(),
        Kind::Bytes => PyBytes::new(py, attribute.value).into_any(),
        Kind::BigInt => {
            let signed = [(intern!(py, "signed"), true)].into_py_dict(py)?;
            let arguments = (PyBytes::new(py, attribute.value), "little");
            let from_bytes = intern!(py, "from_bytes");
            py.get_type::<PyInt>().call_method(from_bytes, arguments, Some(&signed))?
        }
        Kind::BigBytes => {
            let bytes = slice(u32_at(attribute.value, 0));
            // `PyBytes::new` panics without memory; `new_with` writes it twice.
            // SAFETY: a new object, or null and an exception.
            unsafe {
                let (start, length) = (bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t);
                Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(start, length))?
            }
        }
        Kind::BigStr => {
            let text = slice(u32_at(attribute.value, 0));
            PyString::from_bytes(py, text)
                .map_err(|failure| match failure.is_instance_of::<PyUnicodeDecodeError>(py) {
                    true => {
                        packet_error(py, &format!("attribute {:?} is not text", attribute.name))
                    }
                    false => failure,
                })?
                .into_any()
        }
        Kind::Array => {
            let nth = u32_at(attribute.value, 0);
            let shape = Shape::of(attribute.value).expect("validated");
            // SAFETY: validated: the buffer has the shape's length, at a multiple of 64 in a packet
            // that is aligned to at least 16 bytes. The region keeps the packet, and nothing else
            // refers to this buffer.
            unsafe { array(region(nth)?.into_any(), &shape, packet.buffer(nth as usize).0)? }
        }
        Kind::Pickle | Kind::BigPickle => {
            let (mut first, mut count) = (u32_at(attribute.value, 0), u32_at(attribute.value, 4));
            let dumped = if attribute.kind == Kind::Pickle {
                PyBytes::new(py, &attribute.value[8..]).into_any()
            } else {
                first += 1;
                count -= 1;
                region(first - 1)?.into_any()
            };
            let _in_call = InCall::enter(py);
            let loads = pickle(py, &LOADS, "loads")?;
            if count == 0 {
                loads.call1((dumped,))?
            } else {
                let views = PyList::empty(py);
                for nth in first..first + count {
                    views.append(region(nth)?)?;
                }
                let options = [(intern!(py, "buffers"), views)].into_py_dict(py)?;
                loads.call((dumped,), Some(&options))?
            }
        }
    })
}

/// The complete messages at the head of `data`, and the remaining bytes.
#[pyfunction]
#[pyo3(signature = (data, /))]
pub fn decode<'py>(data: &Bound<'py, PyAny>) -> PyResult<(Vec<Message>, Bound<'py, PyBytes>)> {
    let py = data.py();
    with_bytes(data, |bytes| {
        let mut messages = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            match head(rest).map_err(|why| packet_error(py, &why))? {
                Head::Packet(total) if total <= rest.len() as u64 => {
                    let (packet, behind) = rest.split_at(total as usize);
                    let packet = packet_from(packet).map_err(|why| unfit(py, why))?;
                    messages.push(Message::new(Arc::new(packet)));
                    rest = behind;
                }
                _ => break,
            }
        }
        Ok((messages, PyBytes::new(py, rest)))
    })
}
