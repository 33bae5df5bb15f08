//! How messages go to a peer: through a ring in shared memory, to another machine, or, to oneself,
//! into the own inbox.

use std::sync::{Arc, MutexGuard};

use sfm_native::calls::Way;
use sfm_native::net::Link;
use sfm_native::packet::{cost, Gather};
use sfm_native::ring_file::RingFile;
use sfm_native::sender::{account_of, Sender, Step, Writing};

use super::peer::Sent;

/// The way to a peer, on which a send never blocks.
pub struct Path(pub Way);

impl Path {
    /// Send a packet now, if the peer has not received so many bytes of those before it at most.
    pub fn send(&self, packet: &Gather<'_>, limit: u64) -> Sent {
        match &self.0 {
            Way::Ring(ring) => {
                let mut writing = writing(ring);
                if ring.peer_left() || ring.peer_died(&writing) || ring.is_refused(&writing) {
                    return Sent::Lost;
                }
                match ring.send_whole(&mut writing, packet, limit) {
                    Step::Done => Sent::Gone,
                    Step::Blocked | Step::Refused => Sent::Full,
                }
            }
            Way::Link(link) => send_through(link, packet, limit),
            Way::Local { outflow, inbox, lane } => {
                // Nobody else could make room.
                let Some(copy) = packet.to_packet() else { return Sent::Full };
                outflow.try_acquire(account_of(packet), cost(packet.len()), u64::MAX);
                inbox.deliver(*lane, Arc::new(copy), false);
                outflow.count(packet.len(), packet.head());
                Sent::Gone
            }
        }
    }

    /// Somebody waits until it can be sent again: what changes then.
    pub fn announce_wait(&self) -> u64 {
        match &self.0 {
            Way::Ring(ring) => {
                let writing = writing(ring);
                ring.announce_wait(&writing);
                ring.pulse(&writing)
            }
            Way::Link(link) => {
                link.ask(); // an answer may have been lost with a connection
                link.outflow.all_taken()
            }
            Way::Local { .. } => 0,
        }
    }

    /// Whether that has changed.
    pub fn has_news(&self, pulse: u64) -> bool {
        match &self.0 {
            Way::Ring(ring) => ring.try_lock().is_none_or(|writing| ring.pulse(&writing) != pulse),
            Way::Link(link) => link.outflow.all_taken() != pulse || link.lost().is_some(),
            Way::Local { .. } => false,
        }
    }

    pub fn end_wait(&self) {
        if let Way::Ring(ring) = &self.0 {
            if let Some(writing) = ring.try_lock() {
                ring.end_wait(&writing);
            }
        }
    }

    /// The ring; None where memory is not shared.
    pub fn ring(&self) -> Option<Arc<RingFile>> {
        match &self.0 {
            Way::Ring(ring) => Some(ring.ring(&writing(ring))),
            Way::Link(_) | Way::Local { .. } => None,
        }
    }
}

fn send_through(link: &Link, packet: &Gather<'_>, limit: u64) -> Sent {
    if link.lost().is_some() {
        return Sent::Lost;
    }
    let (account, cost) = (account_of(packet), cost(packet.len()));
    if !link.outflow.try_acquire(account, cost, limit) {
        return Sent::Full;
    }
    let urgent = link.outflow.waiting(account) > limit / 2;
    if !link.send(packet, urgent) {
        link.outflow.release(account, cost);
        return Sent::Lost;
    }
    link.outflow.count(packet.len(), packet.head());
    Sent::Gone
}

/// The right to write, which another thread of this process has for a moment only.
fn writing(ring: &Sender) -> MutexGuard<'_, Writing> {
    loop {
        match ring.try_lock() {
            Some(writing) => return writing,
            None => std::thread::yield_now(),
        }
    }
}
