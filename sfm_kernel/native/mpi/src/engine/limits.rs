//! The sizes at which messages change their protocol, and the limits of bytes in transit. Tools may
//! change them (src/tool/control.rs) at any time: each is read when a message begins.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A number of bytes.
pub struct Limit(AtomicUsize);

impl Limit {
    #[inline]
    pub fn get(&self) -> usize {
        self.0.load(Relaxed)
    }

    pub fn set(&self, bytes: usize) {
        self.0.store(bytes, Relaxed);
    }
}

const fn bytes(number: usize) -> Limit {
    Limit(AtomicUsize::new(number))
}

/// A message of this size fits into the smallest ring (core: ring_sender.rs).
pub const ALWAYS_FITS: usize = 2048;
/// Messages of at least this size are offered: below it, two copies through the ring cost less than
/// a system call and the answer.
pub static OFFER_FROM: Limit = bytes(128 << 10);
/// The same between machines, where a message has to fit into one frame (core: frame/mod.rs).
pub const OFFER_FAR_FROM: usize = 48 << 10;
/// From this size on, the sender helps to copy.
pub static HELP_FROM: Limit = bytes(64 << 10);
/// How many bytes of the program's messages, and of the collectives', a peer may not have received
/// yet. The default is that of Python's endpoint (`endpoint.BUFFERING`). 0: the program's standard
/// sends are synchronous, and everything else has the default limit.
pub static BUFFERING: Limit = bytes(ROOM);
pub const ROOM: usize = 16 << 20;
/// How much of a large message may be in transit while it is streamed in fragments or chunks: more
/// would not stay in the caches.
pub static POURING: Limit = bytes(512 << 10);
