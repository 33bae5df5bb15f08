//! Whether the program's variables change from call to call, for observers.
//!
//! A program whose messages flow for ever may be a livelock, or count its rounds. So at an observer's
//! request the next call notes a number that differs if the variables do, and the request after that
//! publishes it: only the program's own thread reads its variables, in a call that it makes anyway.
//! The same goes for the calls of MPI that mpi4py makes.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use sfm_native::code_location::CodeLocation;
use sfm_native::core::Core;

/// The answer that nobody can tell; those that tell have the uppermost bit.
const UNKNOWN: u64 = 2;

/// Requests after which a call at another line than the last one answers, too.
const PATIENCE: u32 = 3;

/// Requests that no call has answered.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// The line of the latest answer.
static LOCATION: AtomicU64 = AtomicU64::new(0);
/// The answer that is to be published; 0 if there is none.
static NUMBER: AtomicU64 = AtomicU64::new(0);

static READER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Have `function()` give a number that differs if the variables of the thread that calls it do; 0
/// if it cannot tell. Only the first call has an effect.
#[pyfunction]
#[pyo3(signature = (function, /))]
pub fn set_variables(py: Python<'_>, function: Py<PyAny>) {
    let _ = READER.set(py, function);
}

/// An observer asks: publish the answer to its last request, and let a call answer this one.
pub fn ask(core: &Core) {
    // SYNC POINT variables: the number before its line is read.
    let number = NUMBER.swap(0, Ordering::Acquire);
    if number != 0 {
        core.shared().record_variables(LOCATION.load(Ordering::Relaxed), number);
    }
    ASKED.fetch_add(1, Ordering::Relaxed);
}

/// Whether an observer waits for an answer.
#[inline]
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed) != 0
}

/// Answer, in a call at `location`, if an observer has asked. An error of a signal handler meanwhile
/// is passed on. `is_pythons`: whether the program's Python code makes the call; otherwise native
/// code does, whose variables nobody reads.
pub fn answer(
    py: Python<'_>,
    location: CodeLocation,
    is_pythons: impl FnOnce() -> bool,
) -> PyResult<()> {
    let asked = ASKED.load(Ordering::Relaxed);
    if asked == 0 || location == 0 {
        return Ok(());
    }
    let last = LOCATION.load(Ordering::Relaxed);
    if last != 0 && last != location && asked < PATIENCE {
        return Ok(());
    }
    ASKED.store(0, Ordering::Relaxed);
    if let Some(reader) = READER.get(py) {
        let number: u64 = if is_pythons() { reader.bind(py).call0()?.extract()? } else { 0 };
        LOCATION.store(location, Ordering::Relaxed);
        // SYNC POINT variables: the line before the number.
        NUMBER.store(number.max(UNKNOWN), Ordering::Release);
    }
    Ok(())
}
