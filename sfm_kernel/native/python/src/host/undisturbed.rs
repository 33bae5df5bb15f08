//! Python code that runs inside a call of the program, which needs its result.
//!
//! A signal handler runs wherever the interpreter is. Its error must end the program's call, and not
//! the Python code inside it.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use pyo3::ffi;
use pyo3::prelude::*;

thread_local! {
    /// The error of a signal handler, until the call ends with it or the interpreter raises it.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// The result of `ask`. If a signal handler raises meanwhile, `ask` runs a second time, and the
/// handler's error is saved. None if `ask` itself fails; its error is reported.
pub fn undisturbed<T>(py: Python<'_>, ask: impl Fn() -> PyResult<T>) -> Option<T> {
    let raised = match ask() {
        Ok(answer) => return Some(answer),
        Err(error) => error,
    };
    match ask() {
        Ok(answer) => {
            let raised = raised.value(py).clone();
            // It leads to the handler through the code of `ask`, which is not the program's.
            let _ = raised.setattr("__traceback__", py.None());
            RAISED.set(Some(PyErr::from_value(raised.into_any())));
            // In case the call ends without `check_signals`. SAFETY: it takes no argument.
            unsafe { ffi::Py_AddPendingCall(Some(raise), std::ptr::null_mut()) };
            Some(answer)
        }
        Err(error) => {
            error.write_unraisable(py, None);
            None
        }
    }
}

/// Raise the saved error, or run signal handlers, which may raise.
pub fn check_signals(py: Python<'_>) -> PyResult<()> {
    RAISED.take().map_or_else(|| py.check_signals(), Err)
}

/// Raise the saved error; the interpreter's main thread calls it between two instructions.
extern "C" fn raise(_: *mut c_void) -> c_int {
    let Some(error) = RAISED.take() else { return 0 };
    Python::attach(|py| error.restore(py));
    -1
}
