//! Flow control on the sender's side, where the transport itself does not count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::core::Core;

/// The account of one peer: cost of the packets sent to it, and of those it has received.
pub struct Outflow {
    core: Arc<Core>,
    /// The peer, for observers.
    peer: u64,
    sent: AtomicU64,
    taken: AtomicU64,
    count: AtomicU64,
}

/// Whether a packet of `cost` may go when `waiting` is unreceived: a packet that is larger than
/// the whole allowance goes alone.
pub fn may_send(waiting: u64, cost: u64, buffering: u64) -> bool {
    waiting == 0 || waiting + cost <= buffering
}

impl Outflow {
    pub fn new(core: Arc<Core>, peer: u128) -> Outflow {
        let zero = || AtomicU64::new(0);
        Outflow { core, peer: peer as u64, sent: zero(), taken: zero(), count: zero() }
    }

    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Cost of what was sent and not yet received.
    pub fn waiting(&self) -> u64 {
        let taken = self.taken.load(Ordering::SeqCst);
        self.sent.load(Ordering::SeqCst).saturating_sub(taken)
    }

    /// Count `cost` if it may go now.
    pub fn try_acquire(&self, cost: u64, buffering: u64) -> bool {
        let mut sent = self.sent.load(Ordering::SeqCst);
        loop {
            let waiting = sent.saturating_sub(self.taken.load(Ordering::SeqCst));
            if !may_send(waiting, cost, buffering) {
                return false;
            }
            match self.sent.compare_exchange(sent, sent + cost, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => return true,
                Err(now) => sent = now,
            }
        }
    }

    /// Whether `try_acquire` would succeed.
    pub fn may_acquire(&self, cost: u64, buffering: u64) -> bool {
        may_send(self.waiting(), cost, buffering)
    }

    /// A packet of `nbytes` has left; `about`: its attributes.
    pub fn count(&self, nbytes: usize, about: &[u8]) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let shared = self.core.shared();
        shared.peers.of(self.peer).sent.fetch_add(1, Ordering::Relaxed);
        shared.record_sent(self.peer, number, nbytes, about);
    }

    /// What the peer has received, as far as is known here.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }

    pub fn release(&self, cost: u64) {
        self.sent.fetch_sub(cost, Ordering::SeqCst);
        self.core.ring();
    }

    /// The peer has received `total` since the beginning.
    pub fn credit(&self, total: u64) {
        self.taken.fetch_max(total, Ordering::SeqCst);
        self.core.ring();
    }
}
