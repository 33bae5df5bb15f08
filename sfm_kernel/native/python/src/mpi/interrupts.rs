//! What a signal handler raises while the program waits in an MPI call. The call can end only with an
//! error code, of which mpi4py makes an exception of its own: that one is replaced.
//!
//! No Python code runs here: the handler of another signal might raise in it, and the first exception
//! would be lost, or would not lead to the program.

use pyo3::prelude::*;

/// Make the present frame raise this error instead of the exception of its failing call: the frame
/// is traced until that exception is raised, and an exception of a trace function replaces it.
pub fn raise_instead(py: Python<'_>, error: PyErr) -> PyResult<()> {
    let sys = py.import("sys")?;
    let frame = sys.call_method0("_getframe")?;
    let (local, everywhere) = (frame.getattr("f_trace")?, sys.call_method0("gettrace")?);
    let error = error.into_value(py).into_any();
    let instead = RaiseInstead { error, local: local.unbind(), everywhere: everywhere.unbind() };
    let instead = Bound::new(py, instead)?;
    frame.setattr("f_trace", &instead)?;
    sys.call_method1("settrace", (instead,))?;
    Ok(())
}

/// The trace function. It is called for every new frame, too, and does not trace those.
#[pyclass(module = "sfm_kernel._native", frozen)]
struct RaiseInstead {
    error: Py<PyAny>,
    /// The trace functions of the frame and of the thread, which are there again when it has raised.
    local: Py<PyAny>,
    everywhere: Py<PyAny>,
}

#[pymethods]
impl RaiseInstead {
    fn __call__<'py>(
        slf: Bound<'py, Self>,
        frame: &Bound<'py, PyAny>,
        event: &str,
        _argument: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, Self>>> {
        match event {
            "call" => return Ok(None),
            "exception" => {}
            _ => return Ok(Some(slf)),
        }
        let (py, Self { error, local, everywhere }) = (slf.py(), slf.get());
        frame.setattr("f_trace", local)?;
        py.import("sys")?.call_method1("settrace", (everywhere,))?;
        let error = error.bind(py);
        // The interpreter has added the frame to the traceback of the exception that it reported.
        let trace = py.import("types")?.getattr("TracebackType")?.call1((
            error.getattr("__traceback__")?,
            frame,
            frame.getattr("f_lasti")?,
            frame.getattr("f_lineno")?,
        ))?;
        error.setattr("__traceback__", trace)?;
        Err(PyErr::from_value(error.clone()))
    }
}
