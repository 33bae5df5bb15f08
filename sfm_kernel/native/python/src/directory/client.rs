//! The client of a directory server. JSON is Python's: here it is text.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::host::gil::{visit, without_gil};
use crate::host::signals::waiting;
use sfm_endpoint::directory::client::keys::{self, Secret};
use sfm_endpoint::directory::client::Client;
use sfm_endpoint::host::Signals;
use sfm_native::wire::zmq::Key;

/// See `sfm_endpoint`.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct ServerClient {
    /// Always there until it is dropped.
    client: Option<Arc<Client>>,
}

/// The limit of a call, in seconds; too many are no limit.
fn limit(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

impl ServerClient {
    pub fn of(client: Arc<Client>) -> ServerClient {
        ServerClient { client: Some(client) }
    }

    fn get(&self) -> &Client {
        self.client.as_ref().expect("there until it is dropped")
    }
}

#[pymethods]
impl ServerClient {
    #[new]
    #[pyo3(signature = (libraries, world, url, key, is_gateway, patience))]
    fn new(
        py: Python<'_>,
        libraries: Vec<CString>,
        world: &str,
        url: &str,
        key: &[u8],
        is_gateway: bool,
        patience: f64,
    ) -> PyResult<ServerClient> {
        let client = waiting(py, |signals| {
            let secret = if is_gateway { Secret::Gateways(key) } else { Secret::World(key) };
            let library = keys::library(&libraries)?;
            Client::open(library, world, url, secret, limit(patience), signals)
        })?;
        Ok(ServerClient::of(Arc::new(client)))
    }

    #[getter]
    fn world(&self) -> &str {
        self.get().world()
    }

    #[getter]
    fn key(&self) -> &[u8] {
        self.get().key()
    }

    #[getter]
    fn pair(&self) -> (Key, Key) {
        let pair = self.get().pair();
        (pair.secret, pair.public)
    }

    #[getter]
    fn context(&self, py: Python<'_>) -> PyResult<usize> {
        let context = without_gil(py, || self.get().context().map(|context| context.address()));
        context.map_err(|error| errors::endpoint_error(py, error))
    }

    #[getter]
    fn breaks(&self, py: Python<'_>) -> u64 {
        without_gil(py, || self.get().breaks())
    }

    #[getter]
    fn refused(&self, py: Python<'_>) -> bool {
        without_gil(py, || self.get().is_refused())
    }

    fn ask<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        details: &str,
        body: &[u8],
        limit: f64,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)> {
        let limit = self::limit(limit);
        let ask = |signals: Signals<'_>| self.get().ask(kind, details, body, limit, signals);
        let (text, bodies) = waiting(py, ask)?;
        let bodies = bodies.iter().map(|body| PyBytes::new(py, body)).collect();
        Ok((PyBytes::new(py, &text), bodies))
    }

    fn subscribe(&self, py: Python<'_>, on_update: Py<PyAny>) -> PyResult<()> {
        let tell = move |state: Option<&[u8]>| {
            call(&on_update, |py| (state.map(|text| PyBytes::new(py, text).unbind()),));
        };
        let subscribed = without_gil(py, || self.get().subscribe(tell));
        subscribed.map_err(|error| errors::endpoint_error(py, error))
    }

    fn close(&self, py: Python<'_>) {
        without_gil(py, || self.get().close());
    }
}

impl Drop for ServerClient {
    fn drop(&mut self) {
        drop_without_gil(self.client.take());
    }
}

/// Call a function of Python's in a thread that it does not know, with what `arguments` gives; not
/// once the interpreter ends. What it raises is reported where the user sees it.
pub fn call<Arguments>(
    function: &Py<PyAny>,
    arguments: impl for<'py> FnOnce(Python<'py>) -> Arguments,
) where
    Arguments: for<'py> PyCallArgs<'py>,
{
    visit(|py| {
        let called = function.call1(py, arguments(py));
        called.map_err(|failure| failure.write_unraisable(py, Some(function.bind(py))))
    });
}

/// The thread of a server's updates, which ends with the last reference, may wait for the GIL.
pub fn drop_without_gil<T: Send>(directory: T) {
    Python::try_attach(|py| without_gil(py, || drop(directory)));
}
