//! Python around the MPI calls, which mpi4py makes, usually without the GIL.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sfm_endpoint::modules::{self, Module};
use sfm_endpoint::sites::{self, NOWHERE};
use sfm_endpoint::{callers, Error, Kind, Program, ProgramCall, Reduction, Result, Surroundings};
use sfm_native::code_location;
use sfm_native::core::Core;

use super::frames;
use super::interrupts::raise_instead;
use crate::host::gil::{visit, without_gil};
use crate::host::python::bystanders;
use crate::host::undisturbed::{check_signals, undisturbed};
use crate::host::{location, variables};
use crate::observe::main_thread;

thread_local! {
    /// The number of the call that this thread is in, or was in last.
    static SITE: Cell<u32> = const { Cell::new(NOWHERE) };
}

/// The arguments of `set_mpi`.
struct Hooks {
    call: Py<PyAny>,
    site: Py<PyAny>,
    noted: Py<PyAny>,
    reduction: Py<PyAny>,
}

static HOOKS: PyOnceLock<Hooks> = PyOnceLock::new();

/// Connect this process's MPI calls with its Python program. `call()` returns the text of the present
/// frame's call and its arguments that MPI does not get, None if it is unknown; `site(frame)` returns
/// the text of a frame's call, its code and its line, None if it is not the program's. `noted()` is
/// called when the present call is about to raise because bytes that have come are no pickled
/// object; it returns a function that adds a text to that exception, or None.
/// `reduction()` returns the method, the operation and the root of the present reduction of objects,
/// and whether they are the same in each call of that line; None if the call is another one, or its
/// operation or root is unknown. Only the first call has an effect.
#[pyfunction]
#[pyo3(signature = (call, site, noted, reduction, /))]
pub fn set_mpi(
    py: Python<'_>,
    call: Py<PyAny>,
    site: Py<PyAny>,
    noted: Py<PyAny>,
    reduction: Py<PyAny>,
) {
    if HOOKS.set(py, Hooks { call, site, noted, reduction }).is_ok() {
        frames::learn(py);
        ::mpi::host::set(|| Box::new(PythonProgram));
    }
}

/// A program in Python, as the MPI library knows it.
pub struct PythonProgram;

impl Surroundings for PythonProgram {
    fn signals(&self) -> Result<()> {
        let ended = |py: Python<'_>| {
            let Err(error) = check_signals(py) else { return Ok(()) };
            if let Err(other) = raise_instead(py, error) {
                other.write_unraisable(py, None);
            }
            Err(Error::new(Kind::Interrupted, "the program has interrupted this call"))
        };
        Python::try_attach(ended).unwrap_or(Ok(())) // None: the interpreter is ending
    }

    fn has_addresses(&self) -> bool {
        false // they are all in mpi4py
    }

    fn call(&self) -> Option<ProgramCall> {
        let ask = |py: Python<'_>| {
            let call = &HOOKS.get(py)?.call;
            undisturbed(py, || call.call0(py)?.extract(py))?
        };
        let known: Option<(String, Vec<(String, String)>)> = Python::try_attach(ask)?;
        known.map(|(text, given)| ProgramCall { text, given })
    }

    fn reduction(&self) -> Option<Reduction> {
        let ask = |py: Python<'_>| {
            let reduction = &HOOKS.get(py)?.reduction;
            undisturbed(py, || reduction.call0(py)?.extract(py))?
        };
        let known: Option<(String, Option<String>, Option<usize>, bool)> = Python::try_attach(ask)?;
        known.map(|(method, op, root, is_fixed)| Reduction { method, op, root, is_fixed })
    }

    fn expect_failure(&self, why: &dyn Fn() -> String) {
        let ask = |py: Python<'_>| {
            let note = HOOKS.get(py).expect("set before").noted.call0(py)?;
            if !note.is_none(py) {
                note.call1(py, (why(),))?;
            }
            Ok(())
        };
        Python::try_attach(|py| undisturbed(py, || ask(py)));
    }

    fn enter(&self) {
        let site = site();
        SITE.set(site);
        let known = sites::get(site)
            .map(|site| site.location)
            .filter(|location| code_location::is_registered(*location));
        // A long session has more calls than there are numbers, and more code than the registry holds.
        let from_python = || Python::try_attach(|py| undisturbed(py, || location::current(py)))?;
        let location = known.or_else(from_python).unwrap_or(0);
        code_location::set_current(location);
        if variables::is_asked() {
            let answer = |py: Python<'_>| variables::answer(py, location, is_of_mpi4py);
            Python::try_attach(|py| undisturbed(py, || answer(py)));
        }
    }

    fn site(&self) -> u32 {
        SITE.get()
    }

    /// Takes a second at most: another thread may hold the GIL, or a stream, for longer.
    fn flush(&self) {
        let flush = || {
            let (flushed, is_flushed) = mpsc::channel();
            let work = move || {
                visit(flush_streams);
                let _ = flushed.send(());
            };
            if thread::Builder::new().name("sfm-flush".into()).spawn(work).is_ok() {
                let _ = is_flushed.recv_timeout(Duration::from_secs(1));
            }
        };
        if holds_gil() {
            Python::try_attach(|py| without_gil(py, flush));
        } else {
            flush();
        }
        Program.flush();
    }

    fn examine(&self, core: &Arc<Core>) {
        variables::ask(core);
        main_thread::examine(core);
    }

    fn bystanders(&self) -> String {
        let text = Python::try_attach(|py| undisturbed(py, || bystanders(py)));
        text.flatten().flatten().unwrap_or_else(|| Program.bystanders())
    }
}

/// Whether mpi4py has made this thread's present call for Python code: other extensions call MPI from
/// loops of their own.
fn is_of_mpi4py() -> bool {
    let is_it =
        |module: &Module| module.name.to_bytes().windows(12).any(|part| part == b"/mpi4py/MPI.");
    modules::find(callers::caller(), is_it).unwrap_or(false)
}

/// Whether this thread has the GIL. Every Python has the function, but not its stable interface.
fn holds_gil() -> bool {
    // SAFETY: looks up a name.
    let check = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PyGILState_Check".as_ptr()) };
    if check.is_null() {
        return false;
    }
    // SAFETY: the function's type.
    unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(check)() == 1 }
}

/// Flush Python's streams, which the program may have closed or replaced.
fn flush_streams(py: Python<'_>) {
    for name in ["stdout", "stderr"] {
        let stream = py.import("sys").and_then(|sys| sys.getattr(name));
        let _ = stream.and_then(|stream| stream.call_method0("flush"));
    }
}

fn site() -> u32 {
    frames::site(|py, frame| HOOKS.get(py).expect("set before").site.call1(py, (frame,)))
}

/// Set the bytes of MPI's standard sends that may wait at another process unreceived.
#[pyfunction]
#[pyo3(signature = (nbytes, /))]
pub fn set_mpi_buffering(nbytes: usize) {
    ::mpi::host::set_buffering(nbytes);
}
