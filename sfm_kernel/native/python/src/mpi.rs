//! Python around MPI's calls: mpi4py makes them, without the GIL as a rule.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::mpi::home::{self, Engines, Found, Home};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sfm_endpoint::sites::{self, NOWHERE};
use sfm_endpoint::{Error, Kind, Name, Program, Result, Surroundings};
use sfm_native::code_location;
use sfm_native::core::Core;

use super::channel::Channel;
use super::frames;
use super::here;
use super::host::bystanders;
use super::inbox::Inbox;
use super::segment::parse_uid;
use super::undisturbed::{check_signals, undisturbed};

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

struct PythonProgram {
    /// It comes to its end, and is told then what it has left: engines live on.
    ends: bool,
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
        let known =
            sites::get(site()).map(|site| site.location).filter(|one| code_location::is_kept(*one));
        // A long session has more calls than have numbers, and more code than is kept.
        let asked = || Python::try_attach(|py| undisturbed(py, || here::current(py)))?;
        code_location::set_here(known.or_else(asked).unwrap_or(0));
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

/// An engine's world, as the object has it that `set_mpi_world` was given.
static WORLD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Have MPI_Init, in this process, ask `world` who the engines are; see `sfm_kernel.mpi.engines`.
#[pyfunction]
#[pyo3(signature = (world, /))]
pub fn set_mpi_world(py: Python<'_>, world: Py<PyAny>) {
    if WORLD.set(py, world).is_ok() {
        ::mpi::host::set_engines(|first| {
            Python::try_attach(|py| undisturbed(py, || find(py, first)))??
        });
    }
}

/// See `mpi::host::refresh`.
#[pyfunction]
#[pyo3(signature = (anew, /))]
pub fn refresh_mpi(py: Python<'_>, anew: u64) {
    py.detach(|| ::mpi::host::refresh(anew));
}

/// How many bytes of MPI's standard sends another process may have without having received them.
#[pyfunction]
#[pyo3(signature = (nbytes, /))]
pub fn set_mpi_buffering(nbytes: usize) {
    ::mpi::host::set_buffering(nbytes);
}

type Listed<'py> = (u16, String, Bound<'py, PyAny>);

fn find(py: Python<'_>, first: bool) -> PyResult<::mpi::host::Found> {
    let world = WORLD.get(py).expect("set before").bind(py);
    let members: Option<(String, usize, Vec<Listed<'_>>)> =
        world.call_method0("members")?.extract()?;
    let Some((name, rank, listed)) = members else { return Ok(None) };
    let mut all = Vec::with_capacity(listed.len());
    for (slot, uid, name) in listed {
        let name = match name.extract() {
            Ok(rank) => Name::Rank(rank),
            Err(_) => Name::Text(name.extract()?),
        };
        all.push((slot, parse_uid(&uid)?, name));
    }
    let home = first.then(|| PyHome::new(world)).transpose()?;
    let home = home.map(|home| Box::new(home) as Box<dyn Home>);
    Ok(Some((Engines { world: name, rank, all }, home)))
}

/// An engine's end of its world. What it does not know of a process it asks Python.
struct PyHome {
    core: Arc<Core>,
    folder: PathBuf,
    world: Py<PyAny>,
    around: PythonProgram,
}

impl PyHome {
    fn new(world: &Bound<'_, PyAny>) -> PyResult<PyHome> {
        let inbox = world.getattr("inbox")?.cast_into::<Inbox>()?;
        let core = inbox.get().core.clone();
        let folder = inbox.get().folder.clone().unwrap_or_default();
        Ok(PyHome {
            core,
            folder,
            world: world.clone().unbind(),
            around: PythonProgram { ends: false },
        })
    }

    /// Ask about a process; None where it is not known, or the interpreter is at its end.
    fn ask<T>(
        &self,
        what: &str,
        process: usize,
        read: impl Fn(Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let uid = format!("{:032x}", home::uid_of(process)?);
        let ask = |py: Python<'_>| read(self.world.bind(py).call_method1(what, (&uid,))?);
        Python::try_attach(|py| undisturbed(py, || ask(py)))?
    }
}

impl Home for PyHome {
    fn core(&self) -> &Arc<Core> {
        &self.core
    }

    fn surroundings(&self) -> &dyn Surroundings {
        &self.around
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn uid(&self, process: usize) -> u128 {
        home::uid_of(process).unwrap_or(0)
    }

    fn channel(&self, process: usize) -> Found {
        let made = self.ask("channel", process, |channel| {
            Ok(channel.cast::<Channel>().ok().map(|channel| channel.get().channel().clone()))
        });
        made.flatten().map_or(Found::Lost, Found::Channel)
    }

    fn is_near(&self, process: usize) -> bool {
        self.ask("is_near", process, |near| near.extract()).unwrap_or(false)
    }

    fn has_lost(&self, process: usize) -> bool {
        !self.ask("lives", process, |lives| lives.extract()).unwrap_or(false)
    }

    fn site(&self, process: usize) -> Option<String> {
        self.ask("site", process, |site| site.extract())
    }

    fn is_program(&self) -> bool {
        false
    }

    /// Python leaves the world.
    fn leave(&self) {}
}
