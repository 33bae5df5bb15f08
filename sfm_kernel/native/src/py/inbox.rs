//! Segment and Inbox: the receiving half of an endpoint.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::encode::copy_packet;
use super::errors::{closed, error, packet_error};
use super::message::{received_message, Message};
use super::segment::{parse_uid, PySegment};
use super::sender::PyOutflow;
use super::template::Template;
use crate::core::{Core, Found};
use crate::matching::Taken;
use crate::segment::Doing;

/// How often a blocked call looks up: for signals that another thread took, and for dead peers.
const TICK: Duration = Duration::from_millis(100);

/// All that arrived and was not received; and the doorbell that wakes who waits for it.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Inbox {
    pub core: Arc<Core>,
    pub folder: Option<PathBuf>,
}

impl Inbox {
    fn open(&self, py: Python<'_>) -> PyResult<()> {
        if self.core.is_closed() {
            return Err(closed(py));
        }
        match self.core.damaged() {
            Some(why) => Err(packet_error(py, &format!("{why}. Its sender must join again"))),
            None => Ok(()),
        }
    }
}

/// A search that remembers what it has seen.
struct Search<'a, 'py> {
    core: &'a Core,
    template: Template<'py>,
    cursor: u64,
    rewinds: u64,
    version: u64,
}

impl<'a, 'py> Search<'a, 'py> {
    fn new(core: &'a Core, template: &Bound<'py, PyDict>) -> PyResult<Search<'a, 'py>> {
        let template = Template::new(template)?;
        Ok(Search { core, template, cursor: 0, rewinds: core.rewinds(), version: 0 })
    }

    /// The first match among what the search has not seen yet; `Ok(None)` if there is none.
    /// With `take` it leaves the queue.
    fn next(&mut self, py: Python<'py>, take: bool, all: bool) -> PyResult<Option<Option<Taken>>> {
        let rewinds = self.core.rewinds();
        if rewinds != self.rewinds {
            (self.rewinds, self.cursor) = (rewinds, 0);
        }
        loop {
            match self.core.look(&self.template.native, self.cursor, take, all) {
                Found::Taken(taken) => return Ok(Some(Some(taken))),
                Found::Nothing { cursor, version } => {
                    (self.cursor, self.version) = (cursor, version);
                    return Ok(None);
                }
                Found::Ask(candidate) => {
                    if candidate.certain || self.template.accepts(py, &candidate.packet)? {
                        if !take {
                            return Ok(Some(None));
                        }
                        if let Some(taken) = self.core.take(&candidate) {
                            return Ok(Some(Some(taken)));
                        }
                    } else {
                        self.cursor = candidate.seq;
                    }
                }
            }
        }
    }
}

#[pymethods]
impl Inbox {
    #[new]
    #[pyo3(signature = (segment=None))]
    fn new(segment: Option<&Bound<'_, PySegment>>) -> PyResult<Inbox> {
        let folder = segment.map(|segment| segment.get().folder.clone());
        let mapping = match segment {
            None => None,
            Some(segment) => match segment.get().mapping.lock().expect("never poisoned").take() {
                Some(mapping) => Some(mapping),
                None => return Err(PyRuntimeError::new_err("the segment has an inbox already")),
            },
        };
        Ok(Inbox { core: Arc::new(Core::new(mapping, folder.clone())?), folder })
    }

    #[pyo3(signature = (uid, outflow=None))]
    fn lane(&self, uid: &str, outflow: Option<&Bound<'_, PyOutflow>>) -> PyResult<u32> {
        Ok(self.core.lane(parse_uid(uid)?, outflow.map(|outflow| outflow.get().outflow.clone())))
    }

    #[pyo3(signature = (lane, packet, ack=false))]
    fn deliver(
        &self,
        py: Python<'_>,
        lane: u32,
        packet: &Bound<'_, PyAny>,
        ack: bool,
    ) -> PyResult<()> {
        if self.core.is_closed() {
            return Err(closed(py));
        }
        let packet = copy_packet(py, packet)?;
        self.core.deliver(lane, packet, ack);
        Ok(())
    }

