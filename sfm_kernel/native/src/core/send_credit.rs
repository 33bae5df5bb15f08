//! Flow control on the sender's side, where the transport itself does not count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::Core;
use crate::packet::ACCOUNTS;

/// The accounts of one peer: the cost of the packets sent to it, and of those it has received.
pub struct SendCredit {
    core: Arc<Core>,
    /// The peer, for observers.
    peer: u64,
    sent: [AtomicU64; ACCOUNTS],
    taken: [AtomicU64; ACCOUNTS],
    count: AtomicU64,
}

/// Whether a packet of `cost` may go when `waiting` is unreceived: a packet that is larger than
/// the whole allowance goes alone.
pub fn may_send(waiting: u64, cost: u64, buffering: u64) -> bool {
    waiting == 0 || waiting + cost <= buffering
}

impl SendCredit {
    pub fn new(core: Arc<Core>, peer: u128) -> SendCredit {
        let (sent, taken) = Default::default();
        SendCredit { core, peer: peer as u64, sent, taken, count: AtomicU64::new(0) }
    }

    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Cost of what was sent and not yet received.
    pub fn waiting(&self, account: usize) -> u64 {
        let taken = self.taken[account].load(Ordering::SeqCst);
        self.sent[account].load(Ordering::SeqCst).saturating_sub(taken)
    }

    /// The same, summed over all accounts.
    pub fn all_waiting(&self) -> u64 {
        (0..ACCOUNTS).map(|account| self.waiting(account)).sum()
    }

    /// Count `cost` if it may go now.
    pub fn try_acquire(&self, account: usize, cost: u64, buffering: u64) -> bool {
        let total = &self.sent[account];
        let mut sent = total.load(Ordering::SeqCst);
        loop {
            let waiting = sent.saturating_sub(self.taken[account].load(Ordering::SeqCst));
            if !may_send(waiting, cost, buffering) {
                return false;
            }
            match total.compare_exchange(sent, sent + cost, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => sent = now,
            }
        }
    }

    /// Whether `try_acquire` would succeed.
    pub fn may_acquire(&self, account: usize, cost: u64, buffering: u64) -> bool {
        may_send(self.waiting(account), cost, buffering)
    }

    /// Count a packet that was sent; `front`: its first bytes.
    pub fn count(&self, nbytes: usize, front: &[u8]) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let shared = self.core.shared();
        shared.peers.of(self.peer).sent.fetch_add(1, Ordering::Relaxed);
        shared.record_sent(self.peer, number, nbytes, front);
    }

    /// The cost of what the peer has received, as far as this process knows.
    pub fn all_taken(&self) -> u64 {
        self.taken.iter().map(|taken| taken.load(Ordering::SeqCst)).sum()
    }

    pub fn release(&self, account: usize, cost: u64) {
        self.sent[account].fetch_sub(cost, Ordering::SeqCst);
        self.core.ring();
    }

    /// The peer has received `total` since the beginning.
    pub fn credit(&self, account: usize, total: u64) {
        self.taken[account].fetch_max(total, Ordering::SeqCst);
        self.core.ring();
    }
}
