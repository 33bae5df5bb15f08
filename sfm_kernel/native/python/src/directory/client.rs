//! The client of a directory server. JSON is Python's: here it is text.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

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
        let call = move |state: Option<&[u8]>| {
            visit(|py| {
                let called = on_update.call1(py, (state.map(|text| PyBytes::new(py, text)),));
                called.map_err(|error| error.write_unraisable(py, Some(on_update.bind(py))))
            });
        };
        let subscribed = without_gil(py, || self.get().subscribe(call));
        subscribed.map_err(|error| errors::endpoint_error(py, error))
    }

    fn close(&self, py: Python<'_>) {
        without_gil(py, || self.get().close());
    }
}

impl Drop for ServerClient {
    /// Without the GIL, for which the subscriber's thread may wait.
    fn drop(&mut self) {
        let client = self.client.take();
        Python::try_attach(|py| without_gil(py, || drop(client)));
    }
}
