//! Sending for a thread that has several sends in progress, and waits for all of them at once.

use std::sync::Arc;

use super::{Progress, RingSender, Step, Writing};
use crate::packet::Gather;
use crate::ring_file::RingFile;

impl RingSender {
    /// Send `packet`, which is much smaller than the ring, or do nothing: for a caller that must
    /// not wait in the middle of it.
    pub fn try_send(&self, writing: &mut Writing, packet: &Gather<'_>, buffering: u64) -> Step {
        if !writing.writer.has_room(writing.writer.room_for(packet.len())) {
            return Step::Blocked;
        }
        let mut progress = Progress::default();
        let step = self.step(writing, packet, &mut progress, buffering);
        debug_assert!(step == Step::Done || !progress.is_started());
        step
    }

    /// Ask to be woken when the peer has read or received something, until `end_wait`; the caller
    /// tries its blocked sends again before it sleeps.
    pub fn announce_wait(&self, writing: &Writing) {
        writing.writer.announce_wait();
        self.peer.announce_pressure();
    }

    pub fn end_wait(&self, writing: &Writing) {
        writing.writer.end_wait();
    }

    /// A number that changes when the peer has read or received something.
    pub fn pulse(&self, writing: &Writing) -> u64 {
        writing.writer.pulse()
    }

    /// The ring, for the other data that both sides keep in it.
    pub fn ring(&self, writing: &Writing) -> Arc<RingFile> {
        writing.writer.memory().clone()
    }
}
