//! Connections that do not belong to a peer: strangers, which have not shown the key yet, and
//! watchers.
//!
//! Anybody who can reach the address may open connections, and each takes a descriptor. If there
//! are too many, some are ended: first those that have not sent anything, because a member sends at
//! once. Chance decides which of them; an evicted member tries again, so members come in however
//! many strangers there are.

use std::collections::{HashMap, VecDeque};
use std::os::fd::RawFd;
use std::sync::Arc;

use super::connection::Connection;
use super::exchange::{Exchange, Remote, LISTENER};
use super::now;
use super::socket::Socket;
use crate::splitmix::SplitMix;
use crate::sync::lock;

/// Nanoseconds within which a connection must show the key.
const HELLO_TIMEOUT: u64 = 3_000_000_000;
/// Connections that may watch whether this process lives: a directory server's and witnesses'. A
/// replayed knock costs no more than these.
const MAX_WATCHERS: usize = 8;
/// Nanoseconds between two warnings about evicted strangers.
const WARN_EVERY: u64 = 60_000_000_000;
/// Nanoseconds without accepting after the process has run out of descriptors.
const PAUSE: u64 = 50_000_000;
/// Connections that are accepted before existing ones have their turn.
const ACCEPTS_PER_TURN: usize = 16;

pub(super) struct Admission {
    limit: usize,
    address: String,
    strangers: HashMap<u64, (u64, Arc<Connection>)>,
    warned_until: u64,
    paused_since: Option<u64>,
    random: SplitMix,
    watchers: VecDeque<Arc<Connection>>,
}

impl Admission {
    pub fn new(limit: usize, address: &str) -> Admission {
        Admission {
            limit,
            address: address.to_owned(),
            strangers: HashMap::new(),
            warned_until: 0,
            paused_since: None,
            random: SplitMix::new(now()),
            watchers: VecDeque::new(),
        }
    }

    /// A connection has shown the key, or has ended.
    pub fn forget(&mut self, id: u64) {
        self.strangers.remove(&id);
    }

    /// This stranger only wants to see that this process lives. Returns the watcher that must be
    /// ended to make room for it.
    pub fn admit_watcher(&mut self, connection: &Arc<Connection>) -> Option<Arc<Connection>> {
        self.forget(connection.id);
        self.watchers.retain(|watcher| !watcher.has_ended());
        self.watchers.push_back(connection.clone());
        if self.watchers.len() > MAX_WATCHERS {
            return self.watchers.pop_front();
        }
        None
    }

    /// When `end_late_strangers` is due.
    pub fn due(&self) -> Option<u64> {
        let first = self.strangers.values().map(|(since, _)| since + HELLO_TIMEOUT).min();
        first.into_iter().chain(self.paused_since.map(|since| since + PAUSE)).min()
    }

    /// Remove strangers until `limit` are left; returns the removed ones.
    fn evict(&mut self, limit: usize) -> Vec<Arc<Connection>> {
        let mut evicted = Vec::new();
        if self.strangers.len() <= limit {
            return evicted;
        }
        let (mut silent, mut others): (Vec<u64>, Vec<u64>) =
            self.strangers.keys().partition(|id| !has_sent(self.strangers[id].1.socket.raw()));
        while self.strangers.len() > limit {
            let from = if silent.is_empty() { &mut others } else { &mut silent };
            let id = from.swap_remove(self.random.below(from.len()));
            evicted.extend(self.strangers.remove(&id).map(|(_, connection)| connection));
        }
        evicted
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
        let listener = self.listener.raw();
        for _ in 0..ACCEPTS_PER_TURN {
            match Socket::accept(listener) {
                Ok(Some(socket)) => {
                    let connection = self.add_connection(socket, Remote::Stranger);
                    lock(&self.admission).strangers.insert(connection.id, (now(), connection));
                }
                Ok(None) => break,
                Err(_) => {
                    // No descriptor is left, and the kernel would report the waiting connection
                    // again and again.
                    self.watch(listener, LISTENER, libc::EPOLL_CTL_MOD, false);
                    let half = {
                        let mut admission = lock(&self.admission);
                        admission.paused_since = Some(now());
                        admission.strangers.len() / 2
                    };
                    self.evict_strangers(half);
                    self.core.poke();
                    break;
                }
            }
        }
        let limit = lock(&self.admission).limit;
        self.evict_strangers(limit);
    }

    fn evict_strangers(&self, limit: usize) {
        let (evicted, warning) = {
            let mut admission = lock(&self.admission);
            let evicted = admission.evict(limit);
            let warning = if evicted.is_empty() { None } else { admission.warning() };
            (evicted, warning)
        };
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
                self.watch(self.listener.raw(), LISTENER, libc::EPOLL_CTL_MOD, true);
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

/// Whether the socket has received bytes that nobody has read yet.
fn has_sent(fd: RawFd) -> bool {
    let mut bytes = 0i32;
    // SAFETY: room for an int.
    unsafe { libc::ioctl(fd, libc::FIONREAD, &mut bytes) };
    bytes > 0
}
