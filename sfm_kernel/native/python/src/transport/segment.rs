//! Segments, as Python makes them.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::shm_error;
use sfm_native::segment::{self, Segment};

pub fn parse_uid(uid: &str) -> PyResult<u128> {
    match u128::from_str_radix(uid, 16) {
        Ok(number) if uid.len() == 32 => Ok(number),
        _ => Err(PyValueError::new_err(format!("a uid has 32 hexadecimal digits, not {uid:?}"))),
    }
}

/// A process's file in shared memory, locked while the process lives.
#[pyclass(name = "Segment", module = "sfm_kernel._native", frozen)]
pub struct PySegment {
    pub mapping: Mutex<Option<Segment>>,
    pub folder: PathBuf,
    path: PathBuf,
}

#[pymethods]
impl PySegment {
    #[staticmethod]
    fn create(py: Python<'_>, path: PathBuf, uid: &str, info: &str) -> PyResult<PySegment> {
        let folder = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let mapping = segment::create(&path, parse_uid(uid)?, info)
            .map_err(|failure| shm_error(py, failure, &folder.to_string_lossy()))?;
        Ok(PySegment { mapping: Mutex::new(Some(mapping)), folder, path })
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }
}
