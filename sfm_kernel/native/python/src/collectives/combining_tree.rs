//! CombiningTree: barriers and small reductions in memory that the members of a group share.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyList};

use crate::collectives::calls::{is_float64, ONE_AT_A_TIME};
use crate::errors::{closed, error, shm_error};
use crate::host::gil::InCall;
use crate::host::python::PyHost;
use crate::packet::arrays::{numbers, Numbers};
use crate::transport::inbox::Inbox;
use sfm_native::bell::Woken;
use sfm_native::calls::{self, Goal, Host, WaitFacts};
use sfm_native::combining_tree::fold::{Cell, CellKind, Op, ROOM};
use sfm_native::combining_tree::CombiningTree;
use sfm_native::segment::{Activity, INBOX_IRRELEVANT};

/// One member's end of a tree.
#[pyclass(name = "CombiningTree", module = "sfm_kernel._native", frozen)]
pub struct PyCombiningTree {
    tree: Mutex<CombiningTree>,
}

/// Outcomes of a round that are no `CellKind`. The last member to come has to combine the values.
pub const DUTY: u32 = 100;
/// The round was broken off.
pub const BROKEN: u32 = 101;
/// The value has to be pickled first; nothing was done.
pub const STRANGE: u32 = 102;

/// Observers do not see waits that are shorter than this.
const SHORT_WAIT: Duration = Duration::from_millis(1);

#[pymethods]
impl PyCombiningTree {
    #[new]
    fn new(
        py: Python<'_>,
        inbox: &Bound<'_, Inbox>,
        path: PathBuf,
        fresh: PathBuf,
        members: usize,
        index: usize,
    ) -> PyResult<PyCombiningTree> {
        if members == 0 || members > sfm_native::segment::SLOTS || index >= members {
            return Err(PyValueError::new_err(format!("no index {index} among {members} members")));
        }
        let folder = path.parent().unwrap_or(&path).to_string_lossy().into_owned();
        let core = inbox.get().core.clone();
        let tree = CombiningTree::open(core, &path, &fresh, members, index, false);
        let tree = tree.map_err(|failure| shm_error(py, failure, &folder))?;
        Ok(PyCombiningTree { tree: Mutex::new(tree) })
    }

    /// One round: takes this member's value, returns the outcome. See `_native.pyi`.
    #[pyo3(signature = (call, detail, op, value, packed, out, text, tick))]
    #[expect(clippy::too_many_arguments, reason = "one caller, which names them")]
    fn meet<'py>(
        &self,
        py: Python<'py>,
        call: u64,
        detail: u64,
        op: u32,
        value: &Bound<'py, PyAny>,
        packed: Option<&Bound<'py, PyBytes>>,
        out: &Bound<'py, PyAny>,
        text: &str,
        tick: &Bound<'py, PyAny>,
    ) -> PyResult<(u32, Bound<'py, PyAny>)> {
        let _in_call = InCall::enter(py);
        let packed = packed.map(|packed| packed.as_bytes());
        match Contribution::of(value, packed, op, out) {
            Some(contribution) => {
                self.round(py, [call, detail], &contribution, out, &|| text.to_string(), tick)
            }
            None => Ok((STRANGE, py.None().into_bound(py))),
        }
    }

    /// Publish the result of combining (or, with `failed`, its error); by the last member.
    fn conclude<'py>(
        &self,
        py: Python<'py>,
        result: &Bound<'py, PyBytes>,
        failed: bool,
    ) -> PyResult<bool> {
        let tree = self.lock(py)?;
        let kind = if failed { CellKind::Failure } else { CellKind::Result };
        tree.set_result(kind, result.as_bytes());
        Ok(tree.conclude())
    }

    /// The value of each member; for the last one, and for all once the round is decided.
    #[pyo3(signature = (raw))]
    fn cells<'py>(&self, py: Python<'py>, raw: bool) -> PyResult<Bound<'py, PyList>> {
        let tree = self.lock(py)?;
        let cells = (0..tree.members()).map(|member| match tree.cell(member) {
            cell if raw => Ok(PyBytes::new(py, cell.bytes()).into_any()),
            cell => content(py, cell),
        });
        PyList::new(py, cells.collect::<PyResult<Vec<_>>>()?)
    }

    /// Break off this round; if it is decided, the next one.
    fn abandon(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.abandon())
    }

    #[classattr]
    #[allow(non_upper_case_globals)]
    const room: usize = ROOM;

    #[getter]
    fn broken_by(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        Ok(self.lock(py)?.broken_by())
    }
}

