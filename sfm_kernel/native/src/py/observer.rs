//! Looking into the segments of other processes, which need not take part.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::peers::SHARED;
use crate::places::{code_of, line_of, Place};
use crate::segment::{self, Doing, Segment};
use crate::shm::Owner;
use crate::summary::summary_of;
use crate::trace::What;

/// How long to wait for processes to write down what is in their inboxes. Their network threads do
/// that, which need no GIL; only who is stopped does not.
const PATIENCE: Duration = Duration::from_millis(50);

/// A segment, and whose it is.
struct Seen {
    segment: Segment,
    owner: Owner,
}

/// Looks at the segments of a world. They stay mapped from one look to the next, which is most of
/// what a look costs, as long as they are asked for.
#[pyclass(module = "sfm_kernel._native", frozen)]
#[derive(Default)]
pub struct Observer {
    seen: Mutex<HashMap<PathBuf, Arc<Seen>>>,
}

impl Observer {
    /// None where there is no segment (any more).
    fn open(&self, path: &Path) -> Option<Arc<Seen>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = seen.get(path) {
            return Some(known.clone());
        }
        let owner = Owner::of(path).ok()?;
        let fresh = Arc::new(Seen { segment: segment::open(path, None).ok()?, owner });
        seen.insert(path.to_owned(), fresh.clone());
        Some(fresh)
    }

    /// Those at these paths, and no others from now on.
    fn all(&self, paths: &[PathBuf]) -> Vec<Option<Arc<Seen>>> {
        let found: Vec<_> = paths.iter().map(|path| self.open(path)).collect();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() > paths.len() {
            seen.retain(|path, _| paths.contains(path));
        }
        found
    }
}

#[pymethods]
impl Observer {
    #[new]
    fn new() -> Observer {
        Observer::default()
    }

    /// What the segments at `paths` say: state, counters, and with `inboxes` what is in the
    /// inboxes, which their owners are asked to write down. None where there is no segment.
    #[pyo3(signature = (paths, /, inboxes=true))]
    fn segments<'py>(
        &self,
        py: Python<'py>,
        paths: Vec<PathBuf>,
        inboxes: bool,
    ) -> PyResult<Vec<Option<Bound<'py, PyDict>>>> {
        let found: Vec<Option<(Arc<Seen>, bool)>> = py.detach(|| {
            // Who dies now is found alive, not the other way.
            let found = self.all(&paths).into_iter();
            let found: Vec<_> =
                found.map(|one| one.map(|one| (one.clone(), one.owner.is_dead()))).collect();
            if inboxes {
                let living = found.iter().flatten().filter(|(_, dead)| !dead);
                ask_for_summaries(living.map(|(one, _)| &one.segment));
            }
            found
        });
        let read = |one: &Option<(Arc<Seen>, bool)>| {
            one.as_ref().map(|(one, dead)| state(py, &one.segment, *dead)).transpose()
        };
        found.iter().map(read).collect()
    }

    /// A number for each of the segments at `paths` that changes when anything in it does: cheap.
    /// 0 where there is none.
    #[pyo3(signature = (paths, /))]
    fn pulses(&self, py: Python<'_>, paths: Vec<PathBuf>) -> Vec<u64> {
        py.detach(|| {
            self.all(&paths).iter().map(|one| one.as_ref().map_or(0, |one| pulse(one))).collect()
        })
    }

    /// The events of a process's trace from `start` on, the place of the next, and the texts of the
    /// codes in them. Empty where there is no segment.
    #[pyo3(signature = (path, start=0, /))]
    fn trace(
        &self,
        py: Python<'_>,
        path: PathBuf,
        start: u64,
    ) -> (Vec<Event>, u64, Vec<(u64, String)>) {
        py.detach(|| match self.open(&path) {
            Some(one) => events(&one.segment, start),
            None => (Vec::new(), start, Vec::new()),
        })
    }
}

