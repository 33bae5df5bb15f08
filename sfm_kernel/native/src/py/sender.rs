//! RingSender and Outflow: the sending half of an endpoint.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use super::encode::PyPacket;
use super::errors::{closed, shm_error};
use super::inbox::{Blocked, Inbox};
use super::segment::parse_uid;
use crate::bell::Woken;
use crate::core::Core;
use crate::outflow::Outflow;
use crate::packet::cost;
use crate::segment::{self, Doing};
use crate::sender::{Sender, Step};

const TICK: Duration = Duration::from_millis(100);

/// The account of one peer: bytes sent and not yet received there.
#[pyclass(name = "Outflow", module = "sfm_kernel._native", frozen)]
pub struct PyOutflow {
    pub outflow: Arc<Outflow>,
    peer: String,
}

/// Wait until `ready()` gives something: interruptible, checking on the peer, seen by observers.
fn block_until<T>(
    py: Python<'_>,
    core: &Core,
    text: &str,
    check: &Bound<'_, PyAny>,
    mut ready: impl FnMut() -> Option<T>,
    mut wait: impl FnMut() -> Woken + Send,
) -> PyResult<T> {
    let mut blocked = Blocked::enter(core, Doing::Sending, text);
    loop {
        if core.is_closed() {
            return Err(closed(py));
        }
        if let Some(result) = ready() {
            return Ok(result);
        }
        let woken = py.detach(&mut wait);
        if woken == Woken::Signal {
            py.check_signals()?;
        }
        if blocked.ticks(TICK) {
            py.check_signals()?;
            check.call0()?;
        }
    }
}

#[pymethods]
impl PyOutflow {
    #[new]
    #[pyo3(signature = (inbox, peer=""))]
    fn new(inbox: &Bound<'_, Inbox>, peer: &str) -> PyOutflow {
        PyOutflow {
            outflow: Arc::new(Outflow::new(inbox.get().core.clone())),
            peer: peer.to_owned(),
        }
    }

    /// True if the receiver should acknowledge this packet at once.
    fn acquire(
        &self,
        py: Python<'_>,
        nbytes: usize,
        buffering: u64,
        check: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let outflow = &self.outflow;
        let core = outflow.core();
        if core.is_closed() {
            return Err(closed(py));
        }
        let cost = cost(nbytes);
        if !outflow.try_acquire(cost, buffering) {
            let text = format!("room at {} for {nbytes} bytes", self.peer);
            let ready = || outflow.try_acquire(cost, buffering).then_some(());
            let wait = || {
                core.spin_then_sleep(TICK, || {
                    outflow.may_acquire(cost, buffering) || core.is_closed()
                })
            };
            block_until(py, core, &text, check, ready, wait)?;
        }
        Ok(outflow.waiting() > buffering / 2)
    }

    fn drain(&self, py: Python<'_>, check: &Bound<'_, PyAny>) -> PyResult<()> {
        let outflow = &self.outflow;
        let core = outflow.core();
        let text = format!("{} to receive it (buffering=0)", self.peer);
        let ready = || (outflow.waiting() == 0).then_some(());
        let wait = || core.spin_then_sleep(TICK, || outflow.waiting() == 0 || core.is_closed());
        block_until(py, core, &text, check, ready, wait)
    }

    fn release(&self, nbytes: usize) {
        self.outflow.release(cost(nbytes));
    }

    fn credit(&self, total: u64) {
        self.outflow.credit(total);
    }

    /// Count a packet as handed over (its `acquire` went before).
    fn count(&self) {
        self.outflow.count();
    }

    #[getter]
    fn waiting(&self) -> u64 {
        self.outflow.waiting()
    }
}

/// The way to a peer that shares memory.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct RingSender {
    sender: Sender,
    peer: String,
}

