//! The ring: a byte stream from one process to another, through memory that both map.
//!
//! One producer, one consumer: no locks, and a sender killed at any instruction can stop only its
//! own ring. `head` counts the bytes ever published, `tail` those ever consumed; both only grow,
//! and their difference is what is in the ring. Packets travel as frames:
//!
//! ```text
//! { chunk length u32, kind u32, packet length u64 } chunk, padded to 8
//! ```
//!
//! A packet larger than the free space goes in several frames, the first marked FIRST and the
//! last LAST. A sender that gives up half-way (the user pressed Stop) writes ABORT, for which
//! room is always kept: the receiver forgets the part it has, and nothing was sent.
//!
//! A receiver that has no memory for a large packet says so in `refused`, and passes over what
//! comes of it; its sender, which cannot finish before it sees that, writes ABORT.
//!
//! A packet whose buffers lie in the sender's arena (see `arena`) goes in one SPLIT frame, with
//! `{ block u64, offset u64 }` in front of its head.

use crate::packet::{Body, Gather, HEADER};
use crate::sync::{fence, AtomicU32, AtomicU64, Ordering, Padded};

const FIRST: u32 = 1;
const LAST: u32 = 2;
const ABORT: u32 = 4;
const SPLIT: u32 = 8;
pub const FRAME: u64 = 16;
/// What stands in front of the head in a SPLIT frame.
const PLACE: u64 = 16;
/// What any frame of a packet needs: its first eight bytes.
pub const LEAST: u64 = FRAME + 8;

/// What both sides share. Lives at the start of the mapped file.
#[repr(C)]
pub struct Control {
    /// Bytes published. Written by the producer only.
    pub head: Padded<AtomicU64>,
    /// Bytes consumed. Written by the consumer only.
    pub tail: Padded<AtomicU64>,
    /// Cost of the packets that the user has received, ever. Written by the consumer only.
    pub taken: Padded<AtomicU64>,
    /// 1 while the producer sleeps for space or credit.
    pub waiting: Padded<AtomicU32>,
    /// One more than the place of the packet that there is no memory for; CLOSED where nothing is
    /// taken any more. Written by the consumer only, before it moves `tail`.
    pub refused: Padded<AtomicU64>,
}

/// In `Control::refused`.
const CLOSED: u64 = u64::MAX;

/// What the consumer will not take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    Nothing,
    /// The packet that is being written.
    Packet,
    Everything,
}

impl Default for Control {
    fn default() -> Self {
        Control {
            head: Padded(AtomicU64::new(0)),
            tail: Padded(AtomicU64::new(0)),
            taken: Padded(AtomicU64::new(0)),
            waiting: Padded(AtomicU32::new(0)),
            refused: Padded(AtomicU64::new(0)),
        }
    }
}

/// Where a ring's bytes are.
///
/// # Safety
/// `control` and the data must stay valid and at one place as long as the value lives; `put` and
/// `get` are only called on ranges that the protocol gives to the caller.
pub unsafe trait Memory {
    fn control(&self) -> &Control;
    /// A power of two, at least 64.
    fn capacity(&self) -> u64;
    /// Copy in at `at` (below capacity), not wrapping.
    fn put(&self, at: u64, bytes: &[u8]);
    /// Copy out to `to`, not wrapping.
    ///
    /// # Safety
    /// `to` has room for `length` bytes.
    unsafe fn get(&self, at: u64, to: *mut u8, length: usize);
    /// What is at `at` will be wanted soon.
    fn expect(&self, _at: u64) {}
}

fn padded(length: u64) -> u64 {
    length.next_multiple_of(8)
}

/// The producing side.
pub struct Writer<M> {
    memory: M,
    head: u64,
    /// The consumer's tail as last read: asking again costs a cache miss.
    tail: u64,
    /// What the consumer's user has received, as last read.
    taken: u64,
    /// Where the packet began that was written last, or is being written.
    start: u64,
}

