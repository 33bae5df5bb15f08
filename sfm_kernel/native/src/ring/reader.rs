//! The consuming side of a ring.

use super::{padded, Control, Memory, ABORT, BLOCK_HEADER, CLOSED, FIRST, FRAME, LAST, SPLIT};
use crate::packet::{open, Body, Opened, HEADER, SEEN};
use crate::sync::Ordering;

pub struct RingReader<M> {
    memory: M,
    tail: u64,
    partial: Option<Partial>,
}

/// The packet that is coming in.
struct Partial {
    /// None if there is no memory for it.
    body: Option<Body>,
    total: usize,
    done: usize,
}

/// The result of `RingReader::read`.
pub enum Arrival {
    Packet(Body),
    /// A packet of `total` bytes whose buffers are in `block` of the sender's arena, at `offset`.
    Split {
        head: Body,
        total: u64,
        block: u64,
        offset: u64,
    },
    /// A fragment of a packet; there may be more.
    Fragment,
    Nothing,
}

/// An envelope in the ring, and the bytes of its packet.
pub struct Frame {
    pub opened: Opened,
    pub total: usize,
}

impl<M: Memory> RingReader<M> {
    pub fn new(memory: M) -> RingReader<M> {
        let tail = memory.control().tail.0.load(Ordering::Relaxed);
        RingReader { memory, tail, partial: None }
    }

    pub fn control(&self) -> &Control {
        self.memory.control()
    }

    /// Prefetch the next frame's first bytes, which will be read at once.
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

    /// The next frame: a complete packet if it completes one.
    ///
    /// Err: the ring's bytes make no sense (the peer's memory was damaged); the ring is unusable.
    pub fn read(&mut self) -> Result<Arrival, String> {
        // SYNC POINT ring/data: Acquire with the producer's Release of `head`.
        let head = self.control().head.0.load(Ordering::Acquire);
        let available = head.wrapping_sub(self.tail);
        if available == 0 {
            return Ok(Arrival::Nothing);
        }
        if available < FRAME || available > self.memory.capacity() {
            return Err(format!("its ring claims {available} bytes"));
        }
        let mut frame = [0u8; FRAME as usize];
        // SAFETY: the array has room for one frame.
        unsafe { self.copy_out(self.tail, frame.as_mut_ptr(), FRAME as usize) };
        let chunk = u64::from(u32::from_le_bytes(frame[..4].try_into().unwrap()));
        let kind = u32::from_le_bytes(frame[4..8].try_into().unwrap());
        let total = u64::from_le_bytes(frame[8..].try_into().unwrap());
        if FRAME + padded(chunk) > available {
            return Err(format!("a frame of {chunk} bytes where {available} are there"));
        }
        if kind == ABORT {
            self.partial = None;
            self.consume(FRAME);
            return Ok(Arrival::Fragment);
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
            let body = self.memory.allocate(total as usize);
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
            return Ok(Arrival::Fragment);
        }
        match self.partial.take().and_then(|partial| partial.body) {
            Some(body) => Ok(Arrival::Packet(body)),
            // The packet is so small that all of it was in the ring: its sender thinks it has
            // arrived.
            None => Err(format!("there was no memory for a message of {total} bytes")),
        }
    }

    /// The next frame, if it holds a complete envelope, which can be read in place. Anything else
    /// is left to `read`.
    pub fn envelope(&self) -> Option<Frame> {
        // SYNC POINT ring/data: Acquire with the producer's Release of `head`.
        let head = self.control().head.0.load(Ordering::Acquire);
        let available = head.wrapping_sub(self.tail);
        if available < FRAME + HEADER as u64 || available > self.memory.capacity() {
            return None;
        }
        let mut seen = [0u8; FRAME as usize + SEEN];
        let length = seen.len().min(available as usize);
        // SAFETY: the array has room for as much.
        unsafe { self.copy_out(self.tail, seen.as_mut_ptr(), length) };
        let (frame, packet) = seen[..length].split_at(FRAME as usize);
        let chunk = u32::from_le_bytes(frame[..4].try_into().unwrap());
        let kind = u32::from_le_bytes(frame[4..8].try_into().unwrap());
        let total = u64::from_le_bytes(frame[8..].try_into().unwrap());
        let is_single = kind == FIRST | LAST && total == u64::from(chunk);
        if !is_single || FRAME + padded(total) > available {
            return None;
        }
        self.memory.address(0)?;
        let total = total as usize;
        Some(Frame { opened: open(&packet[..packet.len().min(total)], total)?, total })
    }

    /// Show the bytes of the envelope in `frame`, which `envelope` has just found: two slices if
    /// they cross the ring's end. Then they are the producer's again.
    pub fn take(&mut self, frame: &Frame, show: impl FnOnce(&[u8], &[u8])) {
        let Opened { at, length, .. } = frame.opened;
        let start = (self.tail + FRAME + at as u64) & (self.memory.capacity() - 1);
        let first = length.min((self.memory.capacity() - start) as usize);
        let address = |at| self.memory.address(at).expect("asked for in `envelope`");
        // SAFETY: inside what was published, which the producer does not touch before `consume`.
        unsafe {
            let second = std::slice::from_raw_parts(address(0), length - first);
            show(std::slice::from_raw_parts(address(start), first), second);
        }
        self.consume(FRAME + padded(frame.total as u64));
    }

    /// Take nothing from this ring any more.
    pub fn close(&self) {
        self.control().refused.0.store(CLOSED, Ordering::Release);
    }

    fn read_split(&mut self, chunk: u64, total: u64) -> Result<Arrival, String> {
        if chunk < BLOCK_HEADER + HEADER as u64 {
            return Err(format!("a split packet's head of {chunk} bytes"));
        }
        let mut header = [0u8; BLOCK_HEADER as usize];
        // SAFETY: the array has room for a header, and the ring has that many bytes there.
        unsafe { self.copy_out(self.tail + FRAME, header.as_mut_ptr(), BLOCK_HEADER as usize) };
        let block = u64::from_le_bytes(header[..8].try_into().unwrap());
        let offset = u64::from_le_bytes(header[8..].try_into().unwrap());
        let length = (chunk - BLOCK_HEADER) as usize;
        let head = Body::try_new(length).ok_or_else(|| "no memory for a message".to_string())?;
        // SAFETY: the body has room for `length` bytes.
        unsafe { self.copy_out(self.tail + FRAME + BLOCK_HEADER, head.as_ptr(), length) };
        self.consume(FRAME + padded(chunk));
        Ok(Arrival::Split { head, total, block, offset })
    }

    /// # Safety
    /// `to` has room for `length` bytes.
    #[inline]
    unsafe fn copy_out(&self, position: u64, to: *mut u8, length: usize) {
        let at = position & (self.memory.capacity() - 1);
        let first = (self.memory.capacity() - at) as usize;
        // SAFETY: the two parts have `length` bytes in all, for which the caller promises room.
        unsafe {
            if length <= first {
                return self.memory.get(at, to, length); // no call of memcpy for a frame
            }
            self.memory.get(at, to, first);
            self.memory.get(0, to.add(first), length - first);
        }
    }

    fn consume(&mut self, length: u64) {
        self.tail += length;
        // SYNC POINT ring/space: Release with the producer's Acquire of `tail`.
        self.control().tail.0.store(self.tail, Ordering::Release);
    }
}
