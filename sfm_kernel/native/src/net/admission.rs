//! Those who have connected and are no peers: who has not shown the key yet, and who only watches.
//!
//! Whoever reaches the address may open connections, each of which takes a descriptor. Of too many
//! some have to go: first those who have not said anything, which a member does at once. Which of them
//! is left to chance: who is unlucky tries again, so that members come in however many others do.

use std::collections::{HashMap, VecDeque};
use std::os::fd::RawFd;
use std::sync::Arc;

use super::connection::Connection;
use super::exchange::{lock, Exchange, Who, LISTENER};
use super::now;
use super::socket::Socket;

/// A connection that has not shown the key after so many nanoseconds is ended.
const WELCOME: u64 = 3_000_000_000;
/// Those who may watch whether this process lives: a directory server, and witnesses. A knock that
/// was overheard can be said again, which must not cost more than this.
const WATCHERS: usize = 8;
/// Nanoseconds until it is said again that strangers are turned away.
const SAY_EVERY: u64 = 60_000_000_000;
/// Without a descriptor left, nobody is let in for so many nanoseconds.
const REST: u64 = 50_000_000;
/// Connections that are let in before those that are there have their turn.
const BATCH: usize = 16;

pub(super) struct Admission {
    most: usize,
    address: String,
    strangers: HashMap<u64, (u64, Arc<Connection>)>,
    silent_until: u64,
    closed_since: Option<u64>,
    dice: u64,
    watchers: VecDeque<Arc<Connection>>,
}

impl Admission {
    pub fn new(most: usize, address: &str) -> Admission {
        Admission {
            most,
            address: address.to_owned(),
            strangers: HashMap::new(),
            silent_until: 0,
            closed_since: None,
            dice: now() | 1,
            watchers: VecDeque::new(),
        }
    }

    /// A connection has shown the key, or has ended.
    pub fn forget(&mut self, id: u64) {
        self.strangers.remove(&id);
    }

    /// This stranger only wants to see that this process lives. Who has to go for that.
    pub fn let_watch(&mut self, connection: &Arc<Connection>) -> Option<Arc<Connection>> {
        self.forget(connection.id);
        self.watchers.retain(|one| !one.has_ended());
        self.watchers.push_back(connection.clone());
        if self.watchers.len() > WATCHERS {
            return self.watchers.pop_front();
        }
        None
    }

    /// When `tidy_door` is to be called.
    pub fn due(&self) -> Option<u64> {
        let first = self.strangers.values().map(|(since, _)| since + WELCOME).min();
        first.into_iter().chain(self.closed_since.map(|since| since + REST)).min()
    }

    fn chance(&mut self, below: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice % below as u64) as usize
    }

    /// Those who have to go.
    fn crowd(&mut self, most: usize) -> Vec<Arc<Connection>> {
        let mut gone = Vec::new();
        if self.strangers.len() <= most {
            return gone;
        }
        let (mut silent, mut others): (Vec<u64>, Vec<u64>) =
            self.strangers.keys().partition(|id| !has_spoken(self.strangers[id].1.socket.raw()));
        while self.strangers.len() > most {
            let from = if silent.is_empty() { &mut others } else { &mut silent };
            let unlucky = from.len();
            let unlucky = self.chance(unlucky);
            let from = if silent.is_empty() { &mut others } else { &mut silent };
            let id = from.swap_remove(unlucky);
            gone.extend(self.strangers.remove(&id).map(|(_, connection)| connection));
        }
        gone
    }

    /// Whether the user is to know; at most now and then.
    fn tells(&mut self) -> Option<String> {
        let before = std::mem::replace(&mut self.silent_until, now() + SAY_EVERY);
        (now() >= before).then(|| {
            format!(
                "more than {} connections to {} have not shown the world's key. Some of them are \
                 closed; who is connected already does not notice. Somebody who can reach this \
                 address opens them",
                self.most, self.address
            )
        })
    }
}

impl Exchange {
    /// Let those in who wait at the listening socket.
    pub(super) fn accept(&self) {
        let listener = self.listener.raw();
        for _ in 0..BATCH {
            match Socket::accept(listener) {
                Ok(Some(socket)) => {
                    let connection = self.connection(socket, Who::Stranger);
                    lock(&self.admission).strangers.insert(connection.id, (now(), connection));
                }
                Ok(None) => break,
                Err(_) => {
                    // No descriptor is left: the kernel would tell of who waits again and again.
                    self.watch(listener, LISTENER, libc::EPOLL_CTL_MOD, false);
                    let half = {
                        let mut admission = lock(&self.admission);
                        admission.closed_since = Some(now());
                        admission.strangers.len() / 2
                    };
                    self.turn_away(half);
                    self.core.poke();
                    break;
                }
            }
        }
        let most = lock(&self.admission).most;
        self.turn_away(most);
    }

    fn turn_away(&self, most: usize) {
        let (gone, told) = {
            let mut admission = lock(&self.admission);
            let gone = admission.crowd(most);
            let told = if gone.is_empty() { None } else { admission.tells() };
            (gone, told)
        };
        for connection in gone {
            self.end(&connection);
        }
        if let Some(text) = told {
            self.say(&text);
        }
    }

    /// End the connections of those who have not shown the key in time; let others in again.
    pub(super) fn tidy_door(&self) {
        let now = now();
        let late: Vec<Arc<Connection>> = {
            let mut admission = lock(&self.admission);
            if admission.closed_since.take_if(|since| now >= *since + REST).is_some() {
                self.watch(self.listener.raw(), LISTENER, libc::EPOLL_CTL_MOD, true);
            }
            let late = admission.strangers.values().filter(|(since, _)| now >= since + WELCOME);
            late.map(|(_, connection)| connection.clone()).collect()
        };
        for connection in late {
            self.end(&connection);
        }
    }
}

/// Whether something has come that was not read yet.
fn has_spoken(fd: RawFd) -> bool {
    let mut bytes = 0i32;
    // SAFETY: room for an int.
    unsafe { libc::ioctl(fd, libc::FIONREAD, &mut bytes) };
    bytes > 0
}
