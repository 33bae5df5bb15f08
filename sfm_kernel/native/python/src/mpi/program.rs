//! Python around MPI's calls: mpi4py makes them, without the GIL as a rule.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sfm_endpoint::sites::{self, NOWHERE};
use sfm_endpoint::{Error, Kind, Program, Result, Surroundings};
use sfm_native::code_location;

use super::frames;
use crate::host::python::bystanders;
use crate::host::undisturbed::{check_signals, undisturbed};
use crate::observe::location;

/// What `set_mpi` was given.
struct Hooks {
    interrupted: Py<PyAny>,
    call: Py<PyAny>,
    site: Py<PyAny>,
}

static HOOKS: PyOnceLock<Hooks> = PyOnceLock::new();

/// Have MPI's calls of this process, from now on, know Python around them: `interrupted(error)` is
/// called when a signal's handler has raised, in the frame whose call ends with a code for that;
/// `call()` says what that frame calls, None where that cannot be known; `site(frame)` says what a
/// frame calls, in which code and line, None where it is none of the program's. Only the first has an
/// effect.
#[pyfunction]
#[pyo3(signature = (interrupted, call, site, /))]
pub fn set_mpi(py: Python<'_>, interrupted: Py<PyAny>, call: Py<PyAny>, site: Py<PyAny>) {
    if HOOKS.set(py, Hooks { interrupted, call, site }).is_ok() {
        frames::learn(py);
        ::mpi::host::set(|| Box::new(PythonProgram { ends: true }));
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

/// A program in Python, as the MPI library knows it.
pub struct PythonProgram {
    /// It comes to its end, and observers are told then what it has left; engines live on.
    pub ends: bool,
}

impl Surroundings for PythonProgram {
    fn signals(&self) -> Result<()> {
        let ended = |py: Python<'_>| {
            let Err(error) = check_signals(py) else { return Ok(()) };
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

    fn call(&self) -> Option<String> {
        Python::try_attach(|py| {
            let call = &HOOKS.get(py)?.call;
            undisturbed(py, || call.call0(py)?.extract(py))?
        })?
    }

    fn enter(&self) {
        if code_location::helping() != 0 {
            return;
        }
        let known = sites::get(site())
            .map(|site| site.location)
            .filter(|one| code_location::is_registered(*one));
        // A long session has more calls than have numbers, and more code than is kept.
        let asked = || Python::try_attach(|py| undisturbed(py, || location::current(py)))?;
        code_location::set_current(known.or_else(asked).unwrap_or(0));
    }

    fn site(&self) -> u32 {
        if self.ends {
            site()
        } else {
            NOWHERE
        }
    }

    fn bystanders(&self) -> String {
        let told = Python::try_attach(|py| undisturbed(py, || bystanders(py)));
        told.flatten().flatten().unwrap_or_else(|| Program.bystanders())
    }
}

fn site() -> u32 {
    frames::site(|py, frame| HOOKS.get(py).expect("set before").site.call1(py, (frame,)))
}

/// How many bytes of MPI's standard sends another process may have without having received them.
#[pyfunction]
#[pyo3(signature = (nbytes, /))]
pub fn set_mpi_buffering(nbytes: usize) {
    ::mpi::host::set_buffering(nbytes);
}
