//! The location of a Python program's main thread, for observers.
//!
//! Its frames can be read only with the GIL, for which the network thread must not wait. So each
//! examination runs in a new thread, which takes the GIL. The system call that the main thread waits
//! in is read from /proc.

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

/// Have `function()` find the main thread: the text of its code for observers, the line, whether it
/// waits there for input, and whether only a message could release a lock that it waits for; None if
/// it is in no line of the program. Only the first call has an effect.
#[pyfunction]
#[pyo3(signature = (function, /))]
pub fn set_main_line(py: Python<'_>, function: Py<PyAny>) {
    let _ = FINDER.set(py, function);
}

/// Whether a thread of this process waits for a lock or in an event loop, without a limit of time.
#[pyfunction]
#[pyo3(signature = (thread, /))]
pub fn sleeps(thread: u32) -> bool {
    SystemCall::of_thread(thread).is_some_and(|call| call.is_for_ever())
}

type Found = Option<(String, u32, bool, bool)>;

/// An observer asks for the main thread's location: start to examine it.
pub fn examine(core: &Arc<Core>) {
    let shared = core.shared();
    if !shared.activity_is(Activity::Running) || !shared.main.ask(now()) {
        return;
    }
    let before = SystemCall::current();
    let visitor = core.clone();
    let thread = std::thread::Builder::new().name("sfm-main-thread".into()).spawn(move || {
        let (shared, begun) = (visitor.shared(), Instant::now());
        let found = visit(|py| {
            let contended = begun.elapsed() > UNCONTENDED;
            // Read with the GIL, too: the main thread may have gone on while this one waited for
            // it. But now it may itself wait for the GIL, and before it may not.
            let call = SystemCall::current()
                .filter(|call| !call.is_lock() || before.as_ref() == Some(call));
            // With the GIL: a thread that forks has the GIL, so the child inherits no lock that
            // this thread holds.
            let found = line(py).map(|(code, line, asks, alone)| {
                let is_held = alone && call.as_ref().is_some_and(SystemCall::is_for_ever);
                let known = if asks { Some(In::Input) } else { is_held.then_some(In::Held) };
                (location(register(code), line), known)
            });
            let (location, known) = found.unwrap_or_default();
            shared.codes.note(location);
            let is_in = || call.as_ref().map_or(In::Code, |call| call.is_in(contended));
            (known.unwrap_or_else(is_in), location)
        });
        let (is_in, location) = found.unwrap_or((In::Code, 0));
        shared.main.publish(is_in, location, now());
    });
    if thread.is_err() {
        shared.main.publish(In::Code, 0, now());
    }
}

fn line(py: Python<'_>) -> Found {
    let found = FINDER.get(py)?.bind(py).call0().and_then(|found| found.extract::<Found>());
    found.unwrap_or_default() // an error here does not concern the program
}
