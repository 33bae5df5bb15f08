//! The ends of a communicator: what its native sends and receives know, and the sending.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::calls::{wires, Calls};
use super::detached::InCall;
use super::encode::Encoder;
use super::errors;
use super::memory::Memory;
use super::message::Message;
use super::parts::{
    abandon, give_up, receive_parts, receive_stream, send_parts, size_of_parts, stream, PART,
    UNBOUNDED,
};
use super::way::Way;

/// Whether more than single messages is under way, or pickles are the user's own: the engine of
/// `sfm_kernel.mpi` says so.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Busy(pub(super) AtomicBool);

#[pymethods]
impl Busy {
    #[new]
    fn new() -> Busy {
        Busy(AtomicBool::new(false))
    }

    fn set(&self, busy: bool) {
        self.0.store(busy, Ordering::Relaxed);
    }

    fn __bool__(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The ends of one communicator.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Direct {
    pub(super) context: Py<Calls>,
    /// Where all parts of a message go but the first.
    pub(super) parts: Py<Calls>,
    /// To whom and from whom messages go, by rank.
    pub(super) peers: Py<PyTuple>,
    pub(super) busy: Py<Busy>,
    pub(super) any_source: i64,
    pub(super) any_tag: i64,
    /// The number of the next message in parts.
    next: AtomicI64,
}

#[pymethods]
impl Direct {
    #[new]
    fn new(
        context: Py<Calls>,
        parts: Py<Calls>,
        peers: Py<PyTuple>,
        busy: Py<Busy>,
        any_source: i64,
        any_tag: i64,
    ) -> Direct {
        Direct { context, parts, peers, busy, any_source, any_tag, next: AtomicI64::new(0) }
    }

    /// Send the bytes of an array, eagerly. False where there is no native way to that rank, and
    /// nothing was sent.
    fn send(
        &self,
        py: Python<'_>,
        dest: i64,
        tag: i64,
        data: &Bound<'_, PyAny>,
        buffering: u64,
    ) -> PyResult<bool> {
        let _in_call = InCall::enter(py);
        let memory = Memory::of(data)?.ok_or_else(|| PyValueError::new_err("no such array"))?;
        send_memory(self, py, dest, tag, &memory, buffering)
    }

    /// Copy a message that came in parts into an array of its size, waiting for what is missing.
    fn receive(
        &self,
        py: Python<'_>,
        message: &Bound<'_, Message>,
        into: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        let memory = Memory::of(into)?.filter(|memory| memory.writable);
        let packet = &message.get().packet;
        match (memory, size_of_parts(packet)) {
            (Some(memory), Some(size)) if size <= memory.length => {
                // SAFETY: an array's memory of at least this size, held by the caller.
                unsafe { receive_parts(py, self.parts.bind(py), packet, memory.at, size) }
            }
            _ => Err(PyValueError::new_err("no message in parts, or no array of its size")),
        }
    }

    /// Whether parts go fast to and from this rank: through memory, and there is a way already.
    fn is_near(&self, py: Python<'_>, rank: i64) -> PyResult<bool> {
        Ok(way_to(self, py, rank, 0)?.is_some_and(|way| way.get().is_ring()))
    }

    /// Send the first bytes, in parts, of a transfer that has so many in `total`.
    fn open(
        &self,
        py: Python<'_>,
        dest: i64,
        tag: i64,
        data: &Bound<'_, PyAny>,
        transfer: &Bound<'_, PyAny>,
        total: usize,
    ) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        let (memory, way) = self.stream_ends(py, dest, data)?;
        let transfer = Some((transfer, total));
        send_parts(py, self, way.get(), tag, &memory, transfer, UNBOUNDED)
    }

    /// Stream data to the receiver of a transfer, which waits for it; see `_native.pyi`.
    fn stream(
        &self,
        py: Python<'_>,
        dest: i64,
        transfer: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        start: usize,
        acked: usize,
    ) -> PyResult<Option<usize>> {
        let _in_call = InCall::enter(py);
        let (memory, way) = self.stream_ends(py, dest, data)?;
        let dest = self.peers.bind(py).get_item(dest as usize)?;
        stream(self, way.get(), &dest, transfer, &memory, start, acked)
    }

    /// Tell the receiver of a stream that no more comes.
    fn give_up(&self, py: Python<'_>, dest: i64, transfer: &Bound<'_, PyAny>) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        let Some(way) = way_to(self, py, dest, 0)? else { return Ok(()) };
        give_up(self, way.get(), transfer)
    }

