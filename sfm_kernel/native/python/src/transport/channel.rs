//! Channel: sends messages to one peer; made by Python, used by the core.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::errors::{closed, shm_error};
use crate::host::gil::{without_gil, InCall};
use crate::host::python::{PyHost, PyPeer};
use crate::packet::encode::{Encoder, PyPacket};
use crate::transport::exchange::Link;
use crate::transport::inbox::Inbox;
use crate::transport::segment::parse_uid;
use sfm_native::calls;
use sfm_native::packet::Gather;
use sfm_native::ring_sender::{is_arena_size, is_ring_size, RingSender};
use sfm_native::segment::{self, SLOTS};

/// Time that an earlier process's ring may stay unopened by its reader.
const PATIENCE: Duration = Duration::from_secs(10);

/// The channel to one incarnation of a peer. Thread-safe.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Channel {
    channel: calls::Channel,
    peer: PyPeer,
    /// The attributes `dest` and `src` of every message through this channel, encoded.
    ends: Vec<u8>,
    /// The peer reads no pickled values.
    pub plain: bool,
}

#[pymethods]
impl Channel {
    /// The channel to a peer that shares memory; makes the ring. Raises ValueError or OSError if the
    /// peer's segment cannot be opened, SegmentFull if there is no room for the ring.
    #[staticmethod]
    #[pyo3(signature = (inbox, peer_segment, peer_uid, slot, capacity, arena, dest, src, check))]
    #[expect(clippy::too_many_arguments, reason = "one caller, which names them")]
    fn ring(
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
    ) -> PyResult<Channel> {
        let _in_call = InCall::enter(py);
        let inbox = inbox.get();
        if slot >= SLOTS {
            return Err(PyValueError::new_err(format!("slot {slot} is out of range")));
        }
        if !is_ring_size(capacity) {
            return Err(PyValueError::new_err(
                "a ring's capacity is a power of two from 4096 to 2**30",
            ));
        }
        if !is_arena_size(arena) {
            return Err(PyValueError::new_err("an arena is a multiple of 4096, up to 2**40 bytes"));
        }
        let Some(folder) = &inbox.folder else {
            return Err(PyValueError::new_err("an endpoint without a segment cannot share memory"));
        };
        if peer_segment.parent() != Some(folder) {
            return Err(PyValueError::new_err("the peer's segment is in another folder"));
        }
        let failed = |failure| shm_error(py, failure, &folder.to_string_lossy());
        // An open segment with the right uid proves that memory is shared.
        let peer_segment =
            segment::open(&peer_segment, Some(parse_uid(peer_uid)?)).map_err(failed)?;
        let uid = inbox.core.shared().uid();
        let deadline = Instant::now() + PATIENCE;
        while RingSender::slot_is_taken(&peer_segment, folder, uid, slot) {
            if inbox.core.is_closed() {
                return Err(closed(py));
            }
            if Instant::now() > deadline {
                return Err(PyOSError::new_err(format!(
                    "{} has not read the messages that another process sent before: is it stopped?",
                    dest.repr()?
                )));
            }
            without_gil(py, || std::thread::sleep(Duration::from_micros(500)));
            py.check_signals()?;
        }
        let core = inbox.core.clone();
        let sender = RingSender::create(core, peer_segment, folder, slot, capacity, arena);
        Channel::new(calls::Channel::Ring(sender.map_err(failed)?), dest, src, check)
    }

    /// The channel through a link.
    #[staticmethod]
    #[pyo3(signature = (link, dest, src, check, plain=false))]
    fn link(
        link: &Bound<'_, Link>,
        dest: &Bound<'_, PyAny>,
        src: &Bound<'_, PyAny>,
        check: Py<PyAny>,
        plain: bool,
    ) -> PyResult<Channel> {
        let channel = calls::Channel::Link(link.get().link.clone());
        Ok(Channel { plain, ..Channel::new(channel, dest, src, check)? })
    }

    /// The channel to an inbox of this process, which may be `inbox` itself.
    #[staticmethod]
    fn local(
        inbox: &Bound<'_, Inbox>,
        uid: &str,
        peer: &Bound<'_, Inbox>,
        peer_uid: &str,
        dest: &Bound<'_, PyAny>,
        src: &Bound<'_, PyAny>,
        check: Py<PyAny>,
    ) -> PyResult<Channel> {
        let (from, to) = (&inbox.get().core, &peer.get().core);
        let channel = calls::Channel::local(from, parse_uid(uid)?, to, parse_uid(peer_uid)?);
        Channel::new(channel, dest, src, check)
    }

    /// "shm", "zmq", "gateway" or "inproc".
    #[getter]
    fn kind(&self) -> &'static str {
        self.channel.kind()
    }

    /// Send a packet with the `dest` and `src` that it has; see `_native.pyi`.
    fn send(&self, py: Python<'_>, packet: &Bound<'_, PyPacket>, buffering: u64) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        let bytes = packet.get().packet.contiguous().expect("packed into one place");
        self.write(py, &Gather::of(bytes), buffering)
    }
}

impl Channel {
    fn new(
        channel: calls::Channel,
        dest: &Bound<'_, PyAny>,
        src: &Bound<'_, PyAny>,
        check: Py<PyAny>,
    ) -> PyResult<Channel> {
        let mut encoder = Encoder::new();
        encoder.add("dest", dest)?;
        encoder.add("src", src)?;
        let ends = encoder.entries().to_vec();
        Ok(Channel { channel, peer: PyPeer::new(dest, check)?, ends, plain: false })
    }

    /// The encoded attributes `dest` and `src` of every message through this channel.
    pub fn ends(&self) -> &[u8] {
        &self.ends
    }

    /// The core's channel.
    pub fn channel(&self) -> &calls::Channel {
        &self.channel
    }

    /// See `calls::Channel::send`.
    pub fn write(&self, py: Python<'_>, packet: &Gather<'_>, buffering: u64) -> PyResult<()> {
        self.channel.send(&PyHost(py), &self.peer, packet, buffering)
    }
}
