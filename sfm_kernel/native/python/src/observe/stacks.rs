//! The frames of other threads, for observers.
//!
//! A frame is no object of its own: the interpreter makes one when somebody asks for it, and it
//! refers to memory that the frame's thread uses again as soon as the function returns. In Python
//! 3.11 the memory for that object may come from a garbage collection. A collection runs finalizers
//! of the program, which release the GIL: the frame's thread goes on, and the object refers to
//! whatever lies there then. So a stack is read in one go, in which no other thread has the GIL: no
//! collection, and no Python code.

use std::ffi::c_int;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{ffi, intern};

use crate::host::gil::InCall;
use crate::host::location::frame_functions;

/// Frames of a stack, at most, counted from the innermost: the objects take memory of the program.
const DEEPEST: usize = 10_000;

/// A frame's code, its line, and the name of its module.
type Frame<'py> = (Bound<'py, PyAny>, c_int, Bound<'py, PyString>);

/// The frames of each thread, innermost first, by the thread's identity.
#[pyfunction]
pub fn stacks(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let _in_call = InCall::enter(py); // an audit hook may run
    let current_frames = py.import(intern!(py, "sys"))?.getattr(intern!(py, "_current_frames"))?;
    let read = undivided(|| {
        let innermost = current_frames.call0()?.cast_into::<PyDict>()?;
        Ok::<_, PyErr>(innermost.iter().map(|(id, frame)| (id, stack(frame))).collect::<Vec<_>>())
    });
    let stacks = PyDict::new(py);
    for (id, frames) in read? {
        stacks.set_item(id, frames.into_iter().map(Read::named).collect::<Vec<_>>())?;
    }
    Ok(stacks)
}

/// The frame of a coroutine, which may run in another thread; None if it has ended.
#[pyfunction]
#[pyo3(signature = (coroutine, /))]
pub fn frame_of<'py>(coroutine: &Bound<'py, PyAny>) -> Option<Frame<'py>> {
    let py = coroutine.py();
    let _in_call = InCall::enter(py);
    undivided(|| Read::of(&coroutine.getattr(intern!(py, "cr_frame")).ok()?)).map(Read::named)
}

/// The result of `read`, during which no garbage is collected.
fn undivided<T>(read: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            if self.0 {
                // SAFETY: with the GIL.
                unsafe { ffi::PyGC_Enable() };
            }
        }
    }
    // SAFETY: with the GIL.
    let _restore = Restore(unsafe { ffi::PyGC_Disable() } == 1);
    read()
}

/// What is read of a frame in one go.
struct Read<'py> {
    code: Bound<'py, PyAny>,
    line: c_int,
    globals: Bound<'py, PyAny>,
}

impl<'py> Read<'py> {
    /// None if it is no frame.
    fn of(frame: &Bound<'py, PyAny>) -> Option<Read<'py>> {
        let (py, functions) = (frame.py(), frame_functions()?);
        if frame.get_type().as_type_ptr() as usize != functions.frame_type {
            return None;
        }
        let object = frame.as_ptr().cast();
        // SAFETY: a frame. Its attributes could run an audit hook; these functions do not.
        unsafe {
            Some(Read {
                code: Bound::from_owned_ptr_or_opt(py, ffi::PyFrame_GetCode(object).cast())?,
                line: ffi::PyFrame_GetLineNumber(object),
                globals: Bound::from_owned_ptr_or_opt(py, (functions.globals)(object))?,
            })
        }
    }

    fn named(self) -> Frame<'py> {
        let py = self.code.py();
        let name = self.globals.get_item(intern!(py, "__name__")).ok();
        let name = name.and_then(|name| name.cast_into().ok());
        (self.code, self.line.max(0), name.unwrap_or_else(|| PyString::new(py, "")))
    }
}

/// A frame and its callers.
fn stack(innermost: Bound<'_, PyAny>) -> Vec<Read<'_>> {
    let (py, mut frames, mut next) = (innermost.py(), Vec::new(), Some(innermost));
    while let Some(frame) = next.filter(|_| frames.len() < DEEPEST) {
        let (Some(read), Some(functions)) = (Read::of(&frame), frame_functions()) else { break };
        frames.push(read);
        // SAFETY: a frame, as `Read::of` has found; a new reference.
        next = unsafe {
            Bound::from_owned_ptr_or_opt(py, (functions.back)(frame.as_ptr().cast()).cast())
        };
    }
    frames
}
