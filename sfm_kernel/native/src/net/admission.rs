//! Connections of strangers, which have not shown the key yet.
//!
//! Anybody who can reach the address may open connections, and each takes a descriptor. If there
//! are too many, some are ended: first those that have not sent anything, because a member sends at
//! once. Chance decides which of them; an evicted member tries again, so members come in however
//! many strangers there are.

use std::collections::HashMap;
use std::sync::Arc;

use super::exchange::{Exchange, Remote, LISTENER};
use super::now;
use crate::splitmix::SplitMix;
use crate::sync::lock;
use crate::tcp_info::{TcpInfo, BYTES_RECEIVED};
use crate::wire::gateway::Socket;
use crate::wire::zmq::Descriptor;
use crate::wire::{Connection, Wire};

/// Nanoseconds within which a connection must show the key.
const HELLO_TIMEOUT: u64 = 3_000_000_000;
/// Nanoseconds between two warnings about evicted strangers.
const WARN_EVERY: u64 = 60_000_000_000;
/// Nanoseconds without accepting after the process has run out of descriptors.
const PAUSE: u64 = 50_000_000;
/// Connections that are accepted before existing ones have their turn.
const ACCEPTS_PER_TURN: usize = 16;

/// A connection that has not shown the key.
pub(super) trait Stranger {
    /// Whether it has sent something.
    fn has_sent(&self) -> bool;
}

pub(super) struct Admission<S = Arc<Connection>> {
    limit: usize,
    address: String,
    /// With the times when they came.
    strangers: HashMap<u64, (u64, S)>,
    warned_until: u64,
    paused_since: Option<u64>,
    random: SplitMix,
}

impl<S: Stranger> Admission<S> {
    pub fn new(limit: usize, address: &str) -> Admission<S> {
        Admission {
            limit,
            address: address.to_owned(),
            strangers: HashMap::new(),
            warned_until: 0,
            paused_since: None,
            random: SplitMix::new(now()),
        }
    }

    pub fn enter(&mut self, id: u64, stranger: S) {
        self.strangers.insert(id, (now(), stranger));
    }

    /// A connection has shown the key, or has ended.
    pub fn forget(&mut self, id: u64) {
        self.strangers.remove(&id);
    }

    /// When `end_late_strangers` is due.
    pub fn due(&self) -> Option<u64> {
        let first = self.strangers.values().map(|(since, _)| since + HELLO_TIMEOUT).min();
        first.into_iter().chain(self.paused_since.map(|since| since + PAUSE)).min()
    }

    /// Remove strangers until `limit` are left; returns the removed ones.
    fn evict(&mut self, limit: usize) -> Vec<S> {
        let mut evicted = Vec::new();
        if self.strangers.len() <= limit {
            return evicted;
        }
        let (mut silent, mut others): (Vec<u64>, Vec<u64>) =
            self.strangers.keys().partition(|id| !self.strangers[id].1.has_sent());
        while self.strangers.len() > limit {
            let from = if silent.is_empty() { &mut others } else { &mut silent };
            let id = from.swap_remove(self.random.below(from.len()));
            evicted.extend(self.strangers.remove(&id).map(|(_, connection)| connection));
        }
        evicted
    }

    /// The same for the limit of all times, or for half of them; and a warning if there are some.
    pub fn make_room(&mut self, halve: bool) -> (Vec<S>, Option<String>) {
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

impl Exchange {
    /// Accept the connections that wait at the listening socket.
    pub(super) fn accept(&self) {
        let Some(listener) = self.listener.as_ref().map(Socket::raw) else { return };
        for _ in 0..ACCEPTS_PER_TURN {
            match Socket::accept(listener) {
                Ok(Some(socket)) => {
                    let connection = self.add_connection(socket, Remote::Stranger);
                    lock(&self.admission).enter(connection.id(), connection);
                }
                Ok(None) => break,
                Err(_) => {
                    // No descriptor is left, and the kernel would report the waiting connection
                    // again and again.
                    self.watch(listener, LISTENER, libc::EPOLL_CTL_MOD, false);
                    lock(&self.admission).paused_since = Some(now());
                    self.evict_strangers(true);
                    self.core.poke();
                    break;
                }
            }
        }
        self.evict_strangers(false);
    }

    fn evict_strangers(&self, halve: bool) {
        let (evicted, warning) = lock(&self.admission).make_room(halve);
        for connection in evicted {
            self.end(&connection);
        }
        if let Some(text) = warning {
            self.warn(&text);
        }
    }

    /// End the connections that have not shown the key in time; accept again after a pause.
    pub(super) fn end_late_strangers(&self) {
        let now = now();
        let late: Vec<Arc<Connection>> = {
            let mut admission = lock(&self.admission);
            if admission.paused_since.take_if(|since| now >= *since + PAUSE).is_some() {
                if let Some(listener) = &self.listener {
                    self.watch(listener.raw(), LISTENER, libc::EPOLL_CTL_MOD, true);
                }
            }
            let late =
                admission.strangers.values().filter(|(since, _)| now >= since + HELLO_TIMEOUT);
            late.map(|(_, connection)| connection.clone()).collect()
        };
        for connection in late {
            self.end(&connection);
        }
    }
}

impl Stranger for Arc<Connection> {
    fn has_sent(&self) -> bool {
        let mut bytes = 0i32;
        // SAFETY: room for an int.
        self.with_socket(|fd| unsafe { libc::ioctl(fd, libc::FIONREAD, &mut bytes) });
        bytes > 0 // nobody has read them yet
    }
}

/// libzmq reads at once whatever comes: bytes of a greeting after which it is taken for one.
const SIGNATURE: u64 = 10;

impl Stranger for Descriptor {
    fn has_sent(&self) -> bool {
        let received = self.with(|fd| TcpInfo::read(fd).ok()?.number(BYTES_RECEIVED)).flatten();
        received.is_some_and(|received| received >= SIGNATURE)
    }
}