impl<M: Memory> Writer<M> {
    pub fn new(memory: M) -> Writer<M> {
        let head = memory.control().head.0.load(Ordering::Relaxed);
        let tail = memory.control().tail.0.load(Ordering::Relaxed);
        Writer { memory, head, tail, taken: 0, start: head }
    }

    pub fn control(&self) -> &Control {
        self.memory.control()
    }

    pub fn memory(&self) -> &M {
        &self.memory
    }

    fn free(&mut self, wanted: u64) -> u64 {
        // Room for an ABORT frame is never given away.
        let capacity = self.memory.capacity();
        let free = |tail: u64, head: u64| capacity.saturating_sub(head - tail + FRAME);
        if free(self.tail, self.head) < wanted {
            // SYNC POINT ring/space: Acquire with the consumer's Release of `tail`: its reads of
            // these bytes are over before they are overwritten.
            self.tail = self.control().tail.0.load(Ordering::Acquire);
        }
        free(self.tail, self.head)
    }

    /// Whether there is room for `wanted` bytes, frames and padding included.
    pub fn has_room(&mut self, wanted: u64) -> bool {
        self.free(wanted) >= wanted
    }

    /// Write one frame of `packet`, as much as there is room for; `done` bytes of it went before.
    /// Returns how many went now in all: `done` itself where there is no room.
    ///
    /// Nothing is visible to the consumer before `head` is published at the end, so a sender that
    /// dies inside has written nothing.
    pub fn write(&mut self, packet: &Gather<'_>, done: usize) -> usize {
        let left = (packet.len() - done) as u64;
        let room = self.free(FRAME + padded(left));
        if room < LEAST {
            return done;
        }
        // Not the whole ring at once: the consumer copies one frame while we write the next.
        let largest = (self.memory.capacity() / 4).min(u64::from(u32::MAX)) & !7;
        let chunk = left.min((room - FRAME) & !7).min(largest) as usize;
        let mut kind = 0;
        if done == 0 {
            kind |= FIRST;
            self.start = self.head;
        }
        if chunk as u64 == left {
            kind |= LAST;
        }
        self.frame(chunk as u32, kind, packet.len() as u64);
        let mut at = self.head + FRAME;
        packet.each(done, chunk, |bytes| {
            self.copy_in(at, bytes);
            at += bytes.len() as u64;
        });
        self.publish(FRAME + padded(chunk as u64));
        done + chunk
    }

    /// The room that `write_split` needs for a head of `length` bytes; None where that can never be.
    pub fn split_room(&self, length: usize) -> Option<u64> {
        let wanted = FRAME + PLACE + padded(length as u64);
        (wanted <= self.memory.capacity() / 4).then_some(wanted)
    }

    /// Write a packet of `total` bytes whose buffers are in `block` of the arena, at `offset`.
    /// There must be room (`split_room`).
    pub fn write_split(&mut self, head: &[u8], total: usize, block: u64, offset: u64) {
        let chunk = PLACE + head.len() as u64;
        self.frame(chunk as u32, SPLIT, total as u64);
        let mut place = [0u8; PLACE as usize];
        place[..8].copy_from_slice(&block.to_le_bytes());
        place[8..].copy_from_slice(&offset.to_le_bytes());
        self.copy_in(self.head + FRAME, &place);
        self.copy_in(self.head + FRAME + PLACE, head);
        self.publish(FRAME + padded(chunk));
    }

    /// What the consumer has refused of the packet that is being written, and of all to come.
    pub fn refused(&self) -> Refused {
        // SYNC POINT ring/space: the consumer refuses before it makes room for more.
        match self.control().refused.0.load(Ordering::Acquire) {
            CLOSED => Refused::Everything,
            place if place == self.start + 1 => Refused::Packet,
            _ => Refused::Nothing,
        }
    }

    /// Take back a packet of which only a part was written.
    pub fn abort(&mut self) {
        self.frame(0, ABORT, 0);
        self.publish(FRAME);
    }

