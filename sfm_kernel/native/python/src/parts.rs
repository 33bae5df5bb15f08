//! Messages of MPI that go in parts: while the sender copies the next part in, the receiver copies
//! the last one out.
//!
//! An eager message in parts opens with its first part, which has the whole `size` and, as `parts`,
//! a number that no other one of the sender has in this communicator. The others go in a context of
//! their own, with that number as `part`. The sender waits for nothing between two parts.
//!
//! What is larger is Python's business (`sfm_kernel.mpi.engine.sends`): a `transfer` with a name,
//! whose first bytes go as above. A receiver that has nothing else to do lets the sender *stream* the rest: parts that have the transfer's name as `part`.
//! After every `STEP` bytes the receiver says how far it is (`ack`, the name, and `at`); at most
//! `WINDOW` bytes are under way. It says `stop` if it gives up. Each `ack` that is sent is needed,
//! so that none is left over.
//!
//! A part without data says that the sender gives up.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::calls::{waiter, wires, Calls};
use super::decode::value_of;
use super::detached::without_gil;
use super::encode::Encoder;
use super::ends::Direct;
use super::errors::{self, error};
use super::memory::Memory;
use super::search::{Search, Waited};
use super::template::Template;
use super::way::Way;
use sfm_native::core::ANSWERS;
use sfm_native::matching::Taken;
use sfm_native::packet::{u32_at, u64_at, Kind, Packet};

/// Bytes of a part. Larger ones overlap less; each costs about a microsecond.
pub const PART: usize = 64 << 10;

const STEP: usize = 4 * PART;
const WINDOW: usize = 4 * STEP;

/// How long an interrupted receive waits for parts that nobody wants any more.
const PATIENCE: Duration = Duration::from_secs(1);

pub const UNBOUNDED: u64 = 1 << 62;

/// A place in the context of parts, and a way there.
struct Line<'a, 'py> {
    parts: &'a Bound<'py, Calls>,
    way: &'a Way,
    /// "part" or "ack", and whose.
    kind: &'a str,
    name: &'a Bound<'py, PyAny>,
}

/// The context of parts, and its twin of what answers them.
fn space(parts: &Bound<'_, Calls>, kind: &str) -> PyResult<u64> {
    Ok(wires(parts)?.context | if kind == "ack" { ANSWERS } else { 0 })
}

impl<'py> Line<'_, 'py> {
    fn write(&self, fill: impl FnOnce(&mut Encoder<'py>) -> PyResult<()>) -> PyResult<()> {
        let mut encoder = Encoder::new();
        encoder.set_context(space(self.parts, self.kind)?);
        encoder.extend(self.way.ends(), 2);
        encoder.add(self.kind, self.name)?;
        fill(&mut encoder)?;
        self.way.write(self.parts.py(), &encoder.gather(), UNBOUNDED)
    }

    /// Send so much of the memory.
    fn part(&self, memory: &Memory<'py>, from: usize, nbytes: usize) -> PyResult<()> {
        let sent = self.write(|encoder| {
            // SAFETY: inside the memory, whose owner the encoder keeps.
            unsafe { encoder.add_bytes("data", memory.at.add(from), nbytes, &memory.owner) }
        });
        if sent.is_err() {
            // Who waits for this part is told. Where that fails, too, it learns of the end.
            let _ = self.write(|_| Ok(()));
        }
        sent
    }
}

// ---- eager messages ----

/// Send the bytes of this memory, which are more than a part: a message, or the first of a larger
/// `transfer` with this name and so many bytes.
pub fn send_parts<'py>(
    py: Python<'py>,
    direct: &Direct,
    way: &Way,
    tag: i64,
    memory: &Memory<'py>,
    transfer: Option<(&Bound<'py, PyAny>, usize)>,
    buffering: u64,
) -> PyResult<()> {
    let number = direct.next_number();
    let mut encoder = Encoder::new();
    encoder.set_context(wires(direct.context.bind(py))?.context);
    encoder.extend(way.ends(), 2);
    encoder.add_int("tag", tag)?;
    encoder.add_int("parts", number)?;
    encoder.add_int("size", memory.length as i64)?;
    if let Some((name, total)) = transfer {
        encoder.add("transfer", name)?;
        encoder.add_int("total", total as i64)?;
    }
    // SAFETY: inside the memory, whose owner the encoder keeps.
    unsafe { encoder.add_bytes("data", memory.at, PART, &memory.owner)? };
    way.write(py, &encoder.gather(), buffering)?;
    let name = number.into_pyobject(py)?.into_any();
    let line = Line { parts: direct.parts.bind(py), way, kind: "part", name: &name };
    for from in (PART..memory.length).step_by(PART) {
        line.part(memory, from, PART.min(memory.length - from))?;
    }
    Ok(())
}

