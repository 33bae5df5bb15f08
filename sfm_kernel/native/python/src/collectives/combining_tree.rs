//! CombiningTree: barriers and small reductions in memory that the members of a group share.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyList};

use crate::collectives::calls::is_float64;
use crate::endpoint::inbox::Inbox;
use crate::errors::{closed, error, shm_error};
use crate::host::gil::InCall;
use crate::host::python::PyHost;
use crate::packet::arrays::{numbers, Numbers};
use sfm_native::bell::Woken;
use sfm_native::calls::{self, Examined, Goal, Host, WaitFacts};
use sfm_native::combining_tree::fold::{Cell, Kind, Op, ROOM};
use sfm_native::combining_tree::CombiningTree;
use sfm_native::core::INBOX_IRRELEVANT;
use sfm_native::segment::Activity;

/// One member's end of a tree.
#[pyclass(name = "CombiningTree", module = "sfm_kernel._native", frozen)]
pub struct PyCombiningTree {
    tree: Mutex<CombiningTree>,
}

/// What a round came to besides a `Kind`. The last to come has to combine what all have brought.
pub const DUTY: u32 = 100;
/// The round was broken off.
pub const BROKEN: u32 = 101;
/// The value has to be pickled first; nothing was done.
pub const STRANGE: u32 = 102;

/// So long a wait is not shown to observers.
const AT_ONCE: Duration = Duration::from_millis(1);

#[pymethods]
impl PyCombiningTree {
    #[new]
    fn new(
        py: Python<'_>,
        inbox: &Bound<'_, Inbox>,
        path: PathBuf,
        fresh: PathBuf,
        members: usize,
        place: usize,
    ) -> PyResult<PyCombiningTree> {
        if members == 0 || members > sfm_native::segment::SLOTS || place >= members {
            return Err(PyValueError::new_err(format!("no place {place} among {members} members")));
        }
        let folder = path.parent().unwrap_or(&path).to_string_lossy().into_owned();
        let core = inbox.get().core.clone();
        let tree = CombiningTree::open(core, &path, &fresh, members, place);
        let tree = tree.map_err(|failure| shm_error(py, failure, &folder))?;
        Ok(PyCombiningTree { tree: Mutex::new(tree) })
    }

    /// One round: what is brought, and what it came to. See `_native.pyi`.
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
        match Meeting::of(value, packed, op, out) {
            Some(meeting) => {
                self.round(py, [call, detail], &meeting, out, &|| text.to_string(), tick)
            }
            None => Ok((STRANGE, py.None().into_bound(py))),
        }
    }

    /// The last, after its duty: this is the result (or, with `failed`, why there is none).
    fn conclude<'py>(
        &self,
        py: Python<'py>,
        result: &Bound<'py, PyBytes>,
        failed: bool,
    ) -> PyResult<bool> {
        let tree = self.lock(py)?;
        let kind = if failed { Kind::Failure } else { Kind::Result };
        tree.set_result(kind, result.as_bytes());
        Ok(tree.conclude())
    }

    /// What each member has brought; for the last, and for all once the round is decided.
    #[pyo3(signature = (raw))]
    fn cells<'py>(&self, py: Python<'py>, raw: bool) -> PyResult<Bound<'py, PyList>> {
        let tree = self.lock(py)?;
        let cells = (0..tree.members()).map(|member| match tree.cell(member) {
            cell if raw => Ok(PyBytes::new(py, cell.bytes()).into_any()),
            cell => content(py, cell),
        });
        PyList::new(py, cells.collect::<PyResult<Vec<_>>>()?)
    }

    /// Break off the round that this member is in; false if it was decided before.
    pub fn break_off(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.break_off())
    }

    /// Break off this round; if that is decided, the next one.
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

/// What a member comes with.
pub struct Meeting<'a> {
    brought: Brought<'a>,
    op: Op,
}