    /// Tell the sender of a stream that no more is wanted, and drop what has come.
    fn abandon(
        &self,
        py: Python<'_>,
        source: i64,
        transfer: &Bound<'_, PyAny>,
        into: &Bound<'_, PyAny>,
        start: usize,
    ) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        let (memory, way) = self.stream_ends(py, source, into)?;
        let src = self.peers.bind(py).get_item(source as usize)?;
        abandon(self, way.get(), &src, transfer, start, memory.length)
    }

    /// Take a stream in, to the end of the array.
    fn receive_stream(
        &self,
        py: Python<'_>,
        source: i64,
        transfer: &Bound<'_, PyAny>,
        into: &Bound<'_, PyAny>,
        start: usize,
    ) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        let (memory, way) = self.stream_ends(py, source, into)?;
        if !memory.writable {
            return Err(PyValueError::new_err("the array is read-only"));
        }
        let src = self.peers.bind(py).get_item(source as usize)?;
        receive_stream(self, way.get(), &src, transfer, &memory, start)
    }
}

impl Direct {
    fn stream_ends<'py>(
        &self,
        py: Python<'py>,
        rank: i64,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<(Memory<'py>, Bound<'py, Way>)> {
        let memory = Memory::of_array(data, usize::MAX);
        let memory = memory.ok_or_else(|| PyValueError::new_err("no such array"))?;
        let Some(way) = way_to(self, py, rank, 0)? else {
            // There was one when the stream was agreed on: its other end has gone since.
            let peer = self.peers.bind(py).get_item(rank as usize)?;
            return Err(errors::error(py, "PeerLost", (peer,)));
        };
        Ok((memory, way))
    }

    pub(super) fn next_number(&self) -> i64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// The way to a rank; None where Python has to look: there is none yet, or the message stays in this
/// process.
fn way_to<'py>(
    direct: &Direct,
    py: Python<'py>,
    dest: i64,
    tag: i64,
) -> PyResult<Option<Bound<'py, Way>>> {
    let peers = direct.peers.bind(py);
    if dest < 0 || dest >= peers.len() as i64 || !(0..=i64::from(i32::MAX)).contains(&tag) {
        return Ok(None);
    }
    let wires = wires(direct.context.bind(py))?;
    let found = wires.ways.bind(py).get_item(peers.get_borrowed_item(dest as usize)?)?;
    let way = found.map(|way| way.cast_into_exact::<Way>()).transpose()?;
    Ok(way.filter(|way| !way.get().is_local()))
}

/// Send bytes, in parts if they are many; false where Python has to do it.
pub fn send_memory<'py>(
    direct: &Direct,
    py: Python<'py>,
    dest: i64,
    tag: i64,
    memory: &Memory<'py>,
    buffering: u64,
) -> PyResult<bool> {
    if memory.length > PART {
        let Some(way) = way_to(direct, py, dest, tag)? else { return Ok(false) };
        if way.get().is_ring() {
            send_parts(py, direct, way.get(), tag, memory, None, buffering)?;
            return Ok(true);
        }
    }
    write(direct, py, dest, tag, buffering, |encoder| {
        // SAFETY: the array is held by the caller for the time of the call.
        unsafe { encoder.add_bytes("data", memory.at, memory.length, &memory.owner) }
    })
}

/// Send a message with this tag and what `fill` adds; false where Python has to do it.
pub fn write<'py>(
    direct: &Direct,
    py: Python<'py>,
    dest: i64,
    tag: i64,
    buffering: u64,
    fill: impl FnOnce(&mut Encoder<'py>) -> PyResult<()>,
) -> PyResult<bool> {
    let Some(way) = way_to(direct, py, dest, tag)? else { return Ok(false) };
    let way = way.get();
    let wires = wires(direct.context.bind(py))?;
    let mut encoder = Encoder::new();
    encoder.set_context(wires.context);
    encoder.extend(way.ends(), 2);
    encoder.add_int("tag", tag)?;
    fill(&mut encoder)?;
    way.write(py, &encoder.gather(), buffering)?;
    Ok(true)
}
