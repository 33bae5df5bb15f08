//! MPI in an engine: the list of engines, and the channels to them, which Python provides.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::mpi::membership::{Found, Membership};
use ::mpi::{uid_of, Engines};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sfm_endpoint::{Name, Surroundings};
use sfm_native::core::Core;

use super::program::PythonProgram;
use crate::host::undisturbed::undisturbed;
use crate::transport::channel::Channel;
use crate::transport::inbox::Inbox;
use crate::transport::segment::parse_uid;

/// An engine's world, as `set_mpi_world` was given it.
struct World {
    inbox: Py<Inbox>,
    members: Py<PyAny>,
    channel: Py<PyAny>,
    is_near: Py<PyAny>,
    lives: Py<PyAny>,
    site: Py<PyAny>,
}

static WORLD: PyOnceLock<World> = PyOnceLock::new();

/// Have MPI_Init, in this process, find the engines with these functions; see `_native.pyi`. Only
/// the first call has an effect.
#[pyfunction]
#[pyo3(signature = (*, inbox, members, channel, is_near, lives, site))]
pub fn set_mpi_world(
    py: Python<'_>,
    inbox: Py<Inbox>,
    members: Py<PyAny>,
    channel: Py<PyAny>,
    is_near: Py<PyAny>,
    lives: Py<PyAny>,
    site: Py<PyAny>,
) {
    let world = World { inbox, members, channel, is_near, lives, site };
    if WORLD.set(py, world).is_ok() {
        ::mpi::host::set_engines(|first| {
            Python::try_attach(|py| undisturbed(py, || find(py, first)))??
        });
    }
}

/// See `mpi::refresh`.
#[pyfunction]
#[pyo3(signature = (anew, /))]
pub fn refresh_mpi(py: Python<'_>, anew: u64) {
    py.detach(|| ::mpi::refresh(anew));
}

type Listed<'py> = (u16, String, Bound<'py, PyAny>);

fn find(py: Python<'_>, first: bool) -> PyResult<::mpi::host::Found> {
    let world = WORLD.get(py).expect("set before");
    let members: Option<(String, usize, Vec<Listed<'_>>)> =
        world.members.bind(py).call0()?.extract()?;
    let Some((name, rank, listed)) = members else { return Ok(None) };
    let mut all = Vec::with_capacity(listed.len());
    for (slot, uid, name) in listed {
        let name = match name.extract() {
            Ok(rank) => Name::Rank(rank),
            Err(_) => Name::Text(name.extract()?),
        };
        all.push((slot, parse_uid(&uid)?, name));
    }
    let home = first.then(|| Box::new(PyHome::new(world)) as Box<dyn Membership>);
    Ok(Some((Engines { world: name, rank, all }, home)))
}

/// An engine's end of its world. It asks Python about the other processes.
struct PyHome {
    core: Arc<Core>,
    folder: PathBuf,
    world: &'static World,
    around: PythonProgram,
}

impl PyHome {
    fn new(world: &'static World) -> PyHome {
        let inbox = world.inbox.get();
        let folder = inbox.folder.clone().unwrap_or_default();
        PyHome { core: inbox.core.clone(), folder, world, around: PythonProgram }
    }

    /// Ask Python about a process; None if it is not known, or the interpreter is ending.
    fn ask<T>(
        &self,
        function: &Py<PyAny>,
        process: usize,
        read: impl Fn(Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let uid = format!("{:032x}", uid_of(process)?);
        let ask = |py: Python<'_>| read(function.bind(py).call1((&uid,))?);
        Python::try_attach(|py| undisturbed(py, || ask(py)))?
    }
}

impl Membership for PyHome {
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
        uid_of(process).unwrap_or(0)
    }

    fn channel(&self, process: usize) -> Found {
        let made = self.ask(&self.world.channel, process, |channel| {
            Ok(channel.cast::<Channel>().ok().map(|channel| channel.get().channel().clone()))
        });
        made.flatten().map_or(Found::Lost, Found::Channel)
    }

    fn is_near(&self, process: usize) -> bool {
        self.ask(&self.world.is_near, process, |near| near.extract()).unwrap_or(false)
    }

    fn has_lost(&self, process: usize) -> bool {
        !self.ask(&self.world.lives, process, |lives| lives.extract()).unwrap_or(false)
    }

    fn site(&self, process: usize) -> Option<String> {
        self.ask(&self.world.site, process, |site| site.extract())
    }

    fn is_program(&self) -> bool {
        false
    }

    /// Python's endpoint leaves the world.
    fn leave(&self) {}
}
