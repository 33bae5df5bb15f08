//! The calls of a group that are worth it: `barrier` and `allreduce` in shared memory.
//!
//! One round at the tree takes less time than a few lines of Python around it. For what is rare, or
//! goes through messages, they ask Python, through `CollectiveHooks`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::collectives::combining_tree::{Meeting, PyCombiningTree};
use crate::endpoint::calls::looked_up;
use crate::errors::error;
use crate::host::gil::InCall;
use crate::observe::location;
use sfm_native::combining_tree::fold::Kind;

/// Calls that a member remembers, to compare them with those of others.
const HISTORY: usize = 64;

/// What one member of a group has called so far.
#[pyclass(module = "sfm_kernel._native", frozen)]
#[derive(Default)]
pub struct Ledger {
    counts: Mutex<Counts>,
    /// The member is in a call.
    busy: AtomicBool,
}

#[derive(Default)]
struct Counts {
    count: u64,
    /// A hash of all calls.
    chain: u64,
    made: VecDeque<Py<PyAny>>,
    tree: Option<Py<PyCombiningTree>>,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        // Held for moves of memory only.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Ledger {
    #[new]
    fn new() -> Ledger {
        Ledger::default()
    }

    /// Begin a call: one at a time. Raises CollectiveError.
    fn enter(&self, py: Python<'_>) -> PyResult<()> {
        match self.busy.swap(true, Ordering::Acquire) {
            false => Ok(()),
            true => {
                let why = "another thread of this process, or what a signal handler has \
                           interrupted, is in a collective of this group: one at a time";
                Err(error(py, "CollectiveError", (why,)))
            }
        }
    }

    fn leave(&self) {
        self.busy.store(false, Ordering::Release);
    }

    #[getter]
    fn busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Write down a call.
    fn begin(&self, made: Py<PyAny>, mark: u64) {
        let forgotten = {
            let mut counts = self.lock();
            counts.count += 1;
            counts.chain = counts.chain.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(mark);
            counts.made.push_back(made);
            if counts.made.len() > HISTORY {
                counts.made.pop_front()
            } else {
                None
            }
        };
        drop(forgotten); // not under the lock: it may run Python
    }

    /// Forget all calls, and the tree.
    fn reset(&self) {
        drop(std::mem::take(&mut *self.lock()));
    }

    #[getter]
    fn count(&self) -> u64 {
        self.lock().count
    }

    #[getter]
    fn chain(&self) -> u64 {
        self.lock().chain
    }

    /// The latest calls, as they were written down.
    fn made<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let made: Vec<_> = self.lock().made.iter().map(|one| one.clone_ref(py)).collect();
        PyList::new(py, made)
    }

    #[getter]
    fn tree(&self, py: Python<'_>) -> Option<Py<PyCombiningTree>> {
        self.lock().tree.as_ref().map(|tree| tree.clone_ref(py))
    }

    #[setter]
    fn set_tree(&self, tree: Option<Py<PyCombiningTree>>) {
        let before = std::mem::replace(&mut self.lock().tree, tree);
        drop(before);
    }
}

/// The member is in a call as long as this lives.
struct Inside<'a>(&'a Ledger);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// What is known of a call before it is made.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Known {
    /// The codes of its operation (combining_tree/fold.rs) for numbers and for arrays; 0 where there is none.
    number: u32,
    array: u32,
    mark: u64,
    /// What is written down: the call, and what else must be equal; arrays add type and shape.
    made: Py<PyTuple>,
}

#[pymethods]
impl Known {
    #[new]
    fn new(number: u32, array: u32, mark: u64, made: Py<PyTuple>) -> Known {
        Known { number, array, mark, made }
    }
}

/// What a group inherits `barrier` and `allreduce` from.
#[pyclass(subclass, frozen, module = "sfm_kernel._native")]
pub struct Collectives {
    wires: PyOnceLock<Wires>,
}

struct Wires {
    ledger: Py<Ledger>,
    /// Called about every 100 ms of a wait, with the places of those who are missing.
    tick: Py<PyAny>,
    barrier: Py<Known>,
    /// Operation -> Known.
    known: Py<PyDict>,
    /// operator.add
    add: Py<PyAny>,
    hooks: Py<CollectiveHooks>,
}

impl Wires {
    fn hooks(&self) -> &CollectiveHooks {
        self.hooks.get()
    }
}

/// Functions of Python for what is rare, documented in `_native.pyi`. Each is given the `Collectives`
/// first: bound to it they would keep it alive.
#[pyclass(frozen, module = "sfm_kernel._native")]
pub struct CollectiveHooks {
    barrier: Py<PyAny>,
    allreduce: Py<PyAny>,
    learn: Py<PyAny>,
    settle: Py<PyAny>,
    failed: Py<PyAny>,
}

#[pymethods]
impl CollectiveHooks {
    #[new]
    #[pyo3(signature = (*, barrier, allreduce, learn, settle, failed))]
    fn new(
        barrier: Py<PyAny>,
        allreduce: Py<PyAny>,
        learn: Py<PyAny>,
        settle: Py<PyAny>,
        failed: Py<PyAny>,
    ) -> CollectiveHooks {
        CollectiveHooks { barrier, allreduce, learn, settle, failed }
    }
}

#[pymethods]
impl Collectives {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Collectives {
        Collectives { wires: PyOnceLock::new() }
    }

    fn _wire(
        &self,
        py: Python<'_>,
        ledger: Py<Ledger>,
        tick: Py<PyAny>,
        barrier: Py<Known>,
        hooks: Py<CollectiveHooks>,
    ) -> PyResult<()> {
        let add = py.import("operator")?.getattr("add")?.unbind();
        let known = PyDict::new(py).unbind();
        let wires = Wires { ledger, tick, barrier, known, add, hooks };
        self.wires.set(py, wires).map_err(|_| PyRuntimeError::new_err("wired already"))
    }

