//! Giving the GIL back while a call waits; and threads that are in a call when the interpreter ends.
//!
//! Before Python 3.14, a thread that wants the GIL when the interpreter is ending is unwound on the
//! spot (`pthread_exit`). Frames of C bear that. In those of Rust destructors run, without the GIL,
//! until the process aborts. So whoever is in a call when the process ends is out of it before, or
//! never comes back, as in Python 3.14.
//!
//! ```text
//! who waits                                     who ends the interpreter (`end`)
//!   AWAY += 1, gives the GIL back                 OVER = true            (O)
//!   sleeps                                        gives the GIL back
//!   AWAY -= 1            (A)                      sleeps until nobody is in a call but those AWAY (I)
//!   OVER? never comes back                        takes the GIL, for the last time
//!   takes the GIL
//! ```
//!
//! All of that is sequentially consistent: if A comes before I, it is waited for; if not, it comes
//! after O, and finds that it is over.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

/// How long the end of the interpreter waits for threads that run Python below a call of ours (a
/// predicate, a check): once for those that may still return, once for those that need not.
const PATIENCE: Duration = Duration::from_secs(1);

/// Threads in a call that waits, or runs Python. Changed with the GIL held only.
static ENTERED: AtomicIsize = AtomicIsize::new(0);
/// Those of them that have given the GIL back.
static AWAY: AtomicIsize = AtomicIsize::new(0);
/// Threads that Python does not know and that come to visit it.
static VISITORS: AtomicIsize = AtomicIsize::new(0);
/// The interpreter is ending: nobody comes back but the thread that ends it.
static OVER: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Calls that this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// It is the one that ends the interpreter.
    static LAST: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread is in a call that waits, or runs Python.
pub struct InCall<'py>(PhantomData<Python<'py>>);

impl<'py> InCall<'py> {
    /// Does not return where the interpreter is ending.
    pub fn enter(py: Python<'py>) -> InCall<'py> {
        if OVER.load(Ordering::Relaxed) && !LAST.get() {
            py.detach(never_come_back);
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

/// With the GIL, which makes it one step.
fn count(change: isize) {
    ENTERED.store(ENTERED.load(Ordering::Relaxed) + change, Ordering::SeqCst);
}

/// Without the GIL, and about to want it again.
struct Away;

impl Drop for Away {
    fn drop(&mut self) {
        // SYNC POINT py/detached: A, with O and I in `end`.
        AWAY.fetch_sub(1, Ordering::SeqCst);
        if OVER.load(Ordering::SeqCst) && !LAST.get() {
            AWAY.fetch_add(1, Ordering::SeqCst);
            never_come_back();
        }
    }
}

fn never_come_back() {
    loop {
        std::thread::park();
    }
}

/// Give the GIL back for the time of `work`. The only way to do so: see above.
pub fn without_gil<T: Send>(py: Python<'_>, work: impl Send + FnOnce() -> T) -> T {
    let _in_call = InCall::enter(py);
    AWAY.fetch_add(1, Ordering::SeqCst);
    py.detach(|| {
        let _away = Away;
        work()
    })
}

/// Do `work` with the GIL, in a thread that Python does not know. Waits for the GIL; None where the
/// interpreter is ending.
pub fn visit<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    VISITORS.fetch_add(1, Ordering::SeqCst);
    // SYNC POINT py/detached: as A, with O and I in `end`.
    let over = OVER.load(Ordering::SeqCst);
    let outcome = if over { None } else { Python::try_attach(work) };
    VISITORS.fetch_sub(1, Ordering::SeqCst);
    outcome
}

/// Python's exit runs it after what closes the endpoints, which wakes all who wait for messages.
#[pyfunction]
fn end(py: Python<'_>) {
    let own = isize::from(DEPTH.get() > 0);
    let nobody = || ENTERED.load(Ordering::SeqCst) <= own;
    wait(py, nobody); // they may hold locks that other functions of Python's exit want
    LAST.set(true);
    // SYNC POINT py/detached: O and I, with A.
    OVER.store(true, Ordering::SeqCst);
    let all_away = || ENTERED.load(Ordering::SeqCst) - AWAY.load(Ordering::SeqCst) <= own;
    wait(py, || VISITORS.load(Ordering::SeqCst) == 0 && (nobody() || all_away()));
}

fn wait(py: Python<'_>, over: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !over() && Instant::now() < deadline {
        py.detach(|| std::thread::sleep(Duration::from_micros(200)));
    }
}

/// In a forked child: no other thread has come with this one.
#[pyfunction]
fn forked() {
    ENTERED.store(isize::from(DEPTH.get() > 0), Ordering::SeqCst);
    AWAY.store(0, Ordering::SeqCst);
    VISITORS.store(0, Ordering::SeqCst);
    OVER.store(false, Ordering::SeqCst);
}

/// Have Python call these.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(end, module)?,))?;
    let after = [("after_in_child", wrap_pyfunction!(forked, module)?)].into_py_dict(py)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&after))?;
    Ok(())
}
