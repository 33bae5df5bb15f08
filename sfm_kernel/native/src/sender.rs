//! The sending half of a pair that shares memory: writes packets into its ring and wakes the peer.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use crate::bell::Woken;
use crate::core::Core;
use crate::outflow::may_send;
use crate::packet::Packet;
use crate::ring::Writer;
use crate::ring_file::RingFile;
use crate::segment::Segment;
use crate::shm::ShmError;

/// How long a sender trusts that its peer lives.
const TRUST: Duration = Duration::from_millis(250);

pub struct Sender {
    pub core: Arc<Core>,
    peer: Segment,
    slot: usize,
    writing: Mutex<Writing>,
}

pub struct Writing {
    writer: Writer<RingFile>,
    sent: u64,
    checked: Instant,
}

/// How far `Sender::step` got.
#[derive(PartialEq, Eq, Debug)]
pub enum Step {
    Done,
    /// No credit or no room: wait, then go on.
    Blocked,
}

impl Sender {
    /// Whether an earlier process of our slot has announced a ring that the peer has not opened:
    /// announcing ours now would hide it, and what is in it. Asks the peer to open it.
    pub fn slot_is_taken(peer: &Segment, folder: &Path, own: u128, slot: usize) -> bool {
        let earlier = peer.ring_of(slot);
        if earlier == 0 || earlier == own {
            return false;
        }
        // The peer removes a ring's name when it opens it.
        let taken = folder.join(format!("{earlier:032x}-{:032x}.ring", peer.uid())).exists();
        if taken {
            peer.announce_arrival(slot);
            peer.announce_pressure();
        }
        taken
    }

    /// Make the ring to the peer and announce it.
    pub fn create(
        core: Arc<Core>,
        peer: Segment,
        folder: &Path,
        slot: usize,
        capacity: usize,
    ) -> Result<Sender, ShmError> {
        let (own, uid) = (core.shared().uid(), peer.uid());
        let path = folder.join(format!("{own:032x}-{uid:032x}.ring"));
        let writer = Writer::new(RingFile::create(&path, capacity)?);
        peer.announce_ring(slot, own);
        let writing = Writing { writer, sent: 0, checked: Instant::now() };
        Ok(Sender { core, peer, slot, writing: Mutex::new(writing) })
    }

    /// The right to write, if no other thread of this process has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, Writing>> {
        match self.writing.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The peer has said that it leaves.
    pub fn peer_left(&self) -> bool {
        self.peer.left.load(Ordering::Acquire) != 0
    }

    /// Go on with `packet`, of which `done` bytes are in the ring; returns when it is whole or
    /// must wait.
    pub fn step(
        &self,
        writing: &mut Writing,
        packet: &Packet,
        done: &mut usize,
        buffering: u64,
    ) -> Step {
        if *done == 0 {
            let waiting = writing.sent - writing.writer.taken();
            if !may_send(waiting, packet.cost(), buffering) {
                return Step::Blocked;
            }
        }
        loop {
            let before = *done;
            *done = writing.writer.write(packet.bytes(), before);
            if *done == packet.len() {
                writing.sent += packet.cost();
                self.core.shared().sent.fetch_add(1, Ordering::Relaxed);
                self.peer.announce_arrival(self.slot);
                return Step::Done;
            }
            if *done == before {
                return Step::Blocked;
            }
            self.peer.announce_arrival(self.slot);
        }
    }

    /// Sleep until there may be room or credit.
    pub fn wait(
        &self,
        writing: &mut Writing,
        packet: &Packet,
        done: usize,
        buffering: u64,
    ) -> Woken {
        writing.writer.announce_wait();
        let room = writing.writer.has_room();
        let sent = writing.sent;
        if !room {
            self.peer.announce_pressure();
        }
        let taken = writing.writer.taken();
        let ready = done > 0 || may_send(sent - taken, packet.cost(), buffering);
        let woken = if room && ready {
            Woken::Rung
        } else {
            let writer = std::cell::RefCell::new(&mut writing.writer);
            self.core.spin_then_sleep(Duration::from_millis(100), || {
                let mut writer = writer.borrow_mut();
                (!room && writer.has_room()) || writer.taken() != taken || self.core.is_closed()
            })
        };
        writing.writer.end_wait();
        woken
    }

    /// Everything sent was received.
    pub fn drained(&self, writing: &Writing) -> bool {
        writing.writer.taken() == writing.sent
    }

    pub fn wait_drained(&self, writing: &mut Writing) -> Woken {
        writing.writer.announce_wait();
        let woken = if self.drained(writing) {
            Woken::Rung
        } else {
            let seen = writing.writer.taken();
            self.core.spin_then_sleep(Duration::from_millis(100), || {
                writing.writer.taken() != seen || self.core.is_closed()
            })
        };
        writing.writer.end_wait();
        woken
    }

    /// Take back a packet that is partly written.
    pub fn abort(&self, writing: &mut Writing, done: usize) {
        if done > 0 {
            writing.writer.abort();
            self.peer.announce_arrival(self.slot);
        }
    }

    /// Whether it is time to ask if the peer still lives; asks at most every 250 ms.
    pub fn doubts(&self, writing: &mut Writing) -> bool {
        let now = Instant::now();
        if now - writing.checked < TRUST {
            return false;
        }
        writing.checked = now;
        true
    }
}