    #[doc = include_str!("barrier.txt")]
    #[pyo3(signature = (*, algorithm=None))]
    fn barrier<'py>(
        slf: &Bound<'py, Self>,
        algorithm: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let _in_call = InCall::enter(py);
        location::mark(py)?;
        let wires = wires(slf)?;
        let tree = match algorithm {
            None => wires.ledger.get().tree(py),
            Some(_) => None,
        };
        let Some(tree) = tree else {
            return wires.hooks().barrier.bind(py).call1((slf, algorithm));
        };
        let (none, known) = (py.None().into_bound(py), wires.barrier.get());
        let made = known.made.bind(py).as_any();
        let done =
            quickly(slf, wires, tree.get(), (known.mark, 0), &none, &none, (&none, None), made)?;
        Ok(done.unwrap_or(none))
    }

    #[doc = include_str!("allreduce.txt")]
    #[pyo3(signature = (value, op=None, *, out=None, algorithm=None))]
    fn allreduce<'py>(
        slf: &Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
        op: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        algorithm: Option<&Bound<'py, PyString>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let _in_call = InCall::enter(py);
        location::mark(py)?;
        let wires = wires(slf)?;
        let op = op.unwrap_or(wires.add.bind(py));
        if algorithm.is_none() {
            if let Some(tree) = wires.ledger.get().tree(py) {
                if let Some(done) = allreduce(slf, wires, tree.get(), value, op, out)? {
                    return Ok(done);
                }
            }
        }
        wires.hooks().allreduce.bind(py).call1((slf, value, op, out, algorithm))
    }
}

fn wires<'a>(slf: &'a Bound<'_, Collectives>) -> PyResult<&'a Wires> {
    let wires = slf.get().wires.get(slf.py());
    wires.ok_or_else(|| PyRuntimeError::new_err("this group was never made"))
}

/// Whether this is a NumPy float64, which is a float, and to be one of NumPy's in the end.
pub fn is_float64(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyFloat>()
        && !value.is_exact_instance_of::<PyFloat>()
        && value.get_type().fully_qualified_name().is_ok_and(|name| name == "numpy.float64")
}

/// An allreduce of numbers; None where it is no matter of numbers.
fn allreduce<'py>(
    slf: &Bound<'py, Collectives>,
    wires: &Wires,
    tree: &PyCombiningTree,
    value: &Bound<'py, PyAny>,
    op: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = slf.py();
    let numpys = is_float64(value);
    let alone =
        numpys || value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>();
    let array = !alone && crate::packet::arrays::numbers(value).is_some();
    if !alone && !array || alone && out.is_some() {
        return Ok(None);
    }
    let known = match looked_up(wires.known.bind(py), op)? {
        Some(known) => known,
        None => {
            let learnt = wires.hooks().learn.bind(py).call1((slf, op))?;
            if learnt.is_none() {
                return Ok(None);
            }
            let known = learnt.cast_exact::<Known>()?.get();
            if known.number == 0 && known.array == 0 {
                return Ok(None); // not remembered: there may be many, each with what it closes over
            }
            wires.known.bind(py).set_item(op, &learnt)?;
            learnt
        }
    };
    let known = known.cast_exact::<Known>()?.get();
    let code = if alone { known.number } else { known.array };
    if code == 0 {
        return Ok(None);
    }
    let made = known.made.bind(py);
    if alone {
        let none = py.None().into_bound(py);
        let ways = (known.mark, code);
        let done = quickly(slf, wires, tree, ways, op, value, (&none, None), made.as_any())?;
        return match done {
            Some(number) if numpys && number.is_exact_instance_of::<PyFloat>() => {
                value.get_type().call1((number,)).map(Some)
            }
            done => Ok(done),
        };
    }
    let about = (
        made.get_item(0)?,
        made.get_item(1)?,
        value.getattr(intern!(py, "dtype"))?,
        value.getattr(intern!(py, "shape"))?,
    );
    let made = about.into_pyobject(py)?;
    let fresh = match out {
        Some(out) => out.clone(),
        None => value.call_method1(intern!(py, "copy"), ("C",))?,
    };
    quickly(slf, wires, tree, (known.mark, code), op, value, (&fresh, out), made.as_any())
}

/// One round at the tree, written down; None where nothing was done.
#[expect(clippy::too_many_arguments, reason = "what a call has")]
fn quickly<'py>(
    slf: &Bound<'py, Collectives>,
    wires: &Wires,
    tree: &PyCombiningTree,
    (mark, code): (u64, u32),
    op: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    (out, given): (&Bound<'py, PyAny>, Option<&Bound<'py, PyAny>>),
    made: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = slf.py();
    let ledger = wires.ledger.get();
    let Some(meeting) = Meeting::of(value, None, code, out) else { return Ok(None) };
    ledger.enter(py)?;
    let _inside = Inside(ledger);
    ledger.begin(made.clone().unbind(), mark);
    let call = [ledger.chain(), 0];
    let text = || made.get_item(0).and_then(|name| name.extract()).unwrap_or_default();
    match tree.round(py, call, &meeting, out, &text, wires.tick.bind(py)) {
        Ok((kind, result)) if kind <= Kind::Floats as u32 => Ok(Some(result)),
        Ok((kind, result)) => {
            let settle = wires.hooks().settle.bind(py);
            let settled = settle.call1((slf, kind, result, value, op, made, given));
            if settled.is_err() {
                tree.break_off(py)?; // Stop may have come before it could; harmless else
            }
            settled.map(Some)
        }
        Err(failure) => wires.hooks().failed.bind(py).call1((slf, failure)).map(Some),
    }
}
