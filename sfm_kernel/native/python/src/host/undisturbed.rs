//! Python's code that runs inside of a call of the program's, which has to have its answer.
//!
//! A signal's handler runs wherever the interpreter is, and what it raises there must end the
//! program's call, and not a question that is asked on the way.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use pyo3::ffi;
use pyo3::prelude::*;

thread_local! {
    /// What a handler has raised, until the call ends with it or the interpreter raises it.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// What `ask` answers; once more, if a signal's handler has raised meanwhile: that is kept. None if
/// it fails by itself, which is reported.
pub fn undisturbed<T>(py: Python<'_>, ask: impl Fn() -> PyResult<T>) -> Option<T> {
    let raised = match ask() {
        Ok(answer) => return Some(answer),
        Err(error) => error,
    };
    match ask() {
        Ok(answer) => {
            RAISED.set(Some(raised));
            // Should the call end without having looked. SAFETY: the function takes no argument.
            unsafe { ffi::Py_AddPendingCall(Some(raise), std::ptr::null_mut()) };
            Some(answer)
        }
        Err(error) => {
            error.write_unraisable(py, None);
            None
        }
    }
}

/// What has been kept, and what handlers of signals raise now.
pub fn check_signals(py: Python<'_>) -> PyResult<()> {
    RAISED.take().map_or_else(|| py.check_signals(), Err)
}

/// The interpreter's main thread calls it between two instructions.
extern "C" fn raise(_: *mut c_void) -> c_int {
    let Some(error) = RAISED.take() else { return 0 };
    Python::attach(|py| error.restore(py));
    -1
}
