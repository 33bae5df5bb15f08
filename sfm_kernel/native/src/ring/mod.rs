//! The ring: a byte stream from one process to another, through memory that both map.
//!
//! One producer, one consumer: no locks, and a sender killed at any instruction can stop only its
//! own ring. `head` counts all bytes published, `tail` all bytes consumed; both only grow, and
//! their difference is what is in the ring. Packets travel as frames:
//!
//! ```text
//! { chunk length u32, kind u32, packet length u64 } chunk, padded to 8
//! ```
//!
//! A packet larger than the free space goes in several frames, the first marked FIRST and the last
//! LAST. A sender that gives up half-way (the user pressed Stop) writes ABORT, for which room is
//! always kept: the receiver drops the chunks it has, and nothing was sent.
//!
//! A receiver that has no memory for a large packet writes that into `refused`, and skips its
//! chunks; its sender, which cannot finish before it sees that, writes ABORT.
//!
//! A packet whose buffers lie in the sender's arena (see `arena`) goes in one SPLIT frame, with
//! `{ block u64, offset u64 }` in front of its head.

use crate::packet::{Body, ACCOUNTS};
use crate::sync::{full_fence, AtomicU32, AtomicU64, Ordering, Padded};

mod reader;
mod writer;

pub use reader::{Arrival, Frame, RingReader};
pub use writer::{Refused, RingWriter};

const FIRST: u32 = 1;
const LAST: u32 = 2;
const ABORT: u32 = 4;
const SPLIT: u32 = 8;
pub const FRAME: u64 = 16;
/// Bytes in front of the head in a SPLIT frame: block and offset.
const BLOCK_HEADER: u64 = 16;
/// Bytes that any frame of a packet needs: frame header and eight bytes.
pub const LEAST: u64 = FRAME + 8;

/// The state that both sides share. Lies at the start of the mapped file.
#[derive(Default)]
#[repr(C)]
pub struct Control {
    /// Bytes published. Written by the producer only.
    pub head: Padded<AtomicU64>,
    /// Bytes consumed. Written by the consumer only.
    pub tail: Padded<AtomicU64>,
    /// By account (`credit`), the cost of all packets that were received. Written by the consumer
    /// only.
    pub taken: [Padded<AtomicU64>; ACCOUNTS],
    /// 1 while the producer sleeps for space or credit.
    pub waiting: Padded<AtomicU32>,
    /// One more than the position of the packet that there is no memory for; CLOSED if nothing is
    /// taken any more. Written by the consumer only, before it moves `tail`.
    pub refused: Padded<AtomicU64>,
}

/// In `Control::refused`.
const CLOSED: u64 = u64::MAX;

/// The memory of a ring.
///
/// # Safety
/// `control` and the data must stay valid and at one address as long as the value lives; `put` and
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
    /// The address of the bytes at `at`, if they can be read in place.
    fn address(&self, _at: u64) -> Option<*const u8> {
        None
    }
    /// Prefetch the bytes at `at`.
    fn expect(&self, _at: u64) {}
    /// Memory for a packet that comes in.
    fn allocate(&self, length: usize) -> Option<Body> {
        Body::try_new(length)
    }
}

fn padded(length: u64) -> u64 {
    length.next_multiple_of(8)
}

/// Whether the producer sleeps and wants to be woken by progress. Only the producer takes the
/// announcement back: a consumer that did could take a later one than it has answered.
pub fn wants_wake(control: &Control) -> bool {
    // SYNC POINT ring/wait: with the fence in `announce_wait`.
    full_fence();
    control.waiting.0.load(Ordering::Relaxed) == 1
}
