//! Reading the segments of other processes without their help.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::host::gil::without_gil;
use sfm_native::code_location::{code_of, line_of};
use sfm_native::main_thread::PATIENCE;
use sfm_native::observed::{Damaged, Events, ObservedSegment, ProcessState};
use sfm_native::peers::SHARED;
use sfm_native::segment::Activity;
use sfm_native::summary::summary_of;
use sfm_native::sync::lock;
use sfm_native::trace::EventKind;

/// Reads the segments of a world, which may be damaged. Their files stay open between calls as long
/// as the calls name them.
#[pyclass(module = "sfm_kernel._native", frozen)]
#[derive(Default)]
pub struct Observer {
    seen: Mutex<HashMap<PathBuf, Arc<ObservedSegment>>>,
}

/// None if there is no segment.
type Found = Option<Result<Arc<ObservedSegment>, Damaged>>;

impl Observer {
    fn open(&self, path: &Path) -> Found {
        let mut seen = lock(&self.seen);
        if let Some(known) = seen.get(path) {
            return Some(Ok(known.clone()));
        }
        let opened = open(path)?.map(Arc::new);
        if let Ok(fresh) = &opened {
            seen.insert(path.to_owned(), fresh.clone());
        }
        Some(opened)
    }

    /// The segments at these paths; closes all others.
    fn all(&self, paths: &[PathBuf]) -> Vec<Found> {
        let found: Vec<_> = paths.iter().map(|path| self.open(path)).collect();
        let mut seen = lock(&self.seen);
        if seen.len() > paths.len() {
            seen.retain(|path, _| paths.contains(path));
        }
        found
    }
}

fn open(path: &Path) -> Option<Result<ObservedSegment, Damaged>> {
    // The path may not be a file, or belong to another user. Without a free descriptor: None.
    const OTHER: [i32; 5] = [libc::ELOOP, libc::EISDIR, libc::EACCES, libc::EPERM, libc::ENXIO];
    match ObservedSegment::open(path) {
        Ok(segment) => Some(Ok(segment)),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Some(Err(Damaged)),
        Err(error) => {
            error.raw_os_error().filter(|code| OTHER.contains(code)).map(|_| Err(Damaged))
        }
    }
}

#[pymethods]
impl Observer {
    #[new]
    fn new() -> Observer {
        Observer::default()
    }

    /// The state and counters of the segments at `paths`, and the messages in their inboxes, which
    /// it asks their owners to publish. None if there is no segment.
    #[pyo3(signature = (paths, /))]
    fn segments<'py>(
        &self,
        py: Python<'py>,
        paths: Vec<PathBuf>,
    ) -> PyResult<Vec<Option<Bound<'py, PyDict>>>> {
        let found: Vec<Option<(bool, Result<ProcessState, Damaged>)>> = without_gil(py, || {
            // Liveness is read first: a process that dies meanwhile is reported alive, not the
            // reverse.
            let with_end = |found: Found| {
                found.map(|opened| opened.map(|segment| (segment.is_dead(), segment)))
            };
            let found: Vec<_> = self.all(&paths).into_iter().map(with_end).collect();
            let living = found.iter().flatten().flatten().filter(|(dead, _)| !dead);
            ask(living.map(|(_, segment)| &**segment));
            let read = |opened: Result<(bool, Arc<ObservedSegment>), Damaged>| match opened {
                Ok((dead, segment)) => (dead, segment.state()),
                Err(damaged) => (false, Err(damaged)),
            };
            found.into_iter().map(|found| found.map(read)).collect()
        });
        let show = |(dead, state)| shown(py, dead, state);
        found.into_iter().map(|found| found.map(show).transpose()).collect()
    }

    /// The state of each process, and the number of its latest blocked call; asks nobody. None
    /// where there is no segment.
    #[pyo3(signature = (paths, /))]
    fn calls(&self, py: Python<'_>, paths: Vec<PathBuf>) -> Vec<Option<(&'static str, u64)>> {
        let call = |opened: Result<Arc<ObservedSegment>, Damaged>| {
            opened.and_then(|segment| segment.call()).unwrap_or(("damaged", 0))
        };
        without_gil(py, || self.all(&paths).into_iter().map(|found| found.map(call)).collect())
    }

    /// A number for each of the segments at `paths` that changes when anything in it does: cheap.
    /// 0 where there is none.
    #[pyo3(signature = (paths, /))]
    fn pulses(&self, py: Python<'_>, paths: Vec<PathBuf>) -> Vec<u64> {
        const DAMAGED: [u64; 2] = [1, 2]; // alive, dead
        let pulse = |segment: Arc<ObservedSegment>| match segment.pulse() {
            Ok(pulse) => pulse,
            Err(Damaged) => DAMAGED[usize::from(segment.is_dead())],
        };
        let pulse = |found: Found| found.map_or(0, |opened| opened.map_or(DAMAGED[0], pulse));
        without_gil(py, || self.all(&paths).into_iter().map(pulse).collect())
    }

    /// The events of a process's trace from `start` on, the place of the next, and the texts of the
    /// codes in them. Empty where there is no segment, or it is damaged.
    #[pyo3(signature = (path, start=0, /))]
    fn trace(
        &self,
        py: Python<'_>,
        path: PathBuf,
        start: u64,
    ) -> (Vec<Event>, u64, Vec<(u64, String)>) {
        without_gil(py, || {
            let events = self.open(&path).and_then(Result::ok).map(|segment| segment.events(start));
            events.and_then(Result::ok).map_or((Vec::new(), start, Vec::new()), shown_events)
        })
    }
}

