//! The directory of a world on this machine, and its folders.

use std::ffi::{CString, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::client::{call, drop_without_gil, ServerClient};
use super::records::{PyJoinRequest, PyMember};
use super::table::members;
use crate::errors::{endpoint_error, error};
use crate::host::gil::without_gil;
use crate::host::signals::waiting;
use sfm_endpoint::directory::client::keys::library;
use sfm_endpoint::directory::folder::{self, Folder};
use sfm_endpoint::directory::{
    cleaning, roots, site, Changes, Directory, Gateway, Local, Remote, Seen,
};
use sfm_endpoint::{route, Error, Result};

fn told<T>(py: Python<'_>, done: Result<T>) -> PyResult<T> {
    done.map_err(|failure| endpoint_error(py, failure))
}

/// Paths as Python's texts.
fn texts(paths: Vec<PathBuf>) -> Vec<OsString> {
    paths.into_iter().map(PathBuf::into_os_string).collect()
}

/// The name of a world, as Python gives it. Raises BadName if it is no text.
fn text_of(world: &Bound<'_, PyAny>) -> PyResult<String> {
    match world.cast::<PyString>().ok().and_then(|text| text.to_str().ok()) {
        Some(text) => Ok(text.to_owned()),
        None => {
            let why = format!("world name {}: it is no text", world.repr()?);
            Err(error(world.py(), "BadName", (why,)))
        }
    }
}

/// A world's directory, see `_native.pyi`.
#[pyclass(name = "OpenDirectory", module = "sfm_kernel._native", frozen, subclass)]
pub struct PyDirectory(Option<Arc<dyn Directory>>);

impl PyDirectory {
    fn get(&self) -> &dyn Directory {
        &**self.0.as_ref().expect("there until it is dropped")
    }

    fn seen(&self, py: Python<'_>, fresh: bool) -> PyResult<Seen> {
        waiting(py, |signals| self.get().seen(fresh, signals))
    }
}

#[pymethods]
impl PyDirectory {
    #[getter]
    fn world(&self) -> &str {
        self.get().world()
    }

    #[getter]
    fn folder(&self) -> OsString {
        self.get().folder().as_os_str().to_owned()
    }

    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.get().key())
    }

    fn _join(&self, py: Python<'_>, request: &Bound<'_, PyJoinRequest>) -> PyResult<PyMember> {
        let request = &request.get().0;
        waiting(py, |signals| self.get().join(request, signals)).map(PyMember)
    }

    fn leave(&self, py: Python<'_>, member: &Bound<'_, PyMember>) -> PyResult<()> {
        let uid = &member.get().0.uid;
        waiting(py, |signals| self.get().leave(uid, signals))
    }

    fn members(&self, py: Python<'_>) -> PyResult<Vec<PyMember>> {
        Ok(members(&self.seen(py, true)?.members))
    }

    fn listed(&self, py: Python<'_>) -> PyResult<Vec<PyMember>> {
        Ok(members(&self.seen(py, false)?.members))
    }

    fn departed(&self, py: Python<'_>) -> PyResult<Vec<PyMember>> {
        Ok(members(&self.seen(py, false)?.departed))
    }

    fn alive(&self, py: Python<'_>, member: &Bound<'_, PyMember>) -> PyResult<bool> {
        let member = &member.get().0;
        waiting(py, |signals| Ok(self.get().alive(member, signals)))
    }

    fn why_departed(&self, py: Python<'_>, member: &Bound<'_, PyMember>) -> &'static str {
        let uid = &member.get().0.uid;
        without_gil(py, || self.get().why_departed(uid))
    }

    fn close(&self, py: Python<'_>) {
        without_gil(py, || self.get().close());
    }
}

impl Drop for PyDirectory {
    fn drop(&mut self) {
        drop_without_gil(self.0.take());
    }
}

