//! Raising the exceptions of `sfm_kernel.errors`.

use pyo3::exceptions::{PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

use sfm_endpoint::error::{Detail, Error, Kind, Room};
use sfm_native::calls::End;
use sfm_native::core::Unfit;
use sfm_native::shm::ShmError;

/// The class `name` of `sfm_kernel.errors`.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = ERRORS.get_or_try_init(py, || py.import("sfm_kernel.errors").map(Bound::unbind));
    module?.bind(py).getattr(name)
}

/// The exception `name` with these arguments; if it cannot be made, the error of making it.
pub fn error<'py>(
    py: Python<'py>,
    name: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyErr {
    let made = class(py, name).and_then(|class| class.call1(arguments));
    made.map_or_else(|failure| failure, PyErr::from_value)
}

/// Whether `failure` is the exception `name`.
pub fn is(py: Python<'_>, failure: &PyErr, name: &str) -> bool {
    class(py, name).is_ok_and(|class| failure.matches(py, class).unwrap_or(false))
}

pub fn packet_error(py: Python<'_>, why: &str) -> PyErr {
    error(py, "PacketError", (format!("not a valid packet: {why}"),))
}

/// The exception for the end of a call that concerns no peer.
pub fn ended(py: Python<'_>, why: End) -> PyErr {
    match why {
        End::Closed => closed(py),
        End::Deadlock(judgement) => deadlock(py, &judgement),
        End::Damaged(_) => packet_error(py, &why.to_string()),
        End::NoMemory => PyMemoryError::new_err(why.to_string()),
        why => error(py, "SFMError", (why.to_string(),)),
    }
}

pub fn unfit(py: Python<'_>, why: Unfit) -> PyErr {
    match why {
        Unfit::Malformed(why) => packet_error(py, &why),
        Unfit::NoMemory => ended(py, End::NoMemory),
    }
}

/// A signal handler or a finalizer sends to `peer` while its thread is sending to it.
pub fn reentered(py: Python<'_>, peer: &str) -> PyErr {
    let why = format!(
        "a signal handler (or a finalizer) interrupted this thread while it was sending to {peer}, \
         and cannot send there now. Let it set a flag or an event instead"
    );
    error(py, "SFMError", (why,))
}

/// An observer has found a deadlock: `judgement` is JSON, with "cycle" (names) and "why".
fn deadlock(py: Python<'_>, judgement: &str) -> PyErr {
    let read = || -> PyResult<(Vec<Py<PyAny>>, String)> {
        let found = py.import("json")?.call_method1("loads", (judgement,))?;
        Ok((found.get_item("cycle")?.extract()?, found.get_item("why")?.extract()?))
    };
    let (cycle, why) = read().unwrap_or_default(); // two observers may have written at once
    error(py, "DeadlockDetected", (cycle, why))
}

pub fn closed(py: Python<'_>) -> PyErr {
    error(py, "EndpointClosed", ("this endpoint is closed: join the world again",))
}

/// The exception for an error of an endpoint.
pub fn endpoint_error(py: Python<'_>, failure: Error) -> PyErr {
    match (failure.kind, failure.detail) {
        (_, Detail::Full(room)) => {
            let Room { needed, free, limit, folder } = *room;
            error(py, "SegmentFull", (needed, free, limit, folder.to_string_lossy()))
        }
        (_, Detail::Errno(number)) => {
            error(py, "limit_named", (PyOSError::new_err((number, failure.text)),))
        }
        (Kind::Argument, _) => PyValueError::new_err(failure.text),
        (Kind::System, _) => PyOSError::new_err(failure.text),
        (kind, _) => error(py, kind.name().unwrap_or("SFMError"), (failure.text,)),
    }
}

pub fn shm_error(py: Python<'_>, failure: ShmError, folder: &str) -> PyErr {
    match failure {
        ShmError::Full { needed, free, limit } => {
            error(py, "SegmentFull", (needed, free, limit, folder))
        }
        // Keeps the class that Python has for the cause: FileNotFoundError, PermissionError.
        ShmError::Io(failure) => {
            let text = format!("shared memory in {folder}: {failure}");
            match failure.raw_os_error() {
                Some(number) => error(py, "limit_named", (PyOSError::new_err((number, text)),)),
                None => std::io::Error::new(failure.kind(), text).into(),
            }
        }
        ShmError::Invalid(why) => PyValueError::new_err(why),
    }
}
