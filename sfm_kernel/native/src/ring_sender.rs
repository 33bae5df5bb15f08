//! The sending half of a pair that shares memory: writes packets into its ring and wakes the peer.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::time::{Duration, Instant};

use crate::arena::{Arena, Block, PAGE};
use crate::bell::Woken;
use crate::clock::coarse;
use crate::core::{may_send, Core, Sender};
use crate::packet::{account, context_of, cost, Gather, ACCOUNTS};
use crate::peers::bump;
use crate::reentry::Holder;
use crate::ring::{Refused, RingWriter, LEAST};
use crate::ring_file::RingFile;
use crate::segment::{Segment, UNSETTLED};
use crate::shm::ShmError;

mod large;
mod nonblocking;

/// The usual bytes of a ring. Larger messages flow through in chunks.
pub const RING_BYTES: usize = 1 << 18;
/// The usual address space for the large values of one pair. It takes memory as it is used.
pub const ARENA_BYTES: usize = 1 << 28;

pub fn is_ring_size(bytes: usize) -> bool {
    bytes.is_power_of_two() && (4096..=1 << 30).contains(&bytes)
}

/// 0: there is no arena.
pub fn is_arena_size(bytes: usize) -> bool {
    bytes.is_multiple_of(PAGE as usize) && bytes <= 1 << 40
}

/// Nanoseconds for which a sender trusts that its peer lives.
const TRUST: u64 = 250_000_000;

pub struct RingSender {
    pub core: Arc<Core>,
    peer: Segment,
    /// The peer, for observers.
    peer_id: u64,
    slot: usize,
    folder: PathBuf,
    writing: Mutex<Writing>,
    /// The thread that has `writing` and runs Python.
    pub holder: Holder,
}

pub struct Writing {
    writer: RingWriter<Arc<RingFile>>,
    arena: Option<Arena>,
    used: Instant,
    /// By account, the cost of all that was sent; and the number of packets.
    sent: [u64; ACCOUNTS],
    count: u64,
    /// What the peer had taken when that was too little; UNSETTLED while the sender waits for
    /// something else: room in the ring, which the peer's own thread makes.
    pub seen: u64,
    /// The time, by the coarse clock, of the last check that the peer lives.
    checked: u64,
    /// The peer's segment has called it dead while it lived.
    distrusts: bool,
}

/// A packet that is being sent.
#[derive(Default)]
pub struct Progress {
    /// Bytes of it that are in the ring.
    done: usize,
    /// The block of its buffers, if they are in the arena.
    block: Option<Block>,
}

impl Progress {
    /// Whether the packet was counted.
    fn is_started(&self) -> bool {
        self.done > 0 || self.block.is_some()
    }
}

/// The result of `RingSender::step`.
#[derive(PartialEq, Eq, Debug)]
pub enum Step {
    Done,
    /// No credit or no room: wait, then go on.
    Blocked,
    /// The peer has no memory for it: to be aborted.
    Refused,
}

