//! Table: the members of a world, as a directory server keeps them.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::records::{PyJoinRequest, PyMember};
use crate::errors::endpoint_error;
use sfm_endpoint::directory::table::Table;
use sfm_endpoint::directory::Member;
use sfm_native::sync::lock;

/// A world's table, see `_native.pyi`.
#[pyclass(name = "Table", module = "sfm_kernel._native", frozen)]
pub struct PyTable(Mutex<Table>);

impl PyTable {
    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.0)
    }
}

pub fn members(members: &[Member]) -> Vec<PyMember> {
    members.iter().cloned().map(PyMember).collect()
}

#[pymethods]
impl PyTable {
    #[new]
    fn new() -> PyTable {
        PyTable(Mutex::default())
    }

    #[getter]
    fn members(&self) -> Vec<PyMember> {
        members(&self.table().members)
    }

    #[getter]
    fn departed(&self) -> Vec<PyMember> {
        members(&self.table().departed)
    }

    /// Enter a newcomer; `lives` is asked about each member first, since it may run anything.
    fn admit(
        &self,
        py: Python<'_>,
        request: &Bound<'_, PyJoinRequest>,
        lives: &Bound<'_, PyAny>,
    ) -> PyResult<PyMember> {
        let mut living = HashSet::new();
        for member in self.members() {
            let uid = member.0.uid.clone();
            if lives.call1((member,))?.is_truthy()? {
                living.insert(uid);
            }
        }
        let admitted = self.table().admit(&request.get().0, |member| living.contains(&member.uid));
        admitted.map(PyMember).map_err(|failure| endpoint_error(py, failure))
    }

    fn find(&self, uid: &str) -> Option<PyMember> {
        self.table().find(uid).cloned().map(PyMember)
    }

    fn remove(&self, uid: &str) -> bool {
        self.table().remove(uid)
    }

    fn dumps<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.table().dumps())
    }

    #[staticmethod]
    fn loads(py: Python<'_>, text: &[u8]) -> PyResult<PyTable> {
        let table = Table::loads(text).map_err(|failure| endpoint_error(py, failure))?;
        Ok(PyTable(Mutex::new(table)))
    }
}
