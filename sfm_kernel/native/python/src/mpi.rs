//! Python around MPI's calls: mpi4py makes them, without the GIL as a rule.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sfm_endpoint::{Error, Kind, Program, Result, Surroundings};
use sfm_native::places::Place;

use super::here;
use super::host::bystanders;

/// What `set_mpi` was given.
struct Hooks {
    interrupted: Py<PyAny>,
    call: Py<PyAny>,
}

static HOOKS: PyOnceLock<Hooks> = PyOnceLock::new();

/// Have MPI's calls of this process, from now on, know Python around them: `interrupted(error)` is
/// called when a signal's handler has raised, in the frame whose call ends with a code for that;
/// `call()` says what that frame calls, None where that cannot be known. Only the first has an effect.
#[pyfunction]
#[pyo3(signature = (interrupted, call, /))]
pub fn set_mpi(py: Python<'_>, interrupted: Py<PyAny>, call: Py<PyAny>) {
    if HOOKS.set(py, Hooks { interrupted, call }).is_ok() {
        ::mpi::host::set(|| Box::new(PythonProgram));
    }
}

/// A trace function that raises `error` in place of the first exception that it is told of. One that
/// is written in Python would stand in the traceback.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct RaiseInstead {
    error: Py<PyAny>,
    end: Py<PyAny>,
}

#[pymethods]
impl RaiseInstead {
    /// `end(frame)` takes the function out again.
    #[new]
    fn new(error: Py<PyAny>, end: Py<PyAny>) -> RaiseInstead {
        RaiseInstead { error, end }
    }

    fn __call__(
        slf: Bound<'_, Self>,
        frame: &Bound<'_, PyAny>,
        event: &str,
        _argument: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        if event != "exception" {
            return Ok(slf.into_any().unbind());
        }
        let py = slf.py();
        let error = slf.get().error.bind(py);
        // The interpreter has noted the frame with what it told of.
        let trace = py.import("types")?.getattr("TracebackType")?.call1((
            error.getattr("__traceback__")?,
            frame,
            frame.getattr("f_lasti")?,
            frame.getattr("f_lineno")?,
        ))?;
        slf.get().end.call1(py, (frame,))?;
        error.setattr("__traceback__", trace)?;
        Err(PyErr::from_value(error.clone()))
    }
}

struct PythonProgram;

impl Surroundings for PythonProgram {
    fn signals(&self) -> Result<()> {
        let ended = |py: Python<'_>| {
            let Err(error) = py.check_signals() else { return Ok(()) };
            let hook = HOOKS.get(py).expect("set before");
            if let Err(other) = hook.interrupted.call1(py, (error.value(py),)) {
                other.write_unraisable(py, None);
            }
            Err(Error::new(Kind::Interrupted, "the program has interrupted this call"))
        };
        Python::try_attach(ended).unwrap_or(Ok(())) // None: the interpreter is at its end
    }

    fn has_addresses(&self) -> bool {
        false // they are all in mpi4py
    }

    fn place(&self) -> Option<Place> {
        let found = Python::try_attach(|py| here::current(py).ok())??;
        (found != 0).then_some(found)
    }

    fn call(&self) -> Option<String> {
        Python::try_attach(|py| HOOKS.get(py)?.call.call0(py).ok()?.extract(py).ok()?)?
    }

    fn bystanders(&self) -> String {
        let told = Python::try_attach(|py| bystanders(py).ok()?);
        told.flatten().unwrap_or_else(|| Program.bystanders())
    }
}
