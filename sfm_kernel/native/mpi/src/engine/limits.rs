//! Sizes at which messages go another way, and how much may be on its way. Tools may change them
//! (src/tool/control.rs) while messages go: each is looked at when a message begins.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes.
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

/// Messages of so many bytes are offered: below that, two copies through the ring cost less than a
/// call of the kernel and the answer.
pub static OFFER_FROM: Limit = bytes(48 << 10);
/// From so many on, the sender helps to copy them.
pub static HELP_FROM: Limit = bytes(256 << 10);
/// What a peer may have of the program's messages, and of the collectives', that it has not received.
/// As much as Python's endpoint grants (`endpoint.BUFFERING`). 0: the program's standard sends are
/// synchronous, and for the rest there is as much room as by default.
pub static BUFFERING: Limit = bytes(ROOM);
pub const ROOM: usize = 16 << 20;
/// How much of a large message may be on its way where it is poured out in pieces.
pub static POURING: Limit = bytes(2 << 20);
