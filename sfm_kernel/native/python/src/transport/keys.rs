//! Pairs of keys, by which processes recognise each other, and the world's key.

use std::ffi::CString;

use pyo3::prelude::*;

use crate::errors::endpoint_error;
use crate::host::gil::without_gil;
use sfm_endpoint::directory::client::keys::{self, Secret};
use sfm_endpoint::{Error, Result};
use sfm_native::wire::zmq::{Key, Pair};

/// The secret and the public half of a pair.
fn halves(py: Python<'_>, pair: Result<Pair>) -> PyResult<(Key, Key)> {
    pair.map(|pair| (pair.secret, pair.public)).map_err(|error| endpoint_error(py, error))
}

/// A fresh pair. `libraries`: where libzmq may be, see `Library`.
#[pyfunction]
pub fn key_pair(py: Python<'_>, libraries: Vec<CString>) -> PyResult<(Key, Key)> {
    let fresh = |library| Pair::new(library).map_err(|why| Error::system("no key pair", &why));
    halves(py, keys::library(&libraries).and_then(fresh))
}

/// The pair that newcomers show a directory server.
#[pyfunction]
pub fn derived_pair(
    py: Python<'_>,
    libraries: Vec<CString>,
    key: &[u8],
    is_gateway: bool,
) -> PyResult<(Key, Key)> {
    let secret = if is_gateway { Secret::Gateways(key) } else { Secret::World(key) };
    halves(py, keys::library(&libraries).and_then(|library| secret.pair(library, key)))
}

#[pyfunction]
#[pyo3(signature = (key, /))]
pub fn check_key(py: Python<'_>, key: &[u8]) -> PyResult<()> {
    keys::check_key(key).map_err(|error| endpoint_error(py, error))
}

#[pyfunction]
#[pyo3(signature = (key, /))]
pub fn stretched(py: Python<'_>, key: &[u8]) -> PyResult<Vec<u8>> {
    without_gil(py, || keys::stretched(key)).map_err(|error| endpoint_error(py, error))
}
