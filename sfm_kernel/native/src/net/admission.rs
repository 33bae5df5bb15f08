//! Connections of strangers, which have not shown the key yet.
//!
//! Anybody who can reach the address may open connections, and each takes a descriptor. If there
//! are too many, some are ended: first those that have not greeted, because a member does at once.
//! Chance decides which of them; an evicted member tries again, so members come in however many
//! strangers there are. libzmq ends those that have not shown the key in time.

use std::collections::HashMap;
use std::os::fd::RawFd;

use super::now;
use crate::splitmix::SplitMix;
use crate::tcp_info::{TcpInfo, BYTES_RECEIVED};
use crate::wire::zmq::Descriptor;

/// Nanoseconds between two warnings about evicted strangers.
const WARN_EVERY: u64 = 60_000_000_000;

pub(super) struct Admission {
    limit: usize,
    address: String,
    strangers: HashMap<RawFd, Descriptor>,
    warned_until: u64,
    random: SplitMix,
}

impl Admission {
    pub fn new(limit: usize, address: &str) -> Admission {
        Admission {
            limit,
            address: address.to_owned(),
            strangers: HashMap::new(),
            warned_until: 0,
            random: SplitMix::new(now()),
        }
    }

    pub fn enter(&mut self, stranger: Descriptor) {
        self.strangers.insert(stranger.fd, stranger);
    }

    /// A connection has shown the key, or has ended.
    pub fn forget(&mut self, fd: RawFd) {
        self.strangers.remove(&fd);
    }

    /// Remove strangers until `limit` are left; returns the removed ones.
    fn evict(&mut self, limit: usize) -> Vec<Descriptor> {
        let mut evicted = Vec::new();
        if self.strangers.len() <= limit {
            return evicted;
        }
        let (mut silent, mut others): (Vec<RawFd>, Vec<RawFd>) =
            self.strangers.keys().partition(|fd| !has_greeted(&self.strangers[fd]));
        while self.strangers.len() > limit {
            let from = if silent.is_empty() { &mut others } else { &mut silent };
            let fd = from.swap_remove(self.random.below(from.len()));
            evicted.extend(self.strangers.remove(&fd));
        }
        evicted
    }

    /// The same for the limit of all times, or for half of them; and a warning if there are some.
    pub fn make_room(&mut self, halve: bool) -> (Vec<Descriptor>, Option<String>) {
        let limit = if halve { self.strangers.len() / 2 } else { self.limit };
        let evicted = self.evict(limit);
        let warning = if evicted.is_empty() { None } else { self.warning() };
        (evicted, warning)
    }

    /// A warning for the user, at most one per `WARN_EVERY`.
    fn warning(&mut self) -> Option<String> {
        let before = std::mem::replace(&mut self.warned_until, now() + WARN_EVERY);
        (now() >= before).then(|| {
            format!(
                "more than {} connections to {} have not shown the world's key. Some of them are \
                 closed; connected processes are not affected. Somebody who can reach this \
                 address opens them",
                self.limit, self.address
            )
        })
    }
}

/// Bytes of a greeting after which it is taken for one.
const SIGNATURE: u64 = 10;

/// Whether somebody has greeted there. (libzmq reads at once whatever comes.)
fn has_greeted(stranger: &Descriptor) -> bool {
    let received = stranger.with(|fd| TcpInfo::read(fd).ok()?.number(BYTES_RECEIVED)).flatten();
    received.is_some_and(|received| received >= SIGNATURE)
}
