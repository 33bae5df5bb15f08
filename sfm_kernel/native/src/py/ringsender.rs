//! RingSender: the way to a peer that shares memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use super::blocked::{Blocked, TICK};
use super::detached::{without_gil, InCall};
use super::encode::{Encoder, PyPacket, DETACH_FROM};
use super::errors::{closed, error, reentered, shm_error, too_large};
use super::here;
use super::inbox::Inbox;
use super::outflow::facts_of_send;
use super::segment::parse_uid;
use crate::bell::Woken;
use crate::packet::Gather;
use crate::segment::{self, Doing};
use crate::sender::{account_of, Progress, Sender, Step, Writing};

/// How long a peer may take to end, once its segment says that it has died: its memory goes first,
/// then its lock. Who holds the lock for longer lives, and its segment is damaged.
const PATIENCE: Duration = Duration::from_secs(2);

/// The way to a peer that shares memory.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct RingSender {
    sender: Arc<Sender>,
    /// The peer's name, and how it is shown.
    name: Py<PyAny>,
    peer: String,
    /// The attributes `dest` and `src` of every message that goes this way, encoded.
    ends: Vec<u8>,
    /// Raises if the peer is dead.
    check: Py<PyAny>,
}

#[pymethods]
impl RingSender {
    /// Make the ring. Raises ValueError or OSError where the peer's segment cannot be reached,
    /// SegmentFull where there is no room for the ring.
    #[new]
    #[pyo3(signature = (inbox, peer_segment, peer_uid, slot, capacity, arena, dest, src, check))]
    #[expect(clippy::too_many_arguments, reason = "one caller, which names them")]
    fn new(
        py: Python<'_>,
        inbox: &Bound<'_, Inbox>,
        peer_segment: PathBuf,
        peer_uid: &str,
        slot: usize,
        capacity: usize,
        arena: usize,
        dest: &Bound<'_, PyAny>,
        src: &Bound<'_, PyAny>,
        check: Py<PyAny>,
    ) -> PyResult<RingSender> {
        let _in_call = InCall::enter(py);
        let inbox = inbox.get();
        if slot >= crate::segment::SLOTS {
            return Err(PyValueError::new_err(format!("slot {slot} is out of range")));
        }
        if !capacity.is_power_of_two() || !(4096..=1 << 30).contains(&capacity) {
            return Err(PyValueError::new_err(
                "a ring's capacity is a power of two from 4096 to 2**30",
            ));
        }
        if arena % 4096 != 0 || arena > 1 << 40 {
            return Err(PyValueError::new_err("an arena is a multiple of 4096, up to 2**40 bytes"));
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
        let peer = dest.repr()?.to_string();
        let own = inbox.core.shared().uid();
        let patience = Instant::now() + Duration::from_secs(10);
        while Sender::slot_is_taken(&peer_segment, folder, own, slot) {
            if inbox.core.is_closed() {
                return Err(closed(py));
            }
            if Instant::now() > patience {
                return Err(PyOSError::new_err(format!(
                    "{peer} has not taken in what another process sent it before: is it stopped?"
                )));
            }
            without_gil(py, || std::thread::sleep(Duration::from_micros(500)));
            py.check_signals()?;
        }
        let core = inbox.core.clone();
        let sender = Sender::create(core, peer_segment, folder, slot, capacity, arena);
        let sender = sender.map_err(failed)?;
        let mut encoder = Encoder::new();
        encoder.add("dest", dest)?;
        encoder.add("src", src)?;
        let (ends, name) = (encoder.entries().to_vec(), dest.clone().unbind());
        Ok(RingSender { sender, peer, name, ends, check })
    }

    /// Write the packet; see `Route.send`.
    fn send(&self, py: Python<'_>, packet: &Bound<'_, PyPacket>, buffering: u64) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        here::mark(py)?;
        let bytes = packet.get().packet.whole().expect("packed into one place");
        self.write(py, &Gather::of(bytes), buffering)
    }
}

impl RingSender {
    /// The attributes `dest` and `src`, two of them.
    pub fn ends(&self) -> &[u8] {
        &self.ends
    }

