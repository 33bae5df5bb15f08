//! Connections of strangers, which have not shown the key of a member yet.
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

/// Bytes that all strangers together may have sent: the front of a large frame, for which libzmq has
/// memory before the key is shown.
const MOST_SENT: u64 = 32 << 20;
/// Nanoseconds between two looks at how much they have sent.
pub(super) const LOOK_EVERY: u64 = 50_000_000;
/// Nanoseconds between two warnings about evicted strangers.
const WARN_EVERY: u64 = 60_000_000_000;

pub(super) struct Admission {
    limit: usize,
    address: String,
    strangers: HashMap<RawFd, Descriptor>,
    warned_until: u64,
    next_look: u64,
    random: SplitMix,
}

impl Admission {
    pub fn new(limit: usize, address: &str) -> Admission {
        Admission {
            limit,
            address: address.to_owned(),
            strangers: HashMap::new(),
            warned_until: 0,
            next_look: 0,
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

    /// When `look` is due; None if there are no strangers.
    pub fn due(&self) -> Option<u64> {
        (!self.strangers.is_empty()).then_some(self.next_look)
    }

    /// Remove greedy strangers, if a look is due; returns the removed ones.
    pub fn look(&mut self) -> Vec<Descriptor> {
        if now() < self.next_look {
            return Vec::new();
        }
        self.next_look = now() + LOOK_EVERY;
        self.evict_greedy(MOST_SENT)
    }

    /// Remove the strangers that have sent most, until the others have sent at most so many bytes.
    fn evict_greedy(&mut self, most: u64) -> Vec<Descriptor> {
        let sent = |stranger: &Descriptor| received(stranger).unwrap_or(0);
        let mut all: Vec<(u64, RawFd)> =
            self.strangers.iter().map(|(&fd, stranger)| (sent(stranger), fd)).collect();
        all.sort_unstable();
        let mut total: u64 = all.iter().map(|(bytes, _)| bytes).sum();
        let mut removed = Vec::new();
        while total > most {
            let Some((bytes, fd)) = all.pop() else { break };
            total -= bytes;
            removed.extend(self.strangers.remove(&fd));
        }
        removed
    }

    /// A warning for the user, at most one per `WARN_EVERY`.
    fn warning(&mut self) -> Option<String> {
        let before = std::mem::replace(&mut self.warned_until, now() + WARN_EVERY);
        (now() >= before).then(|| {
            format!(
                "more than {} connections to {} have not shown a member's key. Some of them are \
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
    received(stranger).is_some_and(|received| received >= SIGNATURE)
}

fn received(stranger: &Descriptor) -> Option<u64> {
    stranger.with(|fd| TcpInfo::read(fd).ok()?.number(BYTES_RECEIVED)).flatten()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn those_who_send_most_go_first() {
        let mut admission = Admission::new(10, "tcp://127.0.0.1:1");
        let mut pairs = Vec::new();
        for bytes in [100, 3000, 200, 2000] {
            let (here, mut there) = crate::tcp_info::tests::pair();
            there.write_all(&vec![0; bytes]).unwrap();
            let stranger = Descriptor::of(here.as_raw_fd()).unwrap();
            while received(&stranger) != Some(bytes as u64) {} // the loopback takes a moment
            admission.enter(stranger);
            pairs.push((here, there));
        }
        assert!(admission.evict_greedy(6000).is_empty());
        let fds = |evicted: Vec<Descriptor>| -> Vec<RawFd> {
            evicted.into_iter().map(|descriptor| descriptor.fd).collect()
        };
        assert_eq!(fds(admission.evict_greedy(2300)), [pairs[1].0.as_raw_fd()]);
        assert_eq!(fds(admission.evict_greedy(2299)), [pairs[3].0.as_raw_fd()]);
        assert!(admission.evict_greedy(300).is_empty());
        assert!(admission.due().is_some());
    }
}