/// The directory of a world on this machine, see `_native.pyi`.
#[pyclass(name = "LocalDirectory", module = "sfm_kernel._native", frozen, subclass,
    extends = PyDirectory)]
pub struct PyLocal(OsString);

#[pymethods]
impl PyLocal {
    #[new]
    #[pyo3(signature = (world, create=true))]
    fn new(
        py: Python<'_>,
        world: &Bound<'_, PyAny>,
        create: bool,
    ) -> PyResult<(PyLocal, PyDirectory)> {
        let world = text_of(world)?;
        let local = waiting(py, |signals| Local::open(&world, create, signals))?;
        let table = local.table_path().into_os_string();
        Ok((PyLocal(table), PyDirectory(Some(Arc::new(local)))))
    }

    #[getter]
    fn table(&self) -> OsString {
        self.0.clone()
    }
}

/// The directory that a server keeps, see `_native.pyi`.
#[pyclass(name = "RemoteDirectory", module = "sfm_kernel._native", frozen, subclass,
    extends = PyDirectory)]
pub struct PyRemote(Option<Arc<Remote>>);

impl PyRemote {
    fn get(&self) -> &Remote {
        self.0.as_ref().expect("there until it is dropped")
    }
}

impl Drop for PyRemote {
    fn drop(&mut self) {
        drop_without_gil(self.0.take());
    }
}

type GatewayEntry = (String, String, String, String);

fn gateways(listed: &[Gateway]) -> Vec<GatewayEntry> {
    let entry = |gateway: &Gateway| {
        let Gateway { uid, site, address, name } = gateway.clone();
        (uid, site, address, name)
    };
    listed.iter().map(entry).collect()
}

#[pymethods]
impl PyRemote {
    #[new]
    #[pyo3(signature = (libraries, world, url, key, notice))]
    fn new(
        py: Python<'_>,
        libraries: Vec<CString>,
        world: &Bound<'_, PyAny>,
        url: &str,
        key: &[u8],
        notice: Py<PyAny>,
    ) -> PyResult<(PyRemote, PyDirectory)> {
        let world = text_of(world)?;
        let notice = move |text: &str| call(&notice, |_| (text,));
        let remote = waiting(py, |signals| {
            let library = library(&libraries)?;
            Remote::open(library, &world, url, key, Box::new(notice), signals)
        })?;
        let remote = Arc::new(remote);
        Ok((PyRemote(Some(remote.clone())), PyDirectory(Some(remote))))
    }

    /// The client of its server.
    #[getter]
    fn server(&self) -> ServerClient {
        ServerClient::of(self.get().client().clone())
    }

    fn _gateways(&self, py: Python<'_>) -> PyResult<Vec<GatewayEntry>> {
        Ok(gateways(&waiting(py, |signals| self.get().gateways(signals))?))
    }

    fn _watch(&self, py: Python<'_>, changed: Py<PyAny>) {
        let tell = move |changes: &Changes| {
            let Changes { gateways: sites, members: all, departed } = changes;
            call(&changed, |_| (gateways(sites), members(all), departed.clone()));
        };
        without_gil(py, || self.get().watch(Box::new(tell)));
    }
}

/// A world's folder, held open, see `_native.pyi`.
#[pyclass(name = "WorldFolder", module = "sfm_kernel._native", frozen, subclass)]
pub struct PyFolder(Folder);

#[pymethods]
impl PyFolder {
    #[new]
    #[pyo3(signature = (world, *, create))]
    fn new(py: Python<'_>, world: &Bound<'_, PyAny>, create: bool) -> PyResult<PyFolder> {
        let world = text_of(world)?;
        waiting(py, |signals| Folder::open(&world, create, signals)).map(PyFolder)
    }

    #[getter]
    fn world(&self) -> &str {
        &self.0.world
    }

    #[getter]
    fn path(&self) -> OsString {
        self.0.path.clone().into_os_string()
    }

    fn fileno(&self) -> i32 {
        self.0.fileno()
    }

