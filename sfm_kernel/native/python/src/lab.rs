//! The lab: an emulated wide area link between two network namespaces, and entering one.

use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::host::gil::without_gil;
use crate::transport::tcp::os_error;
use sfm_native::lab::{self, Counts, Direction, Link, Report, Settings};
use sfm_native::sync::lock;

/// Carries packets between two devices until it is closed.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct LabLink(Mutex<Option<Link>>);

impl LabLink {
    fn with<T: Send>(&self, py: Python<'_>, work: impl Send + FnOnce(&Link) -> T) -> PyResult<T> {
        let done = without_gil(py, || lock(&self.0).as_ref().map(work));
        done.ok_or_else(|| PyValueError::new_err("the link is closed"))
    }
}

#[pymethods]
impl LabLink {
    #[new]
    #[pyo3(signature = (one, other, seed=0, /))]
    fn new(one: RawFd, other: RawFd, seed: u64) -> PyResult<LabLink> {
        let devices = || Ok([duplicate(one)?, duplicate(other)?]);
        let link = devices().and_then(|devices| Link::start(devices, Default::default(), seed));
        Ok(LabLink(Mutex::new(Some(link.map_err(os_error)?))))
    }

    #[pyo3(signature = (back, /, *, delay_s=None, rate_bits_per_s=None, queue_bytes=None, loss=None, cross_bits_per_s=None, down=None))]
    #[allow(clippy::too_many_arguments)] // each is a setting of its own
    fn set(
        &self,
        py: Python<'_>,
        back: bool,
        delay_s: Option<f64>,
        rate_bits_per_s: Option<f64>,
        queue_bytes: Option<u64>,
        loss: Option<f64>,
        cross_bits_per_s: Option<f64>,
        down: Option<bool>,
    ) -> PyResult<()> {
        let direction = if back { Direction::Backward } else { Direction::Forward };
        let checked = |value: Option<f64>, least: f64, most: f64, name: &str| match value {
            Some(value) if !(least..=most).contains(&value) => {
                Err(PyValueError::new_err(format!("{name} is {least} to {most}, not {value}")))
            }
            value => Ok(value),
        };
        let delay_s = checked(delay_s, 0.0, 60.0, "delay_s")?;
        let rate = checked(rate_bits_per_s, 1.0, f64::INFINITY, "rate_bits_per_s")?;
        let loss = checked(loss, 0.0, 1.0, "loss")?;
        let cross = checked(cross_bits_per_s, 0.0, 1e11, "cross_bits_per_s")?;
        self.with(py, |link| {
            let now = link.settings(direction);
            let settings = Settings {
                delay: delay_s.map_or(now.delay, |delay| (delay * 1e9) as u64),
                rate: rate.unwrap_or(now.rate),
                queue: queue_bytes.unwrap_or(now.queue),
                loss: loss.unwrap_or(now.loss),
                cross: cross.unwrap_or(now.cross),
                down: down.unwrap_or(now.down),
            };
            link.set(direction, settings);
        })
    }

    fn forget(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Link::forget)
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Link::clear)
    }

    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        report_dict(py, &self.with(py, Link::report)?)
    }

    fn close(&self, py: Python<'_>) {
        without_gil(py, || drop(lock(&self.0).take()));
    }
}

fn report_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let about = PyDict::new(py);
    about.set_item("there", counts(py, &report.counts[0])?)?;
    about.set_item("back", counts(py, &report.counts[1])?)?;
    about.set_item("late_count", report.late.count())?;
    about.set_item("late_mean_s", report.late.mean() / 1e9)?;
    about.set_item("late_p99_s", seconds(report.late.quantile(0.99)))?;
    about.set_item("late_max_s", seconds(report.late.largest()))?;
    about.set_item("waited_s", report.waited.map(seconds))?;
    about.set_item("reset", report.reset)?;
    about.set_item("refused", report.refused)?;
    about.set_item("failure", &report.failure)?;
    Ok(about)
}

fn counts<'py>(py: Python<'py>, counts: &Counts) -> PyResult<Bound<'py, PyDict>> {
    let about = PyDict::new(py);
    let named = [
        ("offered", counts.offered),
        ("offered_bytes", counts.offered_bytes),
        ("delivered", counts.delivered),
        ("delivered_bytes", counts.delivered_bytes),
        ("full", counts.full),
        ("lost", counts.lost),
        ("cut", counts.cut),
        ("others", counts.others),
        ("others_full", counts.others_full),
        ("deepest", counts.deepest),
    ];
    for (name, number) in named {
        about.set_item(name, number)?;
    }
    Ok(about)
}

/// A copy of a descriptor that stays Python's.
fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: borrowed for one call; if it is not open, the kernel returns an error.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
}

/// Make a network device in this thread's namespace; it exists as long as the descriptor is open.
#[pyfunction]
#[pyo3(signature = (name, /))]
pub fn open_tun(name: &str) -> PyResult<RawFd> {
    lab::open_tun(name).map(IntoRawFd::into_raw_fd).map_err(os_error)
}

/// Move this thread from some of its namespaces into new ones (os.unshare of Python 3.12).
#[pyfunction]
#[pyo3(signature = (flags, /))]
pub fn unshare(flags: i32) -> PyResult<()> {
    // SAFETY: concerns this process alone.
    result(unsafe { libc::unshare(flags) })
}

/// Move this thread into the namespace of a descriptor (os.setns of Python 3.12).
#[pyfunction]
#[pyo3(signature = (namespace, /))]
pub fn setns(namespace: RawFd) -> PyResult<()> {
    let of_any_kind = 0;
    // SAFETY: concerns this thread alone.
    result(unsafe { libc::setns(namespace, of_any_kind) })
}

fn result(status: i32) -> PyResult<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(os_error(io::Error::last_os_error()))
    }
}