impl<'a> Meeting<'a> {
    /// None where the value has to be pickled first, or `out` is no place for the result.
    pub fn of(
        value: &'a Bound<'_, PyAny>,
        packed: Option<&'a [u8]>,
        op: u32,
        out: &Bound<'_, PyAny>,
    ) -> Option<Meeting<'a>> {
        let op = Op::of(op);
        let brought = match packed {
            Some(packed) => Brought::Bytes(packed),
            None => Brought::of(value, op)?,
        };
        if let Brought::Array(_, found) = &brought {
            if found.length > ROOM || (!out.is_none() && !fits(out, found)) {
                return None;
            }
        }
        Some(Meeting { brought, op })
    }
}

impl PyCombiningTree {
    /// One round.
    pub fn round<'py>(
        &self,
        py: Python<'py>,
        [call, detail]: [u64; 2],
        meeting: &Meeting<'_>,
        out: &Bound<'py, PyAny>,
        text: &dyn Fn() -> String,
        tick: &Bound<'py, PyAny>,
    ) -> PyResult<(u32, Bound<'py, PyAny>)> {
        let Meeting { brought, op } = meeting;
        let mut guard = self.lock(py)?;
        let tree = &mut *guard;
        if tree.core().is_closed() {
            return Err(closed(py));
        }
        let wraps = matches!(brought, Brought::Array(..));
        let (kind, bytes) = brought.parts();
        if tree.enter([call, detail ^ brought.mark()], *op, wraps, kind, bytes) {
            if *op != Op::Keep && matches!(tree.result().kind(), Kind::Bytes | Kind::Mixed) {
                return Ok((DUTY, py.None().into_bound(py)));
            }
            tree.conclude();
        } else if !tree.spin_briefly() {
            wait(py, tree, text, tick)?;
        }
        outcome(py, tree, brought, out)
    }

    /// A member does one thing at a time.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, CombiningTree>> {
        match self.tree.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let why = "another thread of this process, or what a signal handler has \
                           interrupted, is in a collective of this group: one at a time";
                Err(error(py, "CollectiveError", (why,)))
            }
        }
    }
}

/// What a member brings, where its bytes are.
enum Brought<'a> {
    Nothing,
    Int([u8; 8]),
    Float([u8; 8]),
    Array(Kind, Numbers),
    Bytes(&'a [u8]),
}

impl<'a> Brought<'a> {
    /// Python's numbers, and arrays; None for what has to be pickled first.
    fn of(value: &'a Bound<'_, PyAny>, op: Op) -> Option<Brought<'a>> {
        let float = match value.cast_exact::<PyFloat>() {
            Ok(float) => Ok(float),
            Err(_) if op != Op::Keep && is_float64(value) => value.cast::<PyFloat>(),
            Err(failure) => Err(failure),
        };
        if let Ok(float) = float {
            return Some(Brought::Float(float.value().to_ne_bytes()));
        }
        if let Ok(int) = value.cast_exact::<PyInt>() {
            return Some(Brought::Int(int.extract::<i64>().ok()?.to_ne_bytes()));
        }
        if value.is_none() {
            return (op == Op::Keep).then_some(Brought::Nothing);
        }
        let found = numbers(value)?;
        Some(match &found.front[..2] {
            [b'f', 8] => Brought::Array(Kind::Floats, found),
            [b'i', 8] => Brought::Array(Kind::Ints, found),
            _ => Brought::Array(Kind::Bytes, found),
        })
    }

    /// What all members' arrays have in common, as a number; 0 for other values.
    fn mark(&self) -> u64 {
        let Brought::Array(_, found) = self else { return 0 };
        let bytes = found.front.iter().chain(&found.extents);
        bytes.fold(0xcbf2_9ce4_8422_2325, |mark, byte| {
            (mark ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3) // FNV-1a
        })
    }

    fn parts(&self) -> (Kind, &[u8]) {
        match self {
            Brought::Nothing => (Kind::Nothing, &[]),
            Brought::Int(bytes) => (Kind::Ints, bytes),
            Brought::Float(bytes) => (Kind::Floats, bytes),
            Brought::Bytes(bytes) => (Kind::Bytes, bytes),
            Brought::Array(kind, found) if found.length == 0 => (*kind, &[]),
            Brought::Array(kind, found) => {
                // SAFETY: the array's memory, which lives as long as the value it was found in.
                let bytes = unsafe { std::slice::from_raw_parts(found.from, found.length) };
                (*kind, bytes)
            }
        }
    }
}