    fn frame(&mut self, chunk: u32, kind: u32, total: u64) {
        let mut bytes = [0u8; FRAME as usize];
        bytes[..4].copy_from_slice(&chunk.to_le_bytes());
        bytes[4..8].copy_from_slice(&kind.to_le_bytes());
        bytes[8..].copy_from_slice(&total.to_le_bytes());
        self.copy_in(self.head, &bytes);
    }

    fn copy_in(&self, position: u64, bytes: &[u8]) {
        let at = position & (self.memory.capacity() - 1);
        let first = bytes.len().min((self.memory.capacity() - at) as usize);
        self.memory.put(at, &bytes[..first]);
        if first < bytes.len() {
            self.memory.put(0, &bytes[first..]);
        }
    }

    fn publish(&mut self, length: u64) {
        self.head += length;
        // SYNC POINT ring/data: Release with the consumer's Acquire of `head`.
        self.control().head.0.store(self.head, Ordering::Release);
    }

    /// Announce a sleep, after which `ready` must be asked once more before sleeping.
    pub fn announce_wait(&self) {
        self.control().waiting.0.store(1, Ordering::Relaxed);
        // SYNC POINT ring/wait: with the fence in `wants_wake`. Either the consumer sees the
        // announcement, or we see what it consumed.
        fence(Ordering::SeqCst);
    }

    pub fn end_wait(&self) {
        self.control().waiting.0.store(0, Ordering::Relaxed);
    }

    /// Whether `enough` is true of the cost received by the user so far.
    pub fn has_taken(&mut self, enough: impl Fn(u64) -> bool) -> bool {
        if enough(self.taken) {
            return true;
        }
        self.taken = self.taken();
        enough(self.taken)
    }

    /// Cost received by the user so far.
    pub fn taken(&self) -> u64 {
        self.control().taken.0.load(Ordering::Acquire)
    }
}

/// Whether the producer sleeps and wants to hear of progress. Only the producer takes the
/// announcement back: a consumer that did could take a later one than it has answered.
pub fn wants_wake(control: &Control) -> bool {
    // SYNC POINT ring/wait: with the fence in `announce_wait`.
    fence(Ordering::SeqCst);
    control.waiting.0.load(Ordering::Relaxed) == 1
}

/// The consuming side.
pub struct Reader<M> {
    memory: M,
    tail: u64,
    partial: Option<Partial>,
}

/// The packet that is coming in.
struct Partial {
    /// None where there is no memory for it.
    body: Option<Body>,
    total: usize,
    done: usize,
}

/// What `Reader::read` found.
pub enum Arrival {
    Packet(Body),
    /// A packet of `total` bytes whose buffers are in `block` of the sender's arena, at `offset`.
    Split {
        head: Body,
        total: u64,
        block: u64,
        offset: u64,
    },
    /// A part of a packet; there may be more.
    Part,
    /// Nothing.
    Nothing,
}

impl<M: Memory> Reader<M> {
    pub fn new(memory: M) -> Reader<M> {
        let tail = memory.control().tail.0.load(Ordering::Relaxed);
        Reader { memory, tail, partial: None }
    }

    pub fn control(&self) -> &Control {
        self.memory.control()
    }

    /// The next frame will be read at once: fetch its first bytes while its length is looked up.
    pub fn expect(&self) {
        self.memory.expect(self.tail & (self.memory.capacity() - 1));
    }