    fn close(&self) -> bool {
        self.0.close()
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(&self, _kind: Py<PyAny>, _raised: Py<PyAny>, _traceback: Py<PyAny>) {
        self.0.close();
    }
}

#[pyfunction]
pub fn root(py: Python<'_>) -> PyResult<OsString> {
    told(py, roots::root()).map(PathBuf::into_os_string)
}

#[pyfunction]
pub fn make_root(py: Python<'_>) -> PyResult<OsString> {
    told(py, folder::make_root()).map(PathBuf::into_os_string)
}

#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn make_folder(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    let failed = |failure| endpoint_error(py, Error::system(&path.display().to_string(), &failure));
    folder::make_folder(&path).map_err(failed)
}

#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn check_private(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    told(py, folder::check_private(&path))
}

#[pyfunction]
#[pyo3(signature = (world, /))]
pub fn check_world(world: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = text_of(world)?;
    told(world.py(), folder::check_world(&text))?;
    Ok(text)
}

#[pyfunction]
#[pyo3(signature = (site, /, given="site"))]
pub fn check_site(site: &Bound<'_, PyAny>, given: &str) -> PyResult<String> {
    let text = site.cast::<PyString>().ok().and_then(|text| text.to_str().ok());
    let Some(text) = text else {
        let name = site.repr()?;
        let why = format!("{given} is {name}, but the name of a site is a text, such as 'lyon'");
        return Err(error(site.py(), "BadName", (why,)));
    };
    told(site.py(), site::check_site(text, given))?;
    Ok(text.to_owned())
}

#[pyfunction]
#[pyo3(signature = (site, /))]
pub fn requested_site(py: Python<'_>, site: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
    match site {
        Some(site) => check_site(site, "site"),
        None => told(py, site::requested_site()),
    }
}

#[pyfunction]
#[pyo3(signature = (host, /))]
pub fn site_of_host(host: &str) -> String {
    site::site_of_host(host)
}

#[pyfunction]
#[pyo3(signature = (segment, /))]
pub fn is_alive(segment: PathBuf) -> bool {
    folder::is_alive(&segment)
}

#[pyfunction]
pub fn worlds(py: Python<'_>) -> PyResult<Vec<String>> {
    told(py, cleaning::worlds())
}

#[pyfunction]
pub fn remove_dead(py: Python<'_>) -> PyResult<()> {
    told(py, cleaning::remove_dead())
}

#[pyfunction]
pub fn clean_worlds(py: Python<'_>) -> PyResult<Vec<OsString>> {
    waiting(py, cleaning::clean).map(texts)
}

#[pyfunction]
#[pyo3(signature = (world, /))]
pub fn remove_world(world: &Bound<'_, PyAny>) -> PyResult<bool> {
    let text = text_of(world)?;
    waiting(world.py(), |signals| cleaning::remove_world(&text, signals))
}

#[pyfunction]
#[pyo3(signature = (world, /))]
pub fn sites_folder(py: Python<'_>, world: &str) -> PyResult<OsString> {
    told(py, cleaning::sites_folder(world)).map(PathBuf::into_os_string)
}

#[pyfunction]
#[pyo3(signature = (world, /))]
pub fn remove_sites(py: Python<'_>, world: &str) -> PyResult<Vec<OsString>> {
    told(py, cleaning::remove_sites(world)).map(texts)
}

#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn remove_unused(path: PathBuf) -> bool {
    cleaning::remove_unused(&path, false).is_some()
}

/// The size of a ring in this folder, in bytes.
#[pyfunction]
#[pyo3(signature = (folder, /))]
pub fn ring_bytes(py: Python<'_>, folder: PathBuf) -> PyResult<usize> {
    told(py, route::ring_bytes(&folder))
}

/// The size of an arena, in bytes.
#[pyfunction]
pub fn arena_bytes(py: Python<'_>) -> PyResult<usize> {
    told(py, route::arena_bytes())
}
