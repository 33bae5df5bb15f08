//! The producing side of a ring.

use super::{
    padded, Control, Memory, ABORT, BLOCK_HEADER, CLOSED, FIRST, FRAME, LAST, LEAST, SPLIT,
};
use crate::packet::{Gather, ACCOUNTS};
use crate::sync::{full_fence, Ordering};

/// The extent of the consumer's refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    Nothing,
    /// The packet that is being written.
    Packet,
    Everything,
}

pub struct RingWriter<M> {
    memory: M,
    head: u64,
    /// The consumer's tail as last read: reading it again costs a cache miss.
    tail: u64,
    /// What the consumer has received, as last read.
    taken: [u64; ACCOUNTS],
    /// The position of the packet that was written last, or is being written.
    start: u64,
}

impl<M: Memory> RingWriter<M> {
    pub fn new(memory: M) -> RingWriter<M> {
        let head = memory.control().head.0.load(Ordering::Relaxed);
        let tail = memory.control().tail.0.load(Ordering::Relaxed);
        RingWriter { memory, head, tail, taken: [0; ACCOUNTS], start: head }
    }

    pub fn control(&self) -> &Control {
        self.memory.control()
    }

    pub fn memory(&self) -> &M {
        &self.memory
    }

    fn free(&mut self, needed: u64) -> u64 {
        // Room for an ABORT frame is never given away.
        let capacity = self.memory.capacity();
        let free = |tail: u64, head: u64| capacity.saturating_sub(head - tail + FRAME);
        if free(self.tail, self.head) < needed {
            // SYNC POINT ring/space: Acquire with the consumer's Release of `tail`: its reads of
            // these bytes are over before they are overwritten.
            self.tail = self.control().tail.0.load(Ordering::Acquire);
        }
        free(self.tail, self.head)
    }

    /// Whether there is room for `needed` bytes, frames and padding included.
    pub fn has_room(&mut self, needed: u64) -> bool {
        self.free(needed) >= needed
    }

    /// Write one frame of `packet`, as much as there is room for; `done` bytes of it were written
    /// before. Returns the number of bytes written in all: `done` itself if there is no room.
    ///
    /// Nothing is visible to the consumer before `head` is published at the end, so a sender that
    /// dies inside has written nothing.
    pub fn write(&mut self, packet: &Gather<'_>, done: usize) -> usize {
        let remaining = (packet.len() - done) as u64;
        let room = self.free(FRAME + padded(remaining));
        if room < LEAST {
            return done;
        }
        let chunk = remaining.min((room - FRAME) & !7).min(self.largest()) as usize;
        let mut kind = 0;
        if done == 0 {
            kind |= FIRST;
            self.start = self.head;
        }
        if chunk as u64 == remaining {
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

    /// The room that a packet of `length` bytes needs to be written at once.
    pub fn room_for(&self, length: usize) -> u64 {
        let frames = length as u64 / self.largest() + 1;
        padded(length as u64) + frames * FRAME
    }

    /// Most bytes of a packet in one frame: not the whole ring, since the consumer copies one while
    /// the next is written.
    fn largest(&self) -> u64 {
        (self.memory.capacity() / 4).min(u64::from(u32::MAX)) & !7
    }

    /// A number that changes whenever the consumer has read or received something.
    pub fn pulse(&self) -> u64 {
        self.all_taken().wrapping_add(self.control().tail.0.load(Ordering::Acquire))
    }

    /// The room that `write_split` needs for a head of `length` bytes; None if there can never be
    /// enough.
    pub fn split_room(&self, length: usize) -> Option<u64> {
        let needed = FRAME + BLOCK_HEADER + padded(length as u64);
        (needed <= self.memory.capacity() / 4).then_some(needed)
    }

    /// Write a packet of `total` bytes whose buffers are in `block` of the arena, at `offset`.
    /// There must be room (`split_room`).
    pub fn write_split(&mut self, head: &[u8], total: usize, block: u64, offset: u64) {
        let chunk = BLOCK_HEADER + head.len() as u64;
        self.frame(chunk as u32, SPLIT, total as u64);
        let mut header = [0u8; BLOCK_HEADER as usize];
        header[..8].copy_from_slice(&block.to_le_bytes());
        header[8..].copy_from_slice(&offset.to_le_bytes());
        self.copy_in(self.head + FRAME, &header);
        self.copy_in(self.head + FRAME + BLOCK_HEADER, head);
        self.publish(FRAME + padded(chunk));
    }

    /// Whether the consumer has refused the packet that is being written, or all packets.
    pub fn refused(&self) -> Refused {
        // SYNC POINT ring/space: the consumer refuses before it makes room for more.
        match self.control().refused.0.load(Ordering::Acquire) {
            CLOSED => Refused::Everything,
            header if header == self.start + 1 => Refused::Packet,
            _ => Refused::Nothing,
        }
    }

    /// Take back a packet that is only partly written.
    pub fn abort(&mut self) {
        self.frame(0, ABORT, 0);
        self.publish(FRAME);
        self.start = self.head; // a refusal was about the packet that is taken back
    }

    fn frame(&mut self, chunk: u32, kind: u32, total: u64) {
        let mut bytes = [0u8; FRAME as usize];
        bytes[..4].copy_from_slice(&chunk.to_le_bytes());
        bytes[4..8].copy_from_slice(&kind.to_le_bytes());
        bytes[8..].copy_from_slice(&total.to_le_bytes());
        self.copy_in(self.head, &bytes);
    }

    #[inline]
    fn copy_in(&self, position: u64, bytes: &[u8]) {
        let at = position & (self.memory.capacity() - 1);
        let first = (self.memory.capacity() - at) as usize;
        if bytes.len() <= first {
            return self.memory.put(at, bytes); // a frame's length is known: no call of memcpy
        }
        self.memory.put(at, &bytes[..first]);
        self.memory.put(0, &bytes[first..]);
    }

    fn publish(&mut self, length: u64) {
        self.head += length;
        // SYNC POINT ring/data: Release with the consumer's Acquire of `head`.
        self.control().head.0.store(self.head, Ordering::Release);
    }

    /// Announce a sleep, after which the caller must check once more before it sleeps.
    pub fn announce_wait(&self) {
        self.control().waiting.0.store(1, Ordering::Relaxed);
        // SYNC POINT ring/wait: with the fence in `wants_wake`. Either the consumer sees the
        // announcement, or we see what it consumed.
        full_fence();
    }

    pub fn end_wait(&self) {
        self.control().waiting.0.store(0, Ordering::Relaxed);
    }

    /// Whether `enough` is true of the cost received so far.
    pub fn has_taken(&mut self, account: usize, enough: impl Fn(u64) -> bool) -> bool {
        if enough(self.taken[account]) {
            return true;
        }
        self.taken[account] = self.taken(account);
        enough(self.taken[account])
    }

    /// Cost received so far.
    pub fn taken(&self, account: usize) -> u64 {
        self.control().taken[account].0.load(Ordering::Acquire)
    }

    /// The same, summed over all accounts.
    pub fn all_taken(&self) -> u64 {
        (0..ACCOUNTS).map(|account| self.taken(account)).sum()
    }
}
