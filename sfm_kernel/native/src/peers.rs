//! The traffic between a process and each other one: counters in its segment, for observers.
//!
//! An observer that compares what A has sent to B with what has arrived at B knows whether
//! something is in transit.

use std::sync::atomic::{AtomicU64, Ordering};

/// Incarnations that are counted separately; all later ones share an entry.
const CAPACITY: usize = 1024;

/// The uid of the shared entry.
pub const SHARED: u64 = u64::MAX;

#[repr(C)]
pub struct Peer {
    /// The lower half of its uid; 0 if the entry is free.
    uid: AtomicU64,
    /// Messages sent to it.
    pub sent: AtomicU64,
    /// Its messages that have come into the inbox.
    pub arrived: AtomicU64,
    /// Its messages that have left the inbox.
    pub received: AtomicU64,
    /// The cost of those, as flow control counts.
    pub taken: AtomicU64,
}

#[repr(C)]
pub struct Peers {
    known: [Peer; CAPACITY],
    shared: Peer,
}

/// Add to a counter that one thread changes at a time: no need for an atomic step.
pub fn bump(counter: &AtomicU64, by: u64) {
    let sum = counter.load(Ordering::Relaxed).wrapping_add(by);
    counter.store(sum, Ordering::Relaxed);
}

impl Peers {
    /// The entry of a peer, made if there is none. From any thread of the process.
    pub fn of(&self, uid: u64) -> &Peer {
        for nth in 0..CAPACITY {
            let peer = &self.known[(uid as usize).wrapping_add(nth) % CAPACITY];
            let found = peer.uid.load(Ordering::Relaxed);
            let taken = || peer.uid.compare_exchange(0, uid, Ordering::Relaxed, Ordering::Relaxed);
            if found == uid || (found == 0 && taken().map_or_else(|now| now == uid, |_| true)) {
                return peer;
            }
        }
        self.shared.uid.store(SHARED, Ordering::Relaxed);
        &self.shared
    }

    /// The entries in use: uid and counters.
    pub fn all(&self) -> impl Iterator<Item = (u64, &Peer)> {
        let known = |peer: &Peer| peer.uid.load(Ordering::Relaxed);
        let all = self.known.iter().chain([&self.shared]);
        all.map(move |peer| (known(peer), peer)).filter(|(uid, _)| *uid != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_has_one_entry_until_there_are_too_many() {
        // SAFETY: atomics, for which zero is a valid value.
        let peers: Box<Peers> = unsafe { Box::new_zeroed().assume_init() };
        let last = CAPACITY as u64;
        for uid in 1..=last {
            peers.of(uid * 7).sent.fetch_add(uid * 7, Ordering::Relaxed);
            peers.of(uid / 2 * 7 + 7);
        }
        assert_eq!(peers.all().count(), CAPACITY);
        assert!(peers.all().all(|(uid, peer)| peer.sent.load(Ordering::Relaxed) == uid));
        let shared: *const Peer = peers.of(last * 7 + 1);
        assert!(std::ptr::eq(shared, peers.of(last * 7 + 2)));
        assert!(peers.all().any(|(uid, _)| uid == SHARED));
    }
}
