//! Pairs of keys, by which processes recognise each other.

use std::ffi::CString;

use pyo3::prelude::*;

use crate::errors;
use sfm_native::wire::zmq::{Library, Pair};

/// The secret and the public half of a fresh pair. `libraries`: where libzmq may be, see `Library`.
#[pyfunction]
pub fn key_pair(py: Python<'_>, libraries: Vec<CString>) -> PyResult<(Vec<u8>, Vec<u8>)> {
    let failed = |why: String| errors::error(py, "WorldError", (format!("no key pair: {why}"),));
    let library = Library::load(&libraries).map_err(failed)?;
    let pair = Pair::new(library).map_err(|why| failed(why.to_string()))?;
    Ok((pair.secret.to_vec(), pair.public.to_vec()))
}
