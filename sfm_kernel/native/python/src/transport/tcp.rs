//! TCP connections: the kernel's facts about them, and their congestion control.

use std::io;
use std::os::fd::RawFd;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use sfm_native::tcp_info::{self as core, TcpInfo, Value, FIELDS};

/// The kernel's TCP_INFO of a connection, by name; None for a field that this kernel does not have.
#[pyfunction]
#[pyo3(signature = (socket, /))]
pub fn tcp_info(py: Python<'_>, socket: RawFd) -> PyResult<Bound<'_, PyDict>> {
    fields(py, &TcpInfo::read(socket).map_err(os_error)?)
}

/// The fields by name; None for a field that this kernel does not have.
pub fn fields<'py>(py: Python<'py>, info: &TcpInfo) -> PyResult<Bound<'py, PyDict>> {
    let about = PyDict::new(py);
    for &field in FIELDS {
        match info.value(field) {
            Some(Value::Number(number)) => about.set_item(field.name, number)?,
            Some(Value::Seconds(seconds)) => about.set_item(field.name, seconds)?,
            None => about.set_item(field.name, py.None())?,
        }
    }
    Ok(about)
}

/// The congestion control that a TCP socket uses.
#[pyfunction]
#[pyo3(signature = (socket, /))]
pub fn congestion(socket: RawFd) -> PyResult<String> {
    core::congestion(socket).map_err(os_error)
}

/// Make the TCP socket use this congestion control, and verify with the kernel that it does.
#[pyfunction]
#[pyo3(signature = (socket, name, /))]
pub fn set_congestion(socket: RawFd, name: &str) -> PyResult<()> {
    core::set_congestion(socket, name).map_err(os_error)
}

/// The Python exception with the error's number, which PyO3's conversion omits.
pub fn os_error(error: io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string())),
        None => error.into(),
    }
}