#[pymethods]
impl RingSender {
    /// Make the ring. Raises ValueError or OSError where the peer's segment cannot be reached,
    /// SegmentFull where there is no room for the ring.
    #[new]
    fn new(
        py: Python<'_>,
        inbox: &Bound<'_, Inbox>,
        peer_segment: PathBuf,
        peer_uid: &str,
        slot: usize,
        capacity: usize,
        peer: &str,
    ) -> PyResult<RingSender> {
        let inbox = inbox.get();
        if slot >= crate::segment::SLOTS {
            return Err(PyValueError::new_err(format!("slot {slot} is out of range")));
        }
        if !capacity.is_power_of_two() || !(4096..=1 << 30).contains(&capacity) {
            return Err(PyValueError::new_err(
                "a ring's capacity is a power of two from 4096 to 2**30",
            ));
        }
        let Some(folder) = &inbox.folder else {
            return Err(PyValueError::new_err("an endpoint without a segment cannot share memory"));
        };
        if peer_segment.parent() != Some(folder) {
            return Err(PyValueError::new_err("the peer's segment is in another folder"));
        }
        let failed = |failure| shm_error(py, failure, &folder.to_string_lossy());
        // Reaching the segment, and finding its uid in it, is the proof that memory is shared.
        let peer_segment =
            segment::open(&peer_segment, Some(parse_uid(peer_uid)?)).map_err(failed)?;
        let own = inbox.core.shared().uid();
        let patience = Instant::now() + Duration::from_secs(10);
        while Sender::slot_is_taken(&peer_segment, folder, own, slot) {
            if Instant::now() > patience {
                return Err(PyOSError::new_err(format!(
                    "{peer} has not taken in what another process sent it before: is it stopped?"
                )));
            }
            py.detach(|| std::thread::sleep(Duration::from_micros(500)));
            py.check_signals()?;
        }
        let sender = Sender::create(inbox.core.clone(), peer_segment, folder, slot, capacity)
            .map_err(failed)?;
        Ok(RingSender { sender, peer: peer.to_owned() })
    }

    /// Write the packet; see `Route.send`. `check()` raises if the peer is dead.
    fn send(
        &self,
        py: Python<'_>,
        packet: &Bound<'_, PyPacket>,
        buffering: u64,
        check: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let sender = &self.sender;
        let core = &*sender.core;
        let packet = &*packet.get().packet;
        let mut guard = loop {
            if core.is_closed() {
                return Err(closed(py));
            }
            if let Some(writing) = sender.try_lock() {
                break writing;
            }
            // Another thread of this process is sending to the same peer. Never wait for it with
            // the GIL, which it may need to finish.
            py.detach(|| std::thread::sleep(Duration::from_micros(50)));
            py.check_signals()?;
        };
        let writing = &mut *guard;
        if sender.peer_left() || sender.doubts(writing) {
            check.call0()?;
        }
        let mut done = 0;
        if sender.step(writing, packet, &mut done, buffering) != Step::Done {
            let text = format!("room at {} for {} bytes", self.peer, packet.len());
            let mut blocked = Blocked::enter(core, Doing::Sending, &text);
            loop {
                // A large message is copied without the GIL.
                let (step, woken) =
                    py.detach(|| match sender.step(writing, packet, &mut done, buffering) {
                        Step::Done => (Step::Done, Woken::Rung),
                        Step::Blocked => {
                            (Step::Blocked, sender.wait(writing, packet, done, buffering))
                        }
                    });
                if step == Step::Done {
                    break;
                }
                let mut go_on = || -> PyResult<()> {
                    if core.is_closed() {
                        return Err(closed(py));
                    }
                    if woken == Woken::Signal {
                        py.check_signals()?;
                    }
                    if blocked.ticks(TICK) {
                        py.check_signals()?;
                        check.call0()?;
                    }
                    Ok(())
                };
                if let Err(failure) = go_on() {
                    sender.abort(writing, done);
                    return Err(failure);
                }
            }
        }
        if buffering == 0 {
            let text = format!("{} to receive it (buffering=0)", self.peer);
            let mut blocked = Blocked::enter(core, Doing::Sending, &text);
            while !sender.drained(writing) {
                let woken = py.detach(|| sender.wait_drained(writing));
                if core.is_closed() {
                    return Err(closed(py));
                }
                if woken == Woken::Signal || blocked.ticks(TICK) {
                    py.check_signals()?;
                    check.call0()?;
                }
            }
        }
        Ok(())
    }
}
