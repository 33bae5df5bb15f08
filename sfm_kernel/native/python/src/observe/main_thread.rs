//! The location of a Python program's main thread, for observers.
//!
//! Its frames can be read only with the GIL, for which the network thread must not wait. So each
//! examination runs in a new thread, which takes the GIL. The system call that the main thread waits
//! in is read from /proc without the GIL.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::host::gil::visit;
use sfm_native::clock::now;
use sfm_native::code_location::{location, register};
use sfm_native::core::Core;
use sfm_native::main_thread::{In, SystemCall};
use sfm_native::segment::Activity;

/// A thread that gets the GIL within this time did not have to wait for another thread.
const UNCONTENDED: Duration = Duration::from_millis(2);

static FINDER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Have `function()` find the main thread: the text of its code for observers, the line, and whether
/// it waits there for input; None if it is in no line of the program. Only the first call has an
/// effect.
#[pyfunction]
#[pyo3(signature = (function, /))]
pub fn set_main_line(py: Python<'_>, function: Py<PyAny>) {
    let _ = FINDER.set(py, function);
}

type Found = Option<(String, u32, bool)>;

/// An observer asks for the main thread's location: start to examine it.
pub fn examine(core: &Arc<Core>) {
    let shared = core.shared();
    if !shared.activity_is(Activity::Running) || !shared.main.ask(now()) {
        return;
    }
    // Read before requesting the GIL: otherwise the main thread may be found waiting for it.
    let call = SystemCall::current();
    let visitor = core.clone();
    let thread = std::thread::Builder::new().name("sfm-main-thread".into()).spawn(move || {
        let (shared, begun) = (visitor.shared(), Instant::now());
        let found = visit(|py| {
            let contended = begun.elapsed() > UNCONTENDED;
            // With the GIL: a thread that forks has the GIL, so the child inherits no lock that
            // this thread holds.
            let (location, asks) = line(py)
                .map_or((0, false), |(code, line, asks)| (location(register(code), line), asks));
            shared.codes.note(location);
            (contended, location, asks)
        });
        let (contended, location, asks) = found.unwrap_or_default();
        let is_in = call.map_or(In::Code, |call| call.is_in(contended));
        shared.main.publish(if asks { In::Input } else { is_in }, location, now());
    });
    if thread.is_err() {
        shared.main.publish(In::Code, 0, now());
    }
}

fn line(py: Python<'_>) -> Found {
    let found = FINDER.get(py)?.bind(py).call0().and_then(|found| found.extract::<Found>());
    found.unwrap_or_default() // an error here does not concern the program
}