/// Ask the owners to publish their inboxes and the locations of their main threads. Their network
/// threads do that without the GIL: only a stopped process, or a main thread that holds the GIL,
/// does not answer in time.
fn ask<'a>(segments: impl Iterator<Item = &'a ObservedSegment>) {
    let mut asked: Vec<_> =
        segments.filter_map(|segment| Some((segment, segment.request_summary().ok()?))).collect();
    let deadline = Instant::now() + Duration::from_nanos(PATIENCE);
    loop {
        asked.retain(|(segment, version)| segment.is_awaited(*version));
        if asked.is_empty() || Instant::now() >= deadline {
            return;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn shown(
    py: Python<'_>,
    dead: bool,
    found: Result<ProcessState, Damaged>,
) -> PyResult<Bound<'_, PyDict>> {
    let shown = PyDict::new(py);
    let Ok(state) = found else {
        shown.set_item("alive", !dead)?;
        shown.set_item("state", "damaged")?;
        return Ok(shown);
    };
    let seconds = |time: u64| time as f64 / 1e9;
    shown.set_item("uid", format!("{:032x}", state.uid))?;
    shown.set_item("alive", !dead && state.activity != "left")?;
    shown.set_item("state", state.activity)?;
    shown.set_item("since", seconds(state.since))?;
    shown.set_item("until", seconds(state.until))?;
    shown.set_item("looked", seconds(state.looked))?;
    for (name, text) in [
        ("waits", state.waits),
        ("facts", state.facts),
        ("others", state.others),
        ("info", state.info),
        ("summary", state.summary),
        ("code", state.code),
    ] {
        shown.set_item(name, text)?;
    }
    shown.set_item("line", line_of(state.location))?;
    for (name, counter) in [
        ("call", state.call),
        ("depth", state.depth),
        ("bytes", state.bytes),
        ("sent", state.sent),
        ("received", state.received),
        ("arrived", state.arrived),
        ("examined", state.examined),
    ] {
        shown.set_item(name, counter)?;
    }
    let peers = state.peers.into_iter().map(|(uid, [sent, arrived, received, taken])| {
        let uid = if uid == SHARED { String::new() } else { format!("{uid:016x}") };
        (uid, sent, arrived, received, taken)
    });
    shown.set_item("peers", peers.collect::<Vec<_>>())?;
    let polls = state.polls.map(|(polls, code)| {
        (polls.count, polls.lasted, polls.ago, line_of(polls.location), code, polls.about)
    });
    shown.set_item("polls", polls)?;
    let main = state.main.map(|(is_in, location, code)| (is_in.name(), line_of(location), code));
    shown.set_item("main", main)?;
    Ok(shown)
}

/// Take a step towards the end of the blocked call number `call` of a process with DeadlockDetected;
/// false if the call is over, or another observer does so. "prepare" has the `judgement`: JSON, with
/// "cycle" and "why".
#[pyfunction]
#[pyo3(signature = (path, step, call, judgement = "", /))]
pub fn judge(path: PathBuf, step: &str, call: u64, judgement: &str) -> PyResult<bool> {
    let judged = |act: &dyn Fn(&ObservedSegment) -> Result<bool, Damaged>| {
        ObservedSegment::open(&path).is_ok_and(|segment| act(&segment).unwrap_or(false))
    };
    match step {
        "prepare" => Ok(judged(&|segment| segment.prepare(call, judgement))),
        "commit" => Ok(judged(&|segment| segment.commit(call))),
        "abort" => Ok(judged(&|segment| segment.abort(call))),
        _ => Err(PyValueError::new_err(format!("no step of a judgement: {step}"))),
    }
}

/// Index in the history, seconds since 1970, name, the lower half of the peer's uid, number, bytes,
/// code, line, attributes, the mark of the context (trace.rs).
type Event = (u64, f64, &'static str, String, u64, u64, u64, u32, Vec<(String, String)>, u16);

/// The names of messages' events in `trace`.
pub const MESSAGE_EVENTS: [&str; 4] = ["sent", "received", "answered", "heard"];

fn shown_events((events, next, texts): Events) -> (Vec<Event>, u64, Vec<(u64, String)>) {
    let shown = events.into_iter().filter_map(|(nth, event, about)| {
        let message =
            |nth: usize| (MESSAGE_EVENTS[nth], format!("{:016x}", event.peer), event.number);
        let (name, peer, number) = match event.kind {
            EventKind::Sent => message(0),
            EventKind::Received => message(1),
            EventKind::AckSent => message(2),
            EventKind::AckReceived => message(3),
            EventKind::Variables => ("variables", String::new(), event.number),
            EventKind::Activity => {
                (Activity::name(u32::try_from(event.number).ok()?)?, String::new(), 0)
            }
        };
        let time = event.time as f64 / 1e9;
        let about = summary_of(&about);
        let (bytes, code, line) = (event.bytes, code_of(event.location), line_of(event.location));
        Some((nth, time, name, peer, number, bytes, code, line, about, event.context))
    });
    (shown.collect(), next, texts)
}