/// The size of a message that came in parts; None of any other.
pub fn size_of_parts(packet: &Packet) -> Option<usize> {
    packet.find("parts")?;
    number(packet, "size")
}

/// Copy the data of a message of `size` bytes, whose first part this is, to `to`.
///
/// # Safety
/// There are `size` bytes of memory at `to`, which nobody moves meanwhile.
pub unsafe fn receive_parts(
    py: Python<'_>,
    parts: &Bound<'_, Calls>,
    first: &Arc<Packet>,
    to: *mut u8,
    size: usize,
) -> PyResult<()> {
    let (Some(src), Some(name)) = (first.find("src"), first.find("parts")) else {
        return Err(PyValueError::new_err("no message in parts"));
    };
    let (src, name) = (value_of(py, first, &src)?, value_of(py, first, &name)?);
    // SAFETY: the caller's.
    let done = unsafe { copy(first, to, size) }.unwrap_or(0);
    // SAFETY: the same.
    unsafe { collect(parts, &src, &name, to, done, size, |_| Ok(())) }
        .or_else(|stopped| stopped.drop_rest(parts, &src, &name, size))
}

// ---- streams ----

/// Send the bytes of this memory, the `from`-th and following ones of a transfer of which the
/// receiver has `acked` bytes. Gives how many it has then; None if it has given up. Where this fails,
/// call `give_up`.
pub fn stream<'py>(
    direct: &Direct,
    way: &Way,
    dest: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
    memory: &Memory<'py>,
    from: usize,
    mut acked: usize,
) -> PyResult<Option<usize>> {
    let py = dest.py();
    let parts = direct.parts.bind(py);
    let line = Line { parts, way, kind: "part", name };
    let mut acks = Awaited::new(parts, dest, "ack", name)?;
    for at in (0..memory.length).step_by(PART) {
        let nbytes = PART.min(memory.length - at);
        while from + at + nbytes > acked + WINDOW {
            breathe(py)?;
            let taken = acks.next(None)?.expect("no timeout");
            match number(&taken.packet, "at") {
                Some(at) => acked = at,
                None => {
                    line.write(|_| Ok(()))?; // so that it knows where the parts end
                    return Ok(None);
                }
            }
        }
        line.part(memory, at, nbytes)?;
    }
    Ok(Some(acked))
}

/// Take in a stream: the `from`-th and following bytes of a transfer, to the end of the memory.
pub fn receive_stream<'py>(
    direct: &Direct,
    way: &Way,
    src: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
    memory: &Memory<'py>,
    from: usize,
) -> PyResult<()> {
    let parts = direct.parts.bind(src.py());
    let line = Line { parts, way, kind: "ack", name };
    let size = memory.length;
    let mut acked = from;
    let mut tell = |done: usize| {
        // The sender needs no more than this to send all.
        if acked + WINDOW < size && (done >= acked + STEP || done == size) {
            breathe(src.py())?;
            acked = done;
            return line.write(|encoder| encoder.add_int("at", done as i64));
        }
        Ok(())
    };
    // SAFETY: the memory is held by the caller.
    let outcome = unsafe { collect(parts, src, name, memory.at, from, size, &mut tell) };
    if outcome.is_err() && acked + WINDOW < size {
        let _ = line.write(|_| Ok(())); // it waits
    }
    outcome.or_else(|stopped| stopped.drop_rest(parts, src, name, size))
}

/// Let other threads run and Stop strike, where no wait is so long that it would.
fn breathe(py: Python<'_>) -> PyResult<()> {
    without_gil(py, || ());
    py.check_signals()
}

/// Tell the receiver of a stream that no more comes.
pub fn give_up(direct: &Direct, way: &Way, name: &Bound<'_, PyAny>) -> PyResult<()> {
    let parts = direct.parts.bind(name.py());
    Line { parts, way, kind: "part", name }.write(|_| Ok(()))
}

/// Tell the sender of a stream, of which `done` of `size` bytes are there, that no more is wanted.
pub fn abandon(
    direct: &Direct,
    way: &Way,
    src: &Bound<'_, PyAny>,
    name: &Bound<'_, PyAny>,
    done: usize,
    size: usize,
) -> PyResult<()> {
    let parts = direct.parts.bind(src.py());
    if done + WINDOW < size {
        Line { parts, way, kind: "ack", name }.write(|_| Ok(()))?;
    }
    drop_parts(parts, src, name, done, size)
}

// ---- the receiving side of both ----

/// Why parts were not collected to the end, and how many bytes were.
struct Stopped {
    failure: PyErr,
    done: usize,
    /// The sender has said that no more comes.
    over: bool,
}