/// Have the owners write down what is in their inboxes, if anything has happened there since.
fn ask_for_summaries<'a>(segments: impl Iterator<Item = &'a Segment>) {
    let asked: Vec<_> = segments
        .map(|segment| {
            let version = segment.summary.version();
            segment.wishes.fetch_add(1, Ordering::SeqCst);
            segment.network.0.ring();
            (segment, version)
        })
        .collect();
    let deadline = Instant::now() + PATIENCE;
    let missing = || asked.iter().any(|(segment, version)| segment.summary.version() == *version);
    while missing() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn state<'py>(py: Python<'py>, segment: &Segment, dead: bool) -> PyResult<Bound<'py, PyDict>> {
    let state = PyDict::new(py);
    let doing = segment.doing.0.load(Ordering::Acquire);
    let call = segment.call.load(Ordering::Acquire);
    state.set_item("uid", format!("{:032x}", segment.uid()))?;
    state.set_item("alive", !dead && doing != Doing::Left as u32)?;
    state.set_item("state", Doing::name(doing))?;
    state.set_item("call", call)?;
    let seconds = |word: &AtomicU64| word.load(Ordering::Relaxed) as f64 / 1e9;
    state.set_item("since", seconds(&segment.since))?;
    state.set_item("until", seconds(&segment.until))?;
    state.set_item("waits", segment.waits.read())?;
    state.set_item("facts", segment.facts.read())?;
    state.set_item("others", segment.others.read())?;
    state.set_item("info", segment.info.read())?;
    state.set_item("summary", segment.summary.read())?;
    let at = segment.at.load(Ordering::Relaxed);
    state.set_item("line", line_of(at))?;
    state.set_item("code", segment.places.read(code_of(at)))?;
    for (name, counter) in [
        ("depth", &segment.depth),
        ("bytes", &segment.bytes),
        ("sent", &segment.sent),
        ("received", &segment.received),
        ("arrived", &segment.arrived),
        ("examined", &segment.examined),
    ] {
        state.set_item(name, counter.load(Ordering::Acquire))?;
    }
    let peers = segment.peers.all().map(|(uid, peer)| {
        let count = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let uid = if uid == SHARED { String::new() } else { format!("{uid:016x}") };
        (uid, count(&peer.sent), count(&peer.arrived), count(&peer.received), count(&peer.taken))
    });
    state.set_item("peers", peers.collect::<Vec<_>>())?;
    Ok(state)
}

fn pulse(one: &Seen) -> u64 {
    let segment = &one.segment;
    let words = [
        u64::from(segment.doing.0.load(Ordering::Acquire)),
        u64::from(one.owner.is_dead()),
        u64::from(segment.facts.version()) << 32 | u64::from(segment.others.version()),
        u64::from(segment.info.version()),
    ];
    let counters = [&segment.call, &segment.since, &segment.sent, &segment.received];
    let more = [&segment.arrived, &segment.examined, &segment.depth, &segment.at];
    let counted = counters.into_iter().chain(more).map(|word| word.load(Ordering::Acquire));
    words.into_iter().chain(counted).fold(1, |pulse: u64, word| {
        (pulse.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// End the blocked call number `call` of a process with DeadlockDetected; false if it is over.
/// `judgement`: JSON, with "cycle" and "why".
#[pyfunction]
#[pyo3(signature = (path, call, judgement, /))]
pub fn judge(path: PathBuf, call: u64, judgement: &str) -> bool {
    let Ok(segment) = segment::open(&path, None) else { return false };
    // Before the ring: the call may be over as soon as its process hears it.
    let blocked = Doing::is_blocked(segment.doing.0.load(Ordering::Acquire));
    if !blocked || segment.call.load(Ordering::Acquire) != call {
        return false;
    }
    segment.judgement.write(judgement);
    segment.judged.store(call, Ordering::Release);
    segment.bell.0.ring();
    true
}

/// Place in the history, seconds since 1970, what, the lower half of the peer's uid, number, bytes,
/// code, line, attributes.
type Event = (u64, f64, &'static str, String, u64, u64, u64, u32, Vec<(String, String)>);

fn events(segment: &Segment, start: u64) -> (Vec<Event>, u64, Vec<(u64, String)>) {
    let (events, next) = segment.trace.read(start);
    let mut codes: Vec<u64> = events.iter().map(|(_, event, _)| code_of(event.place)).collect();
    codes.sort_unstable();
    codes.dedup();
    let known = |code: u64| Some((code, segment.places.read(code)?));
    let texts = codes.into_iter().filter_map(known).collect();
    let shown = events.into_iter().map(|(nth, event, about)| {
        let (what, peer, number) = match event.what {
            What::Sent => ("sent", format!("{:016x}", event.peer), event.number),
            What::Received => ("received", format!("{:016x}", event.peer), event.number),
            What::Doing => (Doing::name(event.number as u32), String::new(), 0),
        };
        let place: Place = event.place;
        let time = event.time as f64 / 1e9;
        let about = summary_of(&about);
        (nth, time, what, peer, number, event.bytes, code_of(place), line_of(place), about)
    });
    (shown.collect(), next, texts)
}
