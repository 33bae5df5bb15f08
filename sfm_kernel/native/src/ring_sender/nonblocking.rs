//! Sending for a thread that has several sends in progress, and waits for all of them at once.

use std::sync::Arc;

use super::{Progress, RingSender, Step, Writing};
use crate::core::may_send;
use crate::packet::{cost, Gather};
use crate::ring::Memory;
use crate::ring_file::RingFile;

impl RingSender {
    /// Send `packet`, whose payload is not longer than `longest`, or do nothing: for a caller that
    /// must not wait in the middle of it.
    pub fn try_send(&self, writing: &mut Writing, packet: &Gather<'_>, buffering: u64) -> Step {
        if !writing.writer.has_room(writing.writer.room_for(packet.len())) {
            return Step::Blocked;
        }
        let mut progress = Progress::default();
        let step = self.step(writing, packet, &mut progress, buffering);
        debug_assert!(step == Step::Done || !progress.is_started());
        step
    }

    /// The longest payload for which there can be room: half of the ring. A head and frames fit
    /// into the rest.
    pub fn longest(&self, writing: &Writing) -> usize {
        writing.writer.memory().capacity() as usize / 2
    }

    /// Whether `try_send` would now send a packet of `length` bytes on this account.
    pub fn has_room(
        &self,
        writing: &mut Writing,
        account: usize,
        length: usize,
        buffering: u64,
    ) -> bool {
        let (writer, sent) = (&mut writing.writer, writing.sent[account]);
        writer.has_room(writer.room_for(length))
            && writer.has_taken(account, |taken| may_send(sent - taken, cost(length), buffering))
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