impl Stopped {
    /// Fail, and leave nothing behind that nobody will ever receive.
    fn drop_rest<T>(
        self,
        parts: &Bound<'_, Calls>,
        src: &Bound<'_, PyAny>,
        name: &Bound<'_, PyAny>,
        size: usize,
    ) -> PyResult<T> {
        if !self.over && !errors::is(src.py(), &self.failure, "PeerLost") {
            drop_parts(parts, src, name, self.done, size)?;
        }
        Err(self.failure)
    }
}

/// Copy parts to `to`, until there are `size` bytes, of which `done` are there; after each part
/// `taken` is told how many there are.
///
/// # Safety
/// There are `size` bytes of memory at `to`, which nobody moves meanwhile.
unsafe fn collect<'py>(
    parts: &Bound<'py, Calls>,
    src: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
    to: *mut u8,
    mut done: usize,
    size: usize,
    mut taken: impl FnMut(usize) -> PyResult<()>,
) -> Result<(), Stopped> {
    let stopped = |done, over| move |failure| Stopped { failure, done, over };
    let mut awaited = Awaited::new(parts, src, "part", name).map_err(stopped(done, false))?;
    while done < size {
        let packet = awaited.next(None).map_err(stopped(done, false))?;
        let packet = packet.expect("no timeout").packet;
        // SAFETY: the caller's: `size` bytes at `to`, of which `done` are used.
        match unsafe { copy(&packet, to.add(done), size - done) } {
            Some(length) => done += length,
            None => {
                let shown = src.repr().map_or_else(|_| String::new(), |shown| shown.to_string());
                let what = format!("process {shown} was interrupted while it sent this message");
                let failure = error(src.py(), "TransferError", (what,));
                return Err(Stopped { failure, done, over: true });
            }
        }
        drop(packet); // its memory goes back before the sender hears of it
        taken(done).map_err(stopped(done, false))?;
    }
    Ok(())
}

/// Drop the parts from byte `done` on, which are on their way; wait a little for them.
fn drop_parts(
    parts: &Bound<'_, Calls>,
    src: &Bound<'_, PyAny>,
    name: &Bound<'_, PyAny>,
    mut done: usize,
    size: usize,
) -> PyResult<()> {
    let mut awaited = Awaited::new(parts, src, "part", name)?;
    while done < size {
        let Some(taken) = awaited.next(Some(PATIENCE))? else { break };
        match data_of(&taken.packet) {
            Some(data) if !data.is_empty() => done += data.len(),
            _ => break,
        }
    }
    Ok(())
}

/// Messages of one kind and name, from one process.
struct Awaited<'a, 'py> {
    parts: &'a Bound<'py, Calls>,
    pairs: [(&'a str, &'a Bound<'py, PyAny>); 2],
    search: Search<'a, 'py>,
}

impl<'a, 'py> Awaited<'a, 'py> {
    fn new(
        parts: &'a Bound<'py, Calls>,
        src: &'a Bound<'py, PyAny>,
        kind: &'a str,
        name: &'a Bound<'py, PyAny>,
    ) -> PyResult<Awaited<'a, 'py>> {
        let wires = wires(parts)?;
        let pairs = [("src", src), (kind, name)];
        let template = Template::new(pairs.map(Ok).into_iter())?;
        let search = Search::new(&wires.core, space(parts, kind)?, template);
        Ok(Awaited { parts, pairs, search })
    }

    /// Wait for the next one; None if it does not come in time.
    fn next(&mut self, timeout: Option<Duration>) -> PyResult<Option<Taken>> {
        let (parts, pairs) = (self.parts, self.pairs);
        let waiter = || waiter(parts, pairs.into_iter());
        match self.search.wait(parts.py(), timeout, waiter)? {
            Waited::Taken(taken) => Ok(Some(taken)),
            Waited::TimedOut => Ok(None),
        }
    }
}

fn number(packet: &Packet, name: &str) -> Option<usize> {
    let found = packet.find(name).filter(|one| one.kind == Kind::Int)?;
    usize::try_from(u64_at(found.value, 0)).ok()
}

/// Copy a part to memory that has room for `room` bytes; None where it has no data.
unsafe fn copy(packet: &Packet, to: *mut u8, room: usize) -> Option<usize> {
    let data = data_of(packet)?;
    let length = data.len().min(room);
    // SAFETY: the caller's; a packet is no memory that anybody writes.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, length) };
    (length > 0).then_some(length)
}

/// The bytes of a packet's `data`, if it is an array.
pub fn data_of(packet: &Packet) -> Option<&[u8]> {
    let data = packet.find("data").filter(|one| one.kind == Kind::Array)?;
    Some(packet.buffer_bytes(u32_at(data.value, 0) as usize))
}