    /// Write the packet; returns when it is in the ring, with `buffering` 0 when it was received.
    pub fn write(&self, py: Python<'_>, packet: &Gather<'_>, buffering: u64) -> PyResult<()> {
        let sender = &*self.sender;
        let core = &*sender.core;
        let mut guard = loop {
            if core.is_closed() {
                return Err(closed(py));
            }
            if let Some(writing) = sender.try_lock() {
                break writing;
            }
            if sender.holder.is_this_thread() {
                return Err(reentered(py, &self.peer));
            }
            // Another thread of this process is sending to the same peer. Never wait for it with
            // the GIL, which it may need to finish.
            without_gil(py, || std::thread::sleep(Duration::from_micros(50)));
            py.check_signals()?;
        };
        let writing = &mut *guard;
        if sender.peer_left() || sender.doubts(writing) {
            let _held = sender.holder.enter();
            self.check.call0(py)?;
        }
        if sender.peer_died(writing) {
            self.wait_for_end(py, writing)?;
        }
        if sender.is_refused(writing) {
            let _held = sender.holder.enter();
            return Err(self.refused(py));
        }
        let mut progress = Progress::default();
        let large = packet.len() >= DETACH_FROM;
        let done = !large && sender.step(writing, packet, &mut progress, buffering) == Step::Done;
        if !done {
            self.wait_and_write(py, writing, packet, progress, buffering, large)?;
        }
        if buffering == 0 {
            self.wait_until_received(py, writing, account_of(packet))?;
        }
        Ok(())
    }

    /// The peer's segment says that it has died: returns if that is not so.
    #[cold]
    fn wait_for_end(&self, py: Python<'_>, writing: &mut Writing) -> PyResult<()> {
        let _held = self.sender.holder.enter();
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            self.check.call0(py)?; // raises as soon as the kernel has dropped the dead one's lock
            without_gil(py, || std::thread::sleep(Duration::from_micros(200)));
            py.check_signals()?;
        }
        writing.distrust();
        Ok(())
    }

    /// What does not fit at once, or is so large that it is copied without the GIL.
    fn wait_and_write(
        &self,
        py: Python<'_>,
        writing: &mut Writing,
        packet: &Gather<'_>,
        mut progress: Progress,
        buffering: u64,
        large: bool,
    ) -> PyResult<()> {
        let sender = &*self.sender;
        let core = &*sender.core;
        if large
            && without_gil(py, || sender.step(writing, packet, &mut progress, buffering))
                == Step::Done
        {
            return Ok(());
        }
        let text = format!("room at {} for {} bytes", self.peer, packet.len());
        let _held = sender.holder.enter();
        let facts = facts_of_send(&self.peer);
        let mut blocked = Blocked::enter(core, Doing::Sending, &text, &facts, None);
        loop {
            let (step, woken) =
                without_gil(py, || match sender.step(writing, packet, &mut progress, buffering) {
                    Step::Done => (Step::Done, Woken::Rung),
                    Step::Refused => (Step::Refused, Woken::Rung),
                    Step::Blocked => {
                        blocked.settle_send(writing.seen);
                        (Step::Blocked, sender.wait(writing, packet, &progress, buffering))
                    }
                });
            let failure = match step {
                Step::Done => return Ok(()),
                Step::Refused => Some(too_large(py, &self.name, packet.len())),
                Step::Blocked if sender.is_refused(writing) => Some(self.refused(py)),
                Step::Blocked => self.look_up(py, &mut blocked, woken).err(),
            };
            if let Some(failure) = failure {
                sender.abort(writing, progress);
                return Err(failure);
            }
        }
    }

    fn wait_until_received(
        &self,
        py: Python<'_>,
        writing: &mut Writing,
        account: usize,
    ) -> PyResult<()> {
        let sender = &*self.sender;
        let text = format!("{} to receive it (buffering=0)", self.peer);
        let _held = sender.holder.enter();
        let facts = facts_of_send(&self.peer);
        let mut blocked = Blocked::enter(&sender.core, Doing::Sending, &text, &facts, None);
        while !sender.drained(writing, account) {
            if sender.is_refused(writing) {
                return Err(self.refused(py));
            }
            blocked.settle_send(writing.seen);
            let woken = without_gil(py, || sender.wait_drained(writing, account));
            self.look_up(py, &mut blocked, woken)?;
        }
        Ok(())
    }

    fn refused(&self, py: Python<'_>) -> PyErr {
        error(py, "MessagesLost", (&self.name,))
    }

    /// What a blocked sender does whenever it wakes: see whether there is a reason to give up.
    fn look_up(&self, py: Python<'_>, blocked: &mut Blocked<'_>, woken: Woken) -> PyResult<()> {
        if self.sender.core.is_closed() {
            return Err(closed(py));
        }
        if woken == Woken::Signal {
            py.check_signals()?;
        }
        if blocked.ticks(TICK) {
            py.check_signals()?;
            self.check.call0(py)?;
            blocked.tell(py, None)?;
        }
        blocked.judged(py)
    }
}
