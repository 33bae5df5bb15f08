//! The native calls of a group: `barrier` and `allreduce` in shared memory.
//!
//! One round in the tree takes less time than a few lines of Python around it. Rare cases, and
//! calls that go through messages, are done in Python, through `CollectiveHooks`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFloat, PyInt, PyString, PyTuple};

use crate::collectives::combining_tree::{Contribution, PyCombiningTree};
use crate::endpoint::calls::looked_up;
use crate::errors::error;
use crate::host::gil::InCall;
use crate::host::location;
use sfm_native::code_location::{self, CodeLocation};
use sfm_native::combining_tree::fold::CellKind;
use sfm_native::sync::lock;

/// Calls that a member remembers, to compare them with those of others.
const HISTORY: usize = 64;

/// The error of a second collective in one process.
pub const ONE_AT_A_TIME: &str = "this process is already in a collective of this group, in \
    another thread or interrupted by a signal handler: call one at a time";

/// The record of one member's calls of a group so far.
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
    made: VecDeque<(Py<PyAny>, CodeLocation)>,
    tree: Option<Py<PyCombiningTree>>,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        lock(&self.counts) // held for moves of memory only
    }

    fn record(&self, made: Py<PyAny>, mark: u64, location: CodeLocation) {
        let forgotten = {
            let mut counts = self.lock();
            counts.count += 1;
            counts.chain = counts.chain.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(mark);
            counts.made.push_back((made, location));
            if counts.made.len() > HISTORY {
                counts.made.pop_front()
            } else {
                None
            }
        };
        drop(forgotten); // without the lock: it may run Python
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
            true => Err(error(py, "CollectiveError", (ONE_AT_A_TIME,))),
        }
    }

    fn leave(&self) {
        self.busy.store(false, Ordering::Release);
    }

    #[getter]
    fn busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Record a call, in the program's line.
    fn begin(&self, py: Python<'_>, made: Py<PyAny>, mark: u64) -> PyResult<()> {
        self.record(made, mark, location::current(py)?);
        Ok(())
    }

    /// Forget all calls, and the tree.
    fn reset(&self) {
        let before = std::mem::take(&mut *self.lock());
        drop(before); // as in `record`
    }

    #[getter]
    fn count(&self) -> u64 {
        self.lock().count
    }

    #[getter]
    fn chain(&self) -> u64 {
        self.lock().chain
    }

    /// The latest calls, as they were recorded, with their locations.
    fn made(&self, py: Python<'_>) -> Vec<(Py<PyAny>, CodeLocation)> {
        let counts = self.lock();
        counts.made.iter().map(|(made, location)| (made.clone_ref(py), *location)).collect()
    }

    /// The location of the latest call.
    #[getter]
    fn location(&self) -> CodeLocation {
        self.lock().made.back().map_or(0, |(_, location)| *location)
    }

    #[getter]
    fn tree(&self, py: Python<'_>) -> Option<Py<PyCombiningTree>> {
        self.lock().tree.as_ref().map(|tree| tree.clone_ref(py))
    }

    #[setter]
    fn set_tree(&self, tree: Option<Py<PyCombiningTree>>) {
        let before = std::mem::replace(&mut self.lock().tree, tree);
        drop(before); // as in `record`
    }
}

/// Ends the member's call when it is dropped.
struct Inside<'a>(&'a Ledger);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A prepared collective call.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Known {
    /// The codes of its operation (combining_tree/fold.rs) for numbers and for arrays; 0 for none.
    number: u32,
    array: u32,
    mark: u64,
    /// The record: the call, and what else must be equal; arrays add type and shape.
    made: Py<PyTuple>,
}

#[pymethods]
impl Known {
    #[new]
    fn new(number: u32, array: u32, mark: u64, made: Py<PyTuple>) -> Known {
        Known { number, array, mark, made }
    }
}

/// The base class of groups, with `barrier` and `allreduce`.
#[pyclass(subclass, frozen, module = "sfm_kernel._native")]
pub struct Collectives {
    wires: PyOnceLock<Wires>,
}