/// A member's contribution to a round.
pub struct Contribution<'a> {
    value: Value<'a>,
    op: Op,
}

impl<'a> Contribution<'a> {
    /// None if the value has to be pickled first, or `out` cannot take the result.
    pub fn of(
        value: &'a Bound<'_, PyAny>,
        packed: Option<&'a [u8]>,
        op: u32,
        out: &Bound<'_, PyAny>,
    ) -> Option<Contribution<'a>> {
        let op = Op::of(op);
        let value = match packed {
            Some(packed) => Value::Bytes(packed),
            None => Value::of(value, op)?,
        };
        if let Value::Array(_, found) = &value {
            if found.length > ROOM || (!out.is_none() && !fits(out, found)) {
                return None;
            }
        }
        Some(Contribution { value, op })
    }
}

impl PyCombiningTree {
    /// Break off the round that this member is in; false if it was decided before.
    pub fn break_off(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.break_off())
    }

    pub fn round<'py>(
        &self,
        py: Python<'py>,
        [call, detail]: [u64; 2],
        contribution: &Contribution<'_>,
        out: &Bound<'py, PyAny>,
        text: &dyn Fn() -> String,
        tick: &Bound<'py, PyAny>,
    ) -> PyResult<(u32, Bound<'py, PyAny>)> {
        let Contribution { value, op } = contribution;
        let mut guard = self.lock(py)?;
        let tree = &mut *guard;
        if tree.core().is_closed() {
            return Err(closed(py));
        }
        let wraps = matches!(value, Value::Array(..));
        let (kind, bytes) = value.bytes();
        if tree.enter([call, detail ^ value.mark()], *op, wraps, kind, bytes) {
            if *op != Op::Keep && matches!(tree.result().kind(), CellKind::Bytes | CellKind::Mixed)
            {
                return Ok((DUTY, py.None().into_bound(py)));
            }
            tree.conclude();
        } else if !tree.spin_briefly() {
            wait(py, tree, text, tick)?;
        }
        outcome(py, tree, value, out)
    }

    /// A member makes one call at a time.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, CombiningTree>> {
        match self.tree.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(error(py, "CollectiveError", (ONE_AT_A_TIME,))),
        }
    }
}

/// A member's value; refers to its bytes.
enum Value<'a> {
    Nothing,
    Int([u8; 8]),
    Float([u8; 8]),
    Array(CellKind, Numbers),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// A Python number or an array; None for values that have to be pickled first.
    fn of(value: &'a Bound<'_, PyAny>, op: Op) -> Option<Value<'a>> {
        let float = match value.cast_exact::<PyFloat>() {
            Ok(float) => Ok(float),
            Err(_) if op != Op::Keep && is_float64(value) => value.cast::<PyFloat>(),
            Err(failure) => Err(failure),
        };
        if let Ok(float) = float {
            return Some(Value::Float(float.value().to_ne_bytes()));
        }
        if let Ok(int) = value.cast_exact::<PyInt>() {
            return Some(Value::Int(int.extract::<i64>().ok()?.to_ne_bytes()));
        }
        if value.is_none() {
            return (op == Op::Keep).then_some(Value::Nothing);
        }
        let found = numbers(value)?;
        Some(match &found.front[..2] {
            [b'f', 8] => Value::Array(CellKind::Floats, found),
            [b'i', 8] => Value::Array(CellKind::Ints, found),
            _ => Value::Array(CellKind::Bytes, found),
        })
    }

    /// A hash of type and shape, which all members' arrays have in common; 0 for other values.
    fn mark(&self) -> u64 {
        let Value::Array(_, found) = self else { return 0 };
        let bytes = found.front.iter().chain(&found.extents);
        bytes.fold(0xcbf2_9ce4_8422_2325, |mark, byte| {
            (mark ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3) // FNV-1a
        })
    }

    fn bytes(&self) -> (CellKind, &[u8]) {
        match self {
            Value::Nothing => (CellKind::Nothing, &[]),
            Value::Int(bytes) => (CellKind::Ints, bytes),
            Value::Float(bytes) => (CellKind::Floats, bytes),
            Value::Bytes(bytes) => (CellKind::Bytes, bytes),
            Value::Array(kind, found) if found.length == 0 => (*kind, &[]),
            Value::Array(kind, found) => {
                // SAFETY: the array's memory, which lives as long as the value it was found in.
                let bytes = unsafe { std::slice::from_raw_parts(found.from, found.length) };
                (*kind, bytes)
            }
        }
    }
}

