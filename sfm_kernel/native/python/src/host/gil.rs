//! Releasing the GIL while a call waits; and threads that are in a call when the interpreter ends.
//!
//! Before Python 3.14, a thread that requests the GIL when the interpreter is ending is unwound
//! immediately (`pthread_exit`). C frames tolerate that. In Rust frames destructors run, without the
//! GIL, until the process aborts. So a thread that is in a call when the process ends leaves the
//! call before, or never returns, as in Python 3.14.
//!
//! ```text
//! waiting thread                                thread that ends the interpreter (`end`)
//!   AWAY += 1, releases the GIL                   OVER = true            (O)
//!   sleeps                                        releases the GIL
//!   AWAY -= 1            (A)                      sleeps until all threads in calls are AWAY (I)
//!   OVER? never returns                           takes the GIL, for the last time
//!   takes the GIL
//! ```
//!
//! All of these are sequentially consistent (but for ENTERED, which the GIL orders): if A comes before I, the ending thread waits for it; if
//! not, A comes after O, and the waiting thread sees OVER.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

/// Time that the end of the interpreter waits for threads that run Python inside a call of ours (a
/// predicate, a check): once for those that may still return, once for those that need not.
const PATIENCE: Duration = Duration::from_secs(1);

/// Threads in a call that waits, or runs Python. Changed and read only with the GIL held.
static ENTERED: AtomicIsize = AtomicIsize::new(0);
/// Those of them that have released the GIL.
static AWAY: AtomicIsize = AtomicIsize::new(0);
/// Threads unknown to Python that are in `visit`.
static VISITORS: AtomicIsize = AtomicIsize::new(0);
/// The interpreter is ending: no thread returns but the one that ends it.
static OVER: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Calls that this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// This thread ends the interpreter.
    static LAST: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread is in a call that waits, or runs Python.
pub struct InCall<'py>(PhantomData<Python<'py>>);

impl<'py> InCall<'py> {
    /// Does not return if the interpreter is ending.
    pub fn enter(py: Python<'py>) -> InCall<'py> {
        if OVER.load(Ordering::Relaxed) && !LAST.get() {
            py.detach(never_return);
        }
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        if depth == 0 {
            count(1);
        }
        InCall(PhantomData)
    }
}

impl Drop for InCall<'_> {
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth == 0 {
            count(-1);
        }
    }
}

/// The caller holds the GIL, which makes it one step, and orders it with the reads in `end`: a plain
/// store, since a call makes two of them.
fn count(change: isize) {
    ENTERED.store(ENTERED.load(Ordering::Relaxed) + change, Ordering::Relaxed);
}

/// A thread without the GIL; when it is dropped, the thread is about to request the GIL again.
struct Away;

impl Drop for Away {
    fn drop(&mut self) {
        // SYNC POINT py/detached: A, with O and I in `end`.
        AWAY.fetch_sub(1, Ordering::SeqCst);
        if OVER.load(Ordering::SeqCst) && !LAST.get() {
            AWAY.fetch_add(1, Ordering::SeqCst);
            never_return();
        }
    }
}

fn never_return() {
    loop {
        std::thread::park();
    }
}

/// Release the GIL during `work`. All code here does it through this function: see above.
pub fn without_gil<T: Send>(py: Python<'_>, work: impl Send + FnOnce() -> T) -> T {
    let _in_call = InCall::enter(py);
    AWAY.fetch_add(1, Ordering::SeqCst);
    py.detach(|| {
        let _away = Away;
        work()
    })
}

/// Within `without_gil`: take the GIL for `work`, such as signal handlers, and release it again.
pub fn with_gil_again<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    drop(Away); // which does not return if the interpreter is ending
    Python::attach(|py| {
        let outcome = work(py);
        AWAY.fetch_add(1, Ordering::SeqCst);
        outcome
    })
}

/// Do `work` with the GIL, in a thread that Python does not know. Waits for the GIL; None if the
/// interpreter is ending.
pub fn visit<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    VISITORS.fetch_add(1, Ordering::SeqCst);
    // SYNC POINT py/detached: as A, with O and I in `end`.
    let over = OVER.load(Ordering::SeqCst);
    let outcome = if over { None } else { Python::try_attach(work) };
    VISITORS.fetch_sub(1, Ordering::SeqCst);
    outcome
}

/// Python's exit calls it after the endpoints were closed, which wakes all threads that wait for
/// messages.
#[pyfunction]
fn end(py: Python<'_>) {
    let this_thread = isize::from(DEPTH.get() > 0);
    let no_others = || ENTERED.load(Ordering::SeqCst) <= this_thread;
    wait(py, no_others); // they may hold locks that other exit functions of Python need
    LAST.set(true);
    // SYNC POINT py/detached: O and I, with A.
    OVER.store(true, Ordering::SeqCst);
    let all_away = || ENTERED.load(Ordering::SeqCst) - AWAY.load(Ordering::SeqCst) <= this_thread;
    wait(py, || VISITORS.load(Ordering::SeqCst) == 0 && (no_others() || all_away()));
}

fn wait(py: Python<'_>, over: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !over() && Instant::now() < deadline {
        py.detach(|| std::thread::sleep(Duration::from_micros(200)));
    }
}

/// In a forked child: it has no other thread.
#[pyfunction]
fn forked() {
    ENTERED.store(isize::from(DEPTH.get() > 0), Ordering::SeqCst);
    AWAY.store(0, Ordering::SeqCst);
    VISITORS.store(0, Ordering::SeqCst);
    OVER.store(false, Ordering::SeqCst);
}

/// Register `end` and `forked` with Python.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(end, module)?,))?;
    let after = [("after_in_child", wrap_pyfunction!(forked, module)?)].into_py_dict(py)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&after))?;
    Ok(())
}