struct Wires {
    ledger: Py<Ledger>,
    /// Called about every 100 ms of a wait, with the indices of the missing members.
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

/// Python functions for rare cases, documented in `_native.pyi`. Their first argument is the
/// `Collectives`: bound methods would keep it alive.
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
        let call = (known.mark, 0);
        let done = round(slf, wires, tree.get(), call, &none, &none, (&none, None), made)?;
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

/// Whether this is a NumPy float64: a subclass of float, whose results have its type.
pub fn is_float64(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyFloat>()
        && !value.is_exact_instance_of::<PyFloat>()
        && value.get_type().fully_qualified_name().is_ok_and(|name| name == "numpy.float64")
}

/// An allreduce of numbers or arrays; None for other values.
fn allreduce<'py>(
    slf: &Bound<'py, Collectives>,
    wires: &Wires,
    tree: &PyCombiningTree,
    value: &Bound<'py, PyAny>,
    op: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = slf.py();
    let float64 = is_float64(value);
    let scalar =
        float64 || value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>();
    let array = !scalar && crate::packet::arrays::numbers(value).is_some();
    if !scalar && !array || scalar && out.is_some() {
        return Ok(None);
    }
    let known = match looked_up(wires.known.bind(py), op)? {
        Some(known) => known,
        None => {
            let learned = wires.hooks().learn.bind(py).call1((slf, op))?;
            if learned.is_none() {
                return Ok(None);
            }
            let known = learned.cast_exact::<Known>()?.get();
            if known.number == 0 && known.array == 0 {
                return Ok(None); // not cached: there may be many closures, each with its variables
            }
            wires.known.bind(py).set_item(op, &learned)?;
            learned
        }
    };
    let known = known.cast_exact::<Known>()?.get();
    let code = if scalar { known.number } else { known.array };
    if code == 0 {
        return Ok(None);
    }
    let made = known.made.bind(py);
    if scalar {
        let none = py.None().into_bound(py);
        let call = (known.mark, code);
        let done = round(slf, wires, tree, call, op, value, (&none, None), made.as_any())?;
        return match done {
            Some(number) if float64 && number.is_exact_instance_of::<PyFloat>() => {
                value.get_type().call1((number,)).map(Some)
            }
            done => Ok(done),
        };
    }
    let record = (
        made.get_item(0)?,
        made.get_item(1)?,
        value.getattr(intern!(py, "dtype"))?,
        value.getattr(intern!(py, "shape"))?,
    );
    let made = record.into_pyobject(py)?;
    let fresh = match out {
        Some(out) => out.clone(),
        None => value.call_method1(intern!(py, "copy"), ("C",))?,
    };
    round(slf, wires, tree, (known.mark, code), op, value, (&fresh, out), made.as_any())
}

/// One recorded round in the tree; None if nothing was done.
#[expect(clippy::too_many_arguments, reason = "the call's attributes")]
fn round<'py>(
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
    let Some(contribution) = Contribution::of(value, None, code, out) else { return Ok(None) };
    ledger.enter(py)?;
    let _inside = Inside(ledger);
    ledger.record(made.clone().unbind(), mark, code_location::current());
    let call = [ledger.chain(), 0];
    let text = || made.get_item(0).and_then(|name| name.extract()).unwrap_or_default();
    match tree.round(py, call, &contribution, out, &text, wires.tick.bind(py)) {
        Ok((kind, result)) if kind <= CellKind::Floats as u32 => Ok(Some(result)),
        Ok((kind, result)) => {
            let settle = wires.hooks().settle.bind(py);
            let settled = settle.call1((slf, kind, result, value, op, made, given));
            if settled.is_err() {
                tree.break_off(py)?; // in case Stop came before Python did it; otherwise harmless
            }
            settled.map(Some)
        }
        Err(failure) => wires.hooks().failed.bind(py).call1((slf, failure)).map(Some),
    }
}