/// Whether `out` can take a result for these numbers.
fn fits(out: &Bound<'_, PyAny>, found: &Numbers) -> bool {
    numbers(out).is_some_and(|target| {
        target.writable && target.front == found.front && target.extents == found.extents
    })
}

/// Wait until the round is decided. An error that ends the wait breaks the round off, for all.
fn wait(
    py: Python<'_>,
    tree: &CombiningTree,
    text: &dyn Fn() -> String,
    tick: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let waited = calls::wait(&PyHost(py), tree.core(), &mut Decided { tree, text, tick }, None);
    match waited {
        Ok(_) => Ok(()),
        Err(failure) if tree.break_off() => Err(failure),
        // The round was complete at that moment. Requests to stop (no `Exception`) are still raised.
        Err(failure) if failure.is_instance_of::<PyException>(py) && tree.broken_by().is_none() => {
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

/// The goal of a wait: a decided round.
struct Decided<'a, 'py> {
    tree: &'a CombiningTree,
    text: &'a dyn Fn() -> String,
    tick: &'a Bound<'py, PyAny>,
}

impl<'py> Goal<PyHost<'py>> for Decided<'_, 'py> {
    type Out = ();

    fn poll(&mut self, _host: &PyHost<'py>, _all: bool) -> PyResult<Option<()>> {
        Ok(self.tree.is_decided().then_some(()))
    }

    fn spin(&mut self, host: &PyHost<'py>) -> bool {
        self.sleep(host, SHORT_WAIT) == Woken::Rung
    }

    fn sleep(&mut self, host: &PyHost<'py>, limit: Duration) -> Woken {
        let tree = self.tree;
        host.release(|| tree.wait(limit))
    }

    /// The missing members decide the round: no message that arrives does.
    fn examined(&self) -> u64 {
        INBOX_IRRELEVANT
    }

    fn facts(&mut self, _host: &PyHost<'py>) -> PyResult<Option<WaitFacts>> {
        let (activity, text) = (Activity::Collective, (self.text)());
        Ok(Some(WaitFacts { activity, text, facts: String::new() }))
    }

    fn tick(&mut self, _host: &PyHost<'py>) -> PyResult<Option<String>> {
        self.tick.call1((self.tree.missing(),))?.extract()
    }

    /// Another member that is also stuck may have been faster.
    fn undo(&mut self, (): ()) -> Option<()> {
        self.tree.broken_by().is_none().then_some(())
    }
}

/// The outcome of a decided round, and its result as a Python object.
fn outcome<'py>(
    py: Python<'py>,
    tree: &CombiningTree,
    contributed: &Value<'_>,
    out: &Bound<'py, PyAny>,
) -> PyResult<(u32, Bound<'py, PyAny>)> {
    if let Some(member) = tree.broken_by() {
        return Ok((BROKEN, member.into_pyobject(py)?.into_any()));
    }
    let result = tree.result();
    let kind = result.kind();
    let value = match (kind, contributed) {
        (CellKind::Ints | CellKind::Floats, Value::Array(..)) => match numbers(out) {
            Some(target) if target.length == result.bytes().len() => {
                // SAFETY: a writable array of this length (`fits`); the GIL is held.
                unsafe {
                    let to = target.from.cast_mut();
                    std::ptr::copy_nonoverlapping(result.bytes().as_ptr(), to, target.length);
                }
                out.clone()
            }
            _ => PyBytes::new(py, result.bytes()).into_any(),
        },
        (CellKind::Nothing | CellKind::Large | CellKind::Mismatch, _) => py.None().into_bound(py),
        _ => content(py, result)?,
    };
    Ok((kind as u32, value))
}

/// The content of a cell: a single number as such, everything else as bytes.
fn content<'py>(py: Python<'py>, cell: &Cell) -> PyResult<Bound<'py, PyAny>> {
    let bytes = cell.bytes();
    let number = <[u8; 8]>::try_from(bytes);
    Ok(match (cell.kind(), number) {
        (CellKind::Nothing, _) => py.None().into_bound(py),
        (CellKind::Ints, Ok(bytes)) => i64::from_ne_bytes(bytes).into_pyobject(py)?.into_any(),
        (CellKind::Floats, Ok(bytes)) => f64::from_ne_bytes(bytes).into_pyobject(py)?.into_any(),
        (CellKind::Large, _) => intern!(py, "large").clone().into_any(),
        _ => PyBytes::new(py, bytes).into_any(),
    })
}
