//! Where the main thread of a program in Python is, for observers.
//!
//! Its frames can be read only with the GIL, and whoever serves observers must not wait for that.
//! So a thread of its own asks for it, once for each look; the system says without the GIL what the
//! main thread waits in.

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

/// Who gets the GIL so soon has had nobody to wait for.
const AT_ONCE: Duration = Duration::from_millis(2);

static FINDER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Have `function()` tell where the main thread is: the text of its code for observers, the line,
/// and whether it waits there for somebody's input; None where it is in no line of the program.
/// Only the first has an effect.
#[pyfunction]
#[pyo3(signature = (function, /))]
pub fn set_main_line(py: Python<'_>, function: Py<PyAny>) {
    let _ = FINDER.set(py, function);
}

type Found = Option<(String, u32, bool)>;

/// An observer wishes to know where the main thread is: find out, in some time.
pub fn look(core: &Arc<Core>) {
    let shared = core.shared();
    if !shared.activity_is(Activity::Running) || !shared.main.ask(now()) {
        return;
    }
    // Before the GIL is asked for: else the main thread may be found waiting for it.
    let call = SystemCall::current();
    let visitor = core.clone();
    let thread = std::thread::Builder::new().name("sfm-look".into()).spawn(move || {
        let (shared, begun) = (visitor.shared(), Instant::now());
        let found = visit(|py| {
            let contended = begun.elapsed() > AT_ONCE;
            // With the GIL: who forks has it, and no lock of a thread that the child lacks.
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
    // Of no interest to the program: it has not asked.
    found.unwrap_or_default()
}