/// Whether results for these numbers can be put into `out`.
fn fits(out: &Bound<'_, PyAny>, found: &Numbers) -> bool {
    numbers(out).is_some_and(|place| {
        place.writable && place.front == found.front && place.extents == found.extents
    })
}

/// Wait until the round is decided. What ends the wait breaks the round off, for all.
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
        // It was complete in that moment. What asked to stop is heard all the same.
        Err(failure) if failure.is_instance_of::<PyException>(py) && tree.broken_by().is_none() => {
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

/// A round is decided.
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
        self.sleep(host, AT_ONCE) == Woken::Rung
    }

    fn sleep(&mut self, host: &PyHost<'py>, limit: Duration) -> Woken {
        let tree = self.tree;
        host.release(|| tree.wait(limit))
    }

    /// Who is missing decides by coming: nothing that arrives here does.
    fn examined(&self) -> Examined {
        Examined::Arrived(INBOX_IRRELEVANT)
    }

    fn facts(&mut self, _host: &PyHost<'py>) -> PyResult<Option<WaitFacts>> {
        let (doing, text) = (Activity::Collective, (self.text)());
        Ok(Some(WaitFacts { activity: doing, text, facts: String::new() }))
    }

    fn tick(&mut self, _host: &PyHost<'py>) -> PyResult<Option<String>> {
        self.tick.call1((self.tree.missing(),))?.extract()
    }

    /// Somebody else who is stuck, too, may have been faster.
    fn was_broken(&self) -> bool {
        self.tree.broken_by().is_some()
    }
}

/// The result of a round that is decided, as Python has it.
fn outcome<'py>(
    py: Python<'py>,
    tree: &CombiningTree,
    brought: &Brought<'_>,
    out: &Bound<'py, PyAny>,
) -> PyResult<(u32, Bound<'py, PyAny>)> {
    if let Some(who) = tree.broken_by() {
        return Ok((BROKEN, who.into_pyobject(py)?.into_any()));
    }
    let result = tree.result();
    let kind = result.kind();
    let value = match (kind, brought) {
        (Kind::Ints | Kind::Floats, Brought::Array(..)) => match numbers(out) {
            Some(place) if place.length == result.bytes().len() => {
                // SAFETY: a writable array of so many bytes (`fits`); the GIL is held.
                unsafe {
                    let to = place.from.cast_mut();
                    std::ptr::copy_nonoverlapping(result.bytes().as_ptr(), to, place.length);
                }
                out.clone()
            }
            _ => PyBytes::new(py, result.bytes()).into_any(),
        },
        (Kind::Nothing | Kind::Large | Kind::Mismatch, _) => py.None().into_bound(py),
        _ => content(py, result)?,
    };
    Ok((kind as u32, value))
}

/// What is in a cell: numbers alone as such, everything else as bytes.
fn content<'py>(py: Python<'py>, cell: &Cell) -> PyResult<Bound<'py, PyAny>> {
    let bytes = cell.bytes();
    let number = <[u8; 8]>::try_from(bytes);
    Ok(match (cell.kind(), number) {
        (Kind::Nothing, _) => py.None().into_bound(py),
        (Kind::Ints, Ok(bytes)) => i64::from_ne_bytes(bytes).into_pyobject(py)?.into_any(),
        (Kind::Floats, Ok(bytes)) => f64::from_ne_bytes(bytes).into_pyobject(py)?.into_any(),
        (Kind::Large, _) => intern!(py, "large").clone().into_any(),
        _ => PyBytes::new(py, bytes).into_any(),
    })
}