    /// Take the first match, waiting for it; appended to `out`, so that an interrupt between
    /// taking and returning cannot lose it. Before the first sleep `waiter(template)` gives a
    /// text for observers and a function that is called about every 100 ms; what either raises
    /// ends the wait.
    fn recv(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        template: &Bound<'_, PyDict>,
        out: &Bound<'_, PyList>,
        waiter: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let core = &*self.core;
        let mut search = Search::new(core, template)?;
        let mut deadline = None;
        let mut blocked: Option<(Blocked<'_>, Bound<'_, PyAny>)> = None;
        let mut all = false;
        loop {
            self.open(py)?;
            if let Some(taken) = search.next(py, true, all)? {
                return out.append(received_message(py, taken.expect("taken")));
            }
            let version = search.version;
            let mut limit = TICK;
            if let Some(timeout) = timeout {
                let deadline = *deadline.get_or_insert_with(|| {
                    Instant::now()
                        .checked_add(Duration::try_from_secs_f64(timeout).unwrap_or(Duration::MAX))
                });
                if let Some(deadline) = deadline {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        let what =
                            format!("no matching message within {timeout} s: recv({template})");
                        return Err(error(py, "RecvTimeout", (what,)));
                    }
                    limit = limit.min(left);
                }
            }
            match &mut blocked {
                None => {
                    if py.detach(|| core.spin(version)) {
                        continue;
                    }
                    let (text, tick): (String, Bound<'_, PyAny>) =
                        waiter.call1((template,))?.extract()?;
                    blocked = Some((Blocked::enter(core, Doing::Receiving, &text), tick));
                    // Between the look and the sleep nothing is lost: the version decides.
                }
                Some((blocked, tick)) => {
                    if blocked.ticks(limit) {
                        py.check_signals()?;
                        if let Err(failure) = tick.call0() {
                            // What a dead peer had sent before is still received.
                            if let Some(taken) = search.next(py, true, true)? {
                                return out.append(received_message(py, taken.expect("taken")));
                            }
                            return Err(failure);
                        }
                    }
                }
            }
            let woken = py.detach(|| core.wait(version, limit));
            all = woken != crate::bell::Woken::Rung;
            if woken == crate::bell::Woken::Signal {
                py.check_signals()?;
            }
        }
    }

    /// The first match, taken, or None.
    fn recv_nb(
        &self,
        py: Python<'_>,
        template: &Bound<'_, PyDict>,
        out: &Bound<'_, PyList>,
    ) -> PyResult<bool> {
        self.open(py)?;
        match Search::new(&self.core, template)?.next(py, true, false)? {
            Some(taken) => {
                out.append(received_message(py, taken.expect("taken")))?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn peek(&self, py: Python<'_>, template: &Bound<'_, PyDict>) -> PyResult<bool> {
        self.open(py)?;
        Ok(Search::new(&self.core, template)?.next(py, false, false)?.is_some())
    }

    /// Put a message back where it was.
    fn put_back(&self, message: &Bound<'_, Message>) {
        let message = message.get();
        if let Some(origin) = message.origin {
            let packet = message.packet.clone();
            self.core.put_back(Taken {
                seq: origin.seq,
                packet,
                lane: origin.lane,
                ack: origin.ack,
            });
        }
    }

    /// The network thread's work, until the endpoint closes: keeps rings from filling up, and
    /// calls `dispatch(message)` for each message while callbacks are registered; it says whether
    /// a callback consumed the message.
    fn serve(&self, py: Python<'_>, dispatch: &Bound<'_, PyAny>) -> PyResult<()> {
        let core = &*self.core;
        let mut wishes = 0;
        loop {
            let open = py.detach(|| loop {
                if !core.serve(5 * TICK, &mut wishes) {
                    break false;
                }
                if core.has_undecided() {
                    break true;
                }
            });
            if !open {
                return Ok(());
            }
            for news in core.undecided() {
                let message = Bound::new(
                    py,
                    received_message(py, Taken { packet: news.packet.clone(), ..news }),
                )?;
                let consumed = dispatch.call1((message,)).and_then(|result| result.is_truthy());
                match consumed {
                    Ok(true) => core.consumed(&news),
                    Ok(false) => core.decline(news),
                    Err(failure) => {
                        core.decline(news);
                        failure.write_unraisable(py, Some(dispatch));
                    }
                }
            }
        }
    }

    /// Whether callbacks are registered.
    fn set_callbacks(&self, active: bool) {
        self.core.set_callbacks(active);
    }

    fn acks(&self) -> Vec<(String, u64)> {
        self.core.acks().into_iter().map(|(uid, total)| (format!("{uid:032x}"), total)).collect()
    }

    fn ack_fd(&self) -> i32 {
        self.core.event_fd()
    }

    /// Say what the process is doing between calls.
    fn set_running(&self, running: bool) {
        self.core.shared().set_doing(if running { Doing::Running } else { Doing::Idle });
    }

    fn set_info(&self, info: &str) {
        self.core.shared().info.write(info);
    }

    #[getter]
    fn depth(&self) -> u64 {
        self.core.shared().depth.load(Ordering::Relaxed)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.core.is_closed()
    }

    fn close(&self) {
        self.core.close();
    }

    fn abandon(&self) {
        self.core.abandon();
    }
}

/// While it lives, observers see the process as blocked.
pub struct Blocked<'a> {
    core: &'a Core,
    ticked: Instant,
}

impl<'a> Blocked<'a> {
    pub fn enter(core: &'a Core, doing: Doing, text: &str) -> Blocked<'a> {
        core.shared().waits.write(text);
        core.shared().set_doing(doing);
        Blocked { core, ticked: Instant::now() }
    }

    /// True about every 100 ms (sooner where the whole wait is shorter), however often it is woken.
    pub fn ticks(&mut self, limit: Duration) -> bool {
        let due = self.ticked.elapsed() >= limit.min(TICK);
        if due {
            self.ticked = Instant::now();
        }
        due
    }
}

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        self.core.shared().set_doing(Doing::Running);
        self.core.shared().waits.write("");
    }
}
