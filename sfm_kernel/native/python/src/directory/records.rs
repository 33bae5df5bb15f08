//! Member and JoinRequest: the directory's records.

use std::hash::{Hash, Hasher};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple};
use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::{Map, Value};

use super::local::check_site;
use crate::errors::{endpoint_error, error};
use sfm_endpoint::directory::{JoinRequest, Member};
use sfm_endpoint::Name;

/// A Python object of JSON's types as `T`. Raises TypeError if it is none.
fn from_json<T: DeserializeOwned>(object: &Bound<'_, PyAny>, what: &str) -> PyResult<T> {
    let json = object.py().import("json")?;
    let malformed = |why: String| PyTypeError::new_err(format!("{what}: {why}"));
    let text = json.call_method1("dumps", (object,));
    let text: String = text.map_err(|failure| malformed(failure.to_string()))?.extract()?;
    serde_json::from_str(&text).map_err(|failure| malformed(failure.to_string()))
}

/// As Python's objects of JSON's types.
fn to_json<'py>(py: Python<'py>, record: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(record).expect("texts and numbers");
    py.import("json")?.call_method1("loads", (text,))
}

fn info_of(info: Option<&Bound<'_, PyDict>>) -> PyResult<Map<String, Value>> {
    match info {
        Some(info) if !info.is_empty() => from_json(info, "info must consist of JSON's types"),
        _ => Ok(Map::new()),
    }
}

fn name_to_python<'py>(py: Python<'py>, name: &Name) -> PyResult<Bound<'py, PyAny>> {
    Ok(match name {
        Name::Rank(rank) => rank.into_pyobject(py)?.into_any(),
        Name::Text(text) => text.into_pyobject(py)?.into_any(),
    })
}

/// A name or a rank. Raises BadName if it is neither.
fn name_of(given: &Bound<'_, PyAny>) -> PyResult<Name> {
    if let Ok(text) = given.cast::<PyString>() {
        if let Ok(text) = text.to_str() {
            return Ok(Name::Text(text.to_owned()));
        }
    } else if given.is_exact_instance_of::<PyInt>() {
        if let Ok(rank) = given.extract() {
            return Ok(Name::Rank(rank));
        }
    }
    let why = format!("a name is a text of 1 to 64 characters, or a rank, not {}", given.repr()?);
    Err(error(given.py(), "BadName", (why,)))
}

/// Raises BadName if it is no rank.
fn rank_of(given: &Bound<'_, PyAny>) -> PyResult<i64> {
    match given.is_exact_instance_of::<PyInt>().then(|| given.extract().ok()).flatten() {
        Some(rank) => Ok(rank),
        None => {
            let why = format!("a rank is an integer, 0 or more, not {}", given.repr()?);
            Err(error(given.py(), "BadName", (why,)))
        }
    }
}

/// A member of a world, see `_native.pyi`.
#[pyclass(name = "Member", module = "sfm_kernel._native", frozen, eq, hash)]
pub struct PyMember(pub Member);

impl PartialEq for PyMember {
    fn eq(&self, other: &PyMember) -> bool {
        self.0.identity() == other.0.identity()
    }
}

impl Hash for PyMember {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.0.identity().hash(to);
    }
}

#[pymethods]
impl PyMember {
    #[new]
    #[pyo3(signature = (uid, slot, rank, name, pid, host, segment, address, info=None, site="", public=""))]
    #[expect(clippy::too_many_arguments, reason = "a record's fields")]
    fn new(
        uid: String,
        slot: usize,
        rank: Option<i64>,
        name: &Bound<'_, PyAny>,
        pid: i64,
        host: String,
        segment: String,
        address: String,
        info: Option<&Bound<'_, PyDict>>,
        site: &str,
        public: &str,
    ) -> PyResult<PyMember> {
        let (name, info) = (name_of(name)?, info_of(info)?);
        let (site, public) = (site.to_owned(), public.to_owned());
        let member =
            Member { uid, slot, rank, name, pid, host, segment, address, info, site, public };
        Ok(PyMember(member.at_its_site()))
    }

