//! The path of messages to a peer: a ring in shared memory, a link to another machine, or, for the
//! process itself, its own inbox.

use std::sync::{Arc, MutexGuard};

use sfm_native::calls::Channel;
use sfm_native::net::Link;
use sfm_native::packet::{account, cost, Envelope, Gather};
use sfm_native::ring_file::RingFile;
use sfm_native::ring_sender::{account_of, RingSender, Step, Writing};

use super::peer::Sent;

/// The path to a peer, on which a send never blocks.
pub struct Path {
    channel: Channel,
    /// The largest number of bytes in a message that `send` can send.
    pub longest: usize,
}

impl Path {
    pub fn new(channel: Channel) -> Path {
        let longest = match &channel {
            Channel::Ring(ring) => ring.longest(&writing(ring)),
            Channel::Link(_) | Channel::Local { .. } => usize::MAX,
        };
        Path { channel, longest }
    }

    /// Send a packet now, unless the peer would then have more than `limit` bytes that it has not
    /// received.
    pub fn send(&self, packet: &Gather<'_>, limit: u64) -> Sent {
        match &self.channel {
            Channel::Ring(ring) => {
                let mut writing = writing(ring);
                if is_lost(ring, &writing) {
                    return Sent::Lost;
                }
                match ring.try_send(&mut writing, packet, limit) {
                    Step::Done => Sent::Gone,
                    Step::Blocked | Step::Refused => Sent::Full,
                }
            }
            Channel::Link(link) => send_through(link, packet, limit),
            Channel::Local { credit, inbox, inbound } => {
                // Only this process could make room.
                let Some(copy) = packet.to_packet() else { return Sent::Full };
                credit.try_acquire(account_of(packet), cost(packet.len()), u64::MAX);
                inbox.deliver(*inbound, Arc::new(copy), false);
                credit.count(packet.len(), packet.head());
                Sent::Gone
            }
        }
    }

    /// Whether `send` would now send an envelope with `length` bytes.
    pub fn room(&self, envelope: &Envelope, length: usize, limit: u64) -> Sent {
        let Channel::Ring(ring) = &self.channel else { return Sent::Full };
        let mut writing = writing(ring);
        if is_lost(ring, &writing) {
            return Sent::Lost;
        }
        let (account, bytes) = (account(envelope.context), envelope.front(length).packet_length());
        match ring.has_room(&mut writing, account, bytes, limit) {
            true => Sent::Gone,
            false => Sent::Full,
        }
    }

    /// Announce that this process waits to send; returns a value that changes when it may be able
    /// to.
    pub fn announce_wait(&self) -> u64 {
        match &self.channel {
            Channel::Ring(ring) => {
                let writing = writing(ring);
                ring.announce_wait(&writing);
                ring.pulse(&writing)
            }
            Channel::Link(link) => {
                link.ask(); // an answer may have been lost with a connection
                link.credit.all_taken()
            }
            Channel::Local { .. } => 0,
        }
    }

    /// True if that value has changed.
    pub fn has_news(&self, pulse: u64) -> bool {
        match &self.channel {
            Channel::Ring(ring) => {
                ring.try_lock().is_none_or(|writing| ring.pulse(&writing) != pulse)
            }
            Channel::Link(link) => link.credit.all_taken() != pulse || link.lost().is_some(),
            Channel::Local { .. } => false,
        }
    }

    pub fn end_wait(&self) {
        if let Channel::Ring(ring) = &self.channel {
            if let Some(writing) = ring.try_lock() {
                ring.end_wait(&writing);
            }
        }
    }

    /// The ring; None if the processes do not share memory.
    pub fn ring(&self) -> Option<Arc<RingFile>> {
        match &self.channel {
            Channel::Ring(ring) => Some(ring.ring(&writing(ring))),
            Channel::Link(_) | Channel::Local { .. } => None,
        }
    }
}

#[inline]
fn is_lost(ring: &RingSender, writing: &Writing) -> bool {
    ring.peer_departed() || ring.peer_died(writing) || ring.is_refused(writing)
}

fn send_through(link: &Link, packet: &Gather<'_>, limit: u64) -> Sent {
    if link.lost().is_some() {
        return Sent::Lost;
    }
    let (account, cost) = (account_of(packet), cost(packet.len()));
    if !link.credit.try_acquire(account, cost, limit) {
        return Sent::Full;
    }
    let urgent = link.credit.waiting(account) > limit / 2;
    if !link.send(packet, urgent) {
        link.credit.release(account, cost);
        return Sent::Lost;
    }
    link.credit.count(packet.len(), packet.head());
    Sent::Gone
}

/// The ring's lock, which another thread of this process holds for a moment only.
fn writing(ring: &RingSender) -> MutexGuard<'_, Writing> {
    loop {
        match ring.try_lock() {
            Some(writing) => return writing,
            None => std::thread::yield_now(),
        }
    }
}