impl RingSender {
    /// Whether an earlier process of our slot has announced a ring that the peer has not opened:
    /// announcing ours now would hide it, and its contents. Asks the peer to open it.
    pub fn slot_is_taken(peer: &Segment, folder: &Path, sender_uid: u128, slot: usize) -> bool {
        let earlier = peer.ring_of(slot);
        if earlier == 0 || earlier == sender_uid {
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

    /// Make the ring to the peer and announce it. `arena`: bytes that large values may take.
    pub fn create(
        core: Arc<Core>,
        peer: Segment,
        folder: &Path,
        slot: usize,
        capacity: usize,
        arena: usize,
    ) -> Result<Arc<RingSender>, ShmError> {
        let (sender_uid, uid) = (core.shared().uid(), peer.uid());
        let path = folder.join(format!("{sender_uid:032x}-{uid:032x}.ring"));
        // Announced first: if this process is killed here, the reader still finds the ring that
        // nobody will ever write to.
        peer.announce_ring(slot, sender_uid);
        let ring = Arc::new(RingFile::create(&path, capacity, arena)?);
        let writing = Writing {
            writer: RingWriter::new(ring),
            arena: None,
            used: Instant::now(),
            sent: [0; ACCOUNTS],
            count: 0,
            seen: UNSETTLED,
            checked: coarse(),
            distrusts: false,
        };
        let sender = Arc::new(RingSender {
            core,
            peer,
            peer_id: uid as u64,
            slot,
            folder: folder.to_path_buf(),
            writing: Mutex::new(writing),
            holder: Holder::default(),
        });
        let known: Weak<dyn Sender> = Arc::downgrade(&sender) as _;
        sender.core.tend(known);
        Ok(sender)
    }

    /// The right to write, if no other thread of this process has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, Writing>> {
        match self.writing.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether the peer has announced that it leaves.
    pub fn peer_departed(&self) -> bool {
        self.peer.departed.load(Ordering::Acquire) != 0
    }

    /// Whether the peer has died: nobody will read what is written to it. Known at once, while the
    /// segment's lock, which decides, is free only when the kernel has torn down its memory.
    pub fn peer_died(&self, writing: &Writing) -> bool {
        self.peer.life.has_ended() && !writing.distrusts
    }

    /// Whether the peer takes nothing more: our bytes made no sense to it.
    pub fn is_refused(&self, writing: &Writing) -> bool {
        writing.writer.refused() == Refused::Everything
    }

    /// Go on with `packet`, and record it when it is complete; returns then, or when it must wait.
    pub fn step(
        &self,
        writing: &mut Writing,
        packet: &Gather<'_>,
        progress: &mut Progress,
        buffering: u64,
    ) -> Step {
        let step = self.advance(writing, packet, progress, buffering);
        if step == Step::Done {
            self.record(writing, packet);
        }
        step
    }

    /// Go on with `packet`; returns when it is complete, and is to be recorded, or must wait.
    pub fn advance(
        &self,
        writing: &mut Writing,
        packet: &Gather<'_>,
        progress: &mut Progress,
        buffering: u64,
    ) -> Step {
        if !progress.is_started() {
            let account = account_of(packet);
            let (sent, cost) = (writing.sent[account], cost(packet.len()));
            let enough = |taken| may_send(sent - taken, cost, buffering);
            if !writing.writer.has_taken(account, enough) {
                // Observers compare it with what the peer has taken: so it is not read after the
                // check.
                let seen = writing.writer.all_taken();
                if !writing.writer.has_taken(account, enough) {
                    writing.seen = seen;
                    return Step::Blocked;
                }
            }
            writing.seen = UNSETTLED;
            progress.block = writing.copy_to_arena(packet, &self.folder);
        }
        if let Some(block) = progress.block {
            let needed = writing.writer.split_room(packet.head().len()).expect("placed");
            if !writing.writer.has_room(needed) {
                return Step::Blocked;
            }
            let (head, total) = (packet.head(), packet.len());
            writing.writer.write_split(head, total, block.index as u64, block.offset);
            self.sent(writing, packet);
            return Step::Done;
        }
        loop {
            if progress.done > 0 && writing.writer.refused() == Refused::Packet {
                return Step::Refused;
            }
            let before = progress.done;
            progress.done = writing.writer.write(packet, before);
            if progress.done == packet.len() {
                self.sent(writing, packet);
                return Step::Done;
            }
            if progress.done == before {
                return Step::Blocked;
            }
            self.peer.announce_arrival(self.slot);
        }
    }

    fn sent(&self, writing: &mut Writing, packet: &Gather<'_>) {
        writing.sent[account_of(packet)] += cost(packet.len());
        writing.count += 1;
        self.peer.announce_arrival(self.slot);
    }

    /// Write the observers' counters of the packet that was just sent.
    pub fn record(&self, writing: &Writing, packet: &Gather<'_>) {
        let shared = self.core.shared();
        bump(&shared.peers.of(self.peer_id).sent, 1);
        shared.record_sent(self.peer_id, writing.count, packet.len(), packet.head());
    }

    /// Sleep until there may be room or credit, for at most `limit`.
    pub fn wait(
        &self,
        writing: &mut Writing,
        packet: &Gather<'_>,
        progress: &Progress,
        buffering: u64,
        limit: Duration,
    ) -> Woken {
        let needed = match progress.block {
            Some(_) => writing.writer.split_room(packet.head().len()).expect("placed"),
            None => LEAST,
        };
        writing.writer.announce_wait();
        let room = writing.writer.has_room(needed);
        let account = account_of(packet);
        let sent = writing.sent[account];
        if !room {
            self.peer.announce_pressure();
        }
        let taken = writing.writer.taken(account);
        let ready = progress.is_started() || may_send(sent - taken, cost(packet.len()), buffering);
        let woken = if room && ready {
            Woken::Rung
        } else {
            let writer = std::cell::RefCell::new(&mut writing.writer);
            self.core.wait_as_sender(limit, || {
                let mut writer = writer.borrow_mut();
                (!room && writer.has_room(needed))
                    || writer.taken(account) != taken
                    || writer.refused() != Refused::Nothing
                    || self.core.is_closed()
            })
        };
        writing.writer.end_wait();
        woken
    }

    /// Whether everything that was sent on this account was received.
    pub fn drained(&self, writing: &mut Writing, account: usize) -> bool {
        writing.seen = writing.writer.all_taken();
        writing.writer.taken(account) == writing.sent[account]
    }

    pub fn wait_drained(&self, writing: &mut Writing, account: usize, limit: Duration) -> Woken {
        writing.writer.announce_wait();
        let seen = writing.writer.taken(account);
        let woken = if seen == writing.sent[account] {
            Woken::Rung
        } else {
            self.core.wait_as_sender(limit, || {
                writing.writer.taken(account) != seen
                    || writing.writer.refused() == Refused::Everything
                    || self.core.is_closed()
            })
        };
        writing.writer.end_wait();
        woken
    }

    /// Take back a packet that is partly written.
    pub fn abort(&self, writing: &mut Writing, progress: Progress) {
        if let (Some(block), Some(arena)) = (progress.block, &mut writing.arena) {
            writing.writer.memory().flag(block.index).give_back();
            arena.release(block);
        }
        if progress.done > 0 {
            writing.writer.abort();
            self.peer.announce_arrival(self.slot);
        }
    }

    /// Whether it is time to ask if the peer still lives; asks at most every 250 ms.
    pub fn doubts(&self, writing: &mut Writing) -> bool {
        let now = coarse();
        let due = now.saturating_sub(writing.checked) >= TRUST;
        if due {
            writing.checked = now;
        }
        due
    }
}

impl Writing {
    /// The peer's segment is damaged: from now on its lock alone says whether it lives.
    pub fn distrust(&mut self) {
        self.distrusts = true;
    }
}

/// The account on which a packet goes.
pub fn account_of(packet: &Gather<'_>) -> usize {
    account(context_of(packet.head()))
}
