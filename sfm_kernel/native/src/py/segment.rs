//! Segments: the own one, and looking into those of others.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::errors::shm_error;
use crate::segment::{self, Doing, Segment};
use crate::shm::is_dead;
use crate::trace::What;

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

/// State, counters and inbox summary of another process, read without its help.
#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn read_segment<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyDict>> {
    let folder = path.parent().unwrap_or(&path).to_string_lossy().into_owned();
    let dead = is_dead(&path);
    let segment = segment::open(&path, None).map_err(|failure| shm_error(py, failure, &folder))?;
    if !dead {
        // The owner's network thread writes it; it needs no GIL, so that a busy owner answers too.
        let version = segment.summary.version();
        segment.wishes.fetch_add(1, Ordering::SeqCst);
        segment.network.0.ring();
        py.detach(|| {
            let deadline = Instant::now() + Duration::from_millis(200);
            while segment.summary.version() == version && Instant::now() < deadline {
                std::thread::sleep(Duration::from_micros(200));
            }
        });
    }
    let state = PyDict::new(py);
    let doing = segment.doing.0.load(Ordering::Acquire);
    state.set_item("uid", format!("{:032x}", segment.uid()))?;
    state.set_item("alive", !dead && doing != Doing::Left as u32)?;
    state.set_item("state", Doing::name(doing))?;
    state.set_item("since", segment.since.load(Ordering::Relaxed) as f64 / 1e9)?;
    state.set_item("waits", segment.waits.read())?;
    state.set_item("info", segment.info.read())?;
    state.set_item("summary", segment.summary.read())?;
    for (name, counter) in [
        ("depth", &segment.depth),
        ("bytes", &segment.bytes),
        ("sent", &segment.sent),
        ("received", &segment.received),
    ] {
        state.set_item(name, counter.load(Ordering::Relaxed))?;
    }
    Ok(state)
}

/// place, seconds since 1970, what, peer, number, bytes
type Event = (u64, f64, &'static str, String, u64, u64);

/// The events of another process's trace from `start` on, and the place of the next.
#[pyfunction]
#[pyo3(signature = (path, start=0, /))]
pub fn read_trace(py: Python<'_>, path: PathBuf, start: u64) -> PyResult<(Vec<Event>, u64)> {
    let folder = path.parent().unwrap_or(&path).to_string_lossy().into_owned();
    let segment = segment::open(&path, None).map_err(|failure| shm_error(py, failure, &folder))?;
    let (events, next) = segment.trace.read(start);
    let shown = events.into_iter().map(|(place, event)| {
        let what = match event.what {
            What::Sent => "sent",
            What::Received => "received",
            What::Doing => Doing::name(event.number as u32),
        };
        let (peer, number) = match event.what {
            What::Doing => (String::new(), 0),
            _ => (format!("{:016x}", event.peer), event.number),
        };
        (place, event.time as f64 / 1e9, what, peer, number, event.bytes)
    });
    Ok((shown.collect(), next))
}