    /// Whether bytes are waiting.
    pub fn pending(&self) -> bool {
        self.control().head.0.load(Ordering::Acquire) != self.tail
    }

    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The next frame: a whole packet if it completes one.
    ///
    /// Err: the ring's bytes make no sense (the peer's memory was damaged); the ring is unusable.
    pub fn read(&mut self) -> Result<Arrival, String> {
        // SYNC POINT ring/data: Acquire with the producer's Release of `head`.
        let head = self.control().head.0.load(Ordering::Acquire);
        let there = head.wrapping_sub(self.tail);
        if there == 0 {
            return Ok(Arrival::Nothing);
        }
        if there < FRAME || there > self.memory.capacity() {
            return Err(format!("its ring claims {there} bytes"));
        }
        let mut frame = [0u8; FRAME as usize];
        // SAFETY: the array has room for one frame.
        unsafe { self.copy_out(self.tail, frame.as_mut_ptr(), FRAME as usize) };
        let chunk = u64::from(u32::from_le_bytes(frame[..4].try_into().unwrap()));
        let kind = u32::from_le_bytes(frame[4..8].try_into().unwrap());
        let total = u64::from_le_bytes(frame[8..].try_into().unwrap());
        if FRAME + padded(chunk) > there {
            return Err(format!("a frame of {chunk} bytes where {there} are there"));
        }
        if kind == ABORT {
            self.partial = None;
            self.consume(FRAME);
            return Ok(Arrival::Part);
        }
        if kind == SPLIT {
            return self.read_split(chunk, total);
        }
        if kind & !(FIRST | LAST) != 0 {
            return Err(format!("a frame of kind {kind}"));
        }
        if kind & FIRST != 0 {
            if total < HEADER as u64 || total > isize::MAX as u64 {
                return Err(format!("a packet of {total} bytes"));
            }
            let body = Body::try_new(total as usize);
            if body.is_none() {
                // SYNC POINT ring/space: before `tail` moves.
                self.control().refused.0.store(self.tail + 1, Ordering::Release);
            }
            self.partial = Some(Partial { body, total: total as usize, done: 0 });
        }
        let Some(partial) = &mut self.partial else {
            return Err("a packet's middle without its beginning".into());
        };
        let start = partial.done;
        partial.done += chunk as usize;
        let complete = partial.done == partial.total;
        if partial.done > partial.total || complete != (kind & LAST != 0) {
            return Err("a packet's parts do not add up".into());
        }
        if let Some(at) = partial.body.as_ref().map(Body::as_ptr) {
            // SAFETY: start + chunk <= total, checked above.
            unsafe { self.copy_out(self.tail + FRAME, at.add(start), chunk as usize) };
        }
        self.consume(FRAME + padded(chunk));
        if !complete {
            return Ok(Arrival::Part);
        }
        match self.partial.take().and_then(|partial| partial.body) {
            Some(body) => Ok(Arrival::Packet(body)),
            // So small that all of it was in the ring: its sender thinks it has arrived.
            None => Err(format!("there was no memory for a message of {total} bytes")),
        }
    }

    /// Take nothing from this ring any more.
    pub fn close(&self) {
        self.control().refused.0.store(CLOSED, Ordering::Release);
    }

    fn read_split(&mut self, chunk: u64, total: u64) -> Result<Arrival, String> {
        if chunk < PLACE + HEADER as u64 {
            return Err(format!("a split packet's head of {chunk} bytes"));
        }
        let mut place = [0u8; PLACE as usize];
        // SAFETY: the array has room.
        unsafe { self.copy_out(self.tail + FRAME, place.as_mut_ptr(), PLACE as usize) };
        let block = u64::from_le_bytes(place[..8].try_into().unwrap());
        let offset = u64::from_le_bytes(place[8..].try_into().unwrap());
        let length = (chunk - PLACE) as usize;
        let head = Body::try_new(length).ok_or_else(|| "no memory for a message".to_string())?;
        // SAFETY: the body has room for `length` bytes.
        unsafe { self.copy_out(self.tail + FRAME + PLACE, head.as_ptr(), length) };
        self.consume(FRAME + padded(chunk));
        Ok(Arrival::Split { head, total, block, offset })
    }

    /// # Safety
    /// `to` has room for `length` bytes.
    unsafe fn copy_out(&self, position: u64, to: *mut u8, length: usize) {
        let at = position & (self.memory.capacity() - 1);
        let first = length.min((self.memory.capacity() - at) as usize);
        // SAFETY: the two parts make up `length`.
        unsafe {
            self.memory.get(at, to, first);
            if first < length {
                self.memory.get(0, to.add(first), length - first);
            }
        }
    }

    fn consume(&mut self, length: u64) {
        self.tail += length;
        // SYNC POINT ring/space: Release with the producer's Acquire of `tail`.
        self.control().tail.0.store(self.tail, Ordering::Release);
    }
}