    /// The entry that `to_json` described; raises TypeError on a malformed record.
    #[staticmethod]
    fn from_json(record: &Bound<'_, PyAny>) -> PyResult<PyMember> {
        let member: Member = from_json(record, "malformed entry")?;
        Ok(PyMember(member.at_its_site()))
    }

    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_json(py, &self.0)
    }

    #[getter]
    fn uid(&self) -> &str {
        &self.0.uid
    }

    #[getter]
    fn slot(&self) -> usize {
        self.0.slot
    }

    #[getter]
    fn rank(&self) -> Option<i64> {
        self.0.rank
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        name_to_python(py, &self.0.name)
    }

    #[getter]
    fn pid(&self) -> i64 {
        self.0.pid
    }

    #[getter]
    fn host(&self) -> &str {
        &self.0.host
    }

    #[getter]
    fn segment(&self) -> &str {
        &self.0.segment
    }

    #[getter]
    fn address(&self) -> &str {
        &self.0.address
    }

    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.info.is_empty() {
            true => Ok(PyDict::new(py).into_any()),
            false => to_json(py, &self.0.info),
        }
    }

    #[getter]
    fn site(&self) -> &str {
        &self.0.site
    }

    #[getter]
    fn public(&self) -> &str {
        &self.0.public
    }

    #[getter]
    fn is_plain(&self) -> bool {
        self.0.is_plain()
    }

    /// The attributes by which observers identify it.
    fn identity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Member { name, rank, pid, host, site, uid, .. } = &self.0;
        let about = PyDict::new(py);
        about.set_item("name", name_to_python(py, name)?)?;
        about.set_item("rank", rank)?;
        about.set_item("pid", pid)?;
        about.set_item("host", host)?;
        about.set_item("site", site)?;
        about.set_item("uid", uid)?;
        Ok(about)
    }

    fn __repr__(&self) -> String {
        let Member { uid, rank, name, pid, host, .. } = &self.0;
        let rank = rank.map_or("None".to_owned(), |rank| rank.to_string());
        format!("Member(name={name}, rank={rank}, pid={pid}, host={host:?}, uid={uid:?})")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let from_json = slf.get_type().getattr("from_json")?;
        (from_json, (slf.get().to_json(slf.py())?,)).into_pyobject(slf.py())
    }
}

/// A process's request to join, see `_native.pyi`.
#[pyclass(name = "JoinRequest", module = "sfm_kernel._native", frozen)]
pub struct PyJoinRequest(pub JoinRequest);

#[pymethods]
impl PyJoinRequest {
    #[new]
    #[pyo3(signature = (uid, pid, host, segment, address, name=None, rank=None, guest=false,
        names=vec![], info=None, site=None, public=""))]
    #[expect(clippy::too_many_arguments, reason = "a record's fields")]
    fn new(
        py: Python<'_>,
        uid: String,
        pid: i64,
        host: String,
        segment: String,
        address: String,
        name: Option<&Bound<'_, PyAny>>,
        rank: Option<&Bound<'_, PyAny>>,
        guest: bool,
        names: Vec<Bound<'_, PyAny>>,
        info: Option<&Bound<'_, PyDict>>,
        site: Option<&Bound<'_, PyAny>>,
        public: &str,
    ) -> PyResult<PyJoinRequest> {
        let (name, rank) = (name.map(name_of).transpose()?, rank.map(rank_of).transpose()?);
        let names = names.iter().map(name_of).collect::<PyResult<_>>()?;
        let site = match site {
            Some(site) if !site.eq("")? => check_site(site, "site")?,
            _ => String::new(), // the machine's
        };
        let (info, public) = (info_of(info)?, public.to_owned());
        let request = JoinRequest {
            uid,
            pid,
            host,
            segment,
            address,
            name,
            rank,
            guest,
            names,
            info,
            site,
            public,
        };
        PyJoinRequest(request).checked(py)
    }

    /// The request from `to_json`'s result; raises TypeError if it is malformed.
    #[staticmethod]
    fn from_json(record: &Bound<'_, PyAny>) -> PyResult<PyJoinRequest> {
        PyJoinRequest(from_json(record, "malformed request")?).checked(record.py())
    }

    /// The request as JSON's own types.
    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_json(py, &self.0)
    }

    #[getter]
    fn address(&self) -> &str {
        &self.0.address
    }

    #[getter]
    fn public(&self) -> &str {
        &self.0.public
    }
}

impl PyJoinRequest {
    fn checked(self, py: Python<'_>) -> PyResult<PyJoinRequest> {
        self.0.check().map_err(|failure| endpoint_error(py, failure))?;
        Ok(self)
    }
}
