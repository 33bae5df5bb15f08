//! Calls of the endpoint's that wait without the GIL, and run Python's signal handlers meanwhile.

use std::cell::RefCell;

use pyo3::prelude::*;

use crate::errors::endpoint_error;
use crate::host::gil::{with_gil_again, without_gil};
use sfm_endpoint::host::Signals;
use sfm_endpoint::{Error, Kind, Result};

/// The result of `work`. What a signal handler raises meanwhile goes before it.
pub fn waiting<T: Send>(
    py: Python<'_>,
    work: impl Send + FnOnce(Signals<'_>) -> Result<T>,
) -> PyResult<T> {
    let (done, raised) = without_gil(py, || {
        let raised = RefCell::new(None);
        let signals = || {
            with_gil_again(|py| py.check_signals()).map_err(|failure| {
                raised.replace(Some(failure));
                Error::new(Kind::Interrupted, "a signal handler has raised an exception")
            })
        };
        let done = work(&signals);
        (done, raised.take())
    });
    match raised {
        Some(failure) => Err(failure),
        None => done.map_err(|failure| endpoint_error(py, failure)),
    }
}
