//! The network between two processes, and what happens there, one thing after the other, as a seed
//! says.

use std::collections::VecDeque;
use std::sync::Arc;

use super::processes::Side;
use crate::link::Link;
use crate::splitmix::SplitMix;
use crate::wire::memory::Memory;
use crate::wire::Wire;

/// What may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is a gateway between the two, which is used while no message is under way.
    Gateway,
    /// The gateway loses frames.
    Lose,
    /// Connections break.
    Break,
    /// Somebody sends again what was recorded of a connection's beginning.
    Repeat,
    /// A process gives the other one up, as if it had been out of reach for too long.
    GiveUp,
}

/// What an end of a connection knows of the other one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Stranger,
    Dialed,
    Peer,
    Gateway,
}

/// A connection; its ends and what is under way, by the side that sends it.
pub struct Connection {
    pub ends: [Arc<Memory>; 2],
    pub roles: [Role; 2],
    under_way: [VecDeque<Vec<u8>>; 2],
    /// Sides that know that it has ended.
    noticed: [bool; 2],
}

pub struct Network {
    pub random: SplitMix,
    faults: Vec<Fault>,
    pub sides: [Side; 2],
    pub connections: Vec<Connection>,
    ids: u64,
}

impl Network {
    pub fn new(seed: u64, faults: &[Fault]) -> Network {
        let mut network = Network {
            random: SplitMix::new(seed),
            faults: faults.to_vec(),
            sides: [Side::new(1), Side::new(2)],
            connections: Vec::new(),
            ids: 0,
        };
        if network.has(Fault::Gateway) {
            network.connect([Role::Gateway, Role::Gateway]);
        }
        network
    }

    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    pub fn chance(&mut self, one_in: usize) -> bool {
        self.random.below(one_in) == 0
    }

    pub fn connect(&mut self, roles: [Role; 2]) {
        let shared = roles[0] == Role::Gateway;
        let mut end = || {
            self.ids += 1;
            Memory::new(self.ids, shared)
        };
        let ends = [end(), end()];
        let (under_way, noticed) = Default::default();
        self.connections.push(Connection { ends, roles, under_way, noticed });
    }

    // ---- what happens ----

    /// Anything that may happen, happens.
    pub fn step(&mut self) {
        let side = self.random.below(2);
        match self.random.below(16) {
            0..=3 => self.send(side),
            4 if self.has(Fault::Break) && self.chance(4) => self.break_one(),
            5 if self.has(Fault::Lose) => self.lose(),
            6 if self.has(Fault::Gateway) => self.change_route(side),
            7 if self.chance(4) => self.dial(side),
            8 if self.has(Fault::Repeat) => self.repeat(side),
            9 if self.has(Fault::GiveUp) && self.chance(8) => self.link(side).lose("(given up)"),
            _ => self.go_on(),
        }
    }

    /// Something goes on that is no fault.
    fn go_on(&mut self) {
        let side = self.random.below(2);
        match self.random.below(12) {
            0 => self.notice(side),
            1 => self.tend(side),
            2 => self.send_more(side),
            3..=6 => self.carry(side),
            _ => self.deliver(side),
        }
    }

    /// No more faults: everything arrives.
    pub fn settle(&mut self) {
        for nth in 0..40_000 {
            self.go_on();
            if nth % 200 == 0 {
                (0..2).for_each(|side| self.ask_again(side));
                if (0..2).all(|side| self.is_done(side)) {
                    return;
                }
            }
        }
        panic!("messages do not arrive");
    }

    fn is_done(&self, at: usize) -> bool {
        let side = &self.sides[at];
        side.large.is_none() && side.link.as_ref().is_none_or(|link| link.is_empty())
    }

    /// What was sent has come, once and in order; of what a process has given up, the beginning.
    pub fn check(&mut self) {
        for at in 0..2 {
            let mut came = Vec::new();
            self.sides[1 - at].core.find_queued(|packet| {
                came.push(packet.contiguous().expect("it has no buffers").to_vec());
                None::<()>
            });
            let Side { sent, link, .. } = &self.sides[at];
            assert!(sent.starts_with(&came), "another order or other bytes from {at}");
            let is_told = link.as_ref().is_some_and(|link| link.lost().is_some());
            assert!(!is_told || self.has(Fault::GiveUp));
            assert!(is_told || came.len() == sent.len(), "{} of {}", came.len(), sent.len());
        }
    }

    pub fn open(&self, at: usize, fits: impl Fn(Role) -> bool) -> Option<Arc<Memory>> {
        let is_open = |connection: &&Connection| {
            !connection.ends[at].is_broken() && fits(connection.roles[at])
        };
        self.connections.iter().find(is_open).map(|connection| connection.ends[at].clone())
    }

    /// This side ends a connection, and knows it.
    pub fn end(&mut self, at: usize, id: u64) {
        let ended = |connection: &&mut Connection| connection.ends[at].id() == id;
        if let Some(connection) = self.connections.iter_mut().find(ended) {
            connection.ends[at].break_off();
            connection.noticed[at] = true;
            connection.under_way[1 - at].clear();
        }
    }

    // ---- the network ----

    fn any(&mut self, fits: impl Fn(&Connection) -> bool) -> Option<usize> {
        let fit: Vec<usize> =
            (0..self.connections.len()).filter(|&nth| fits(&self.connections[nth])).collect();
        (!fit.is_empty()).then(|| fit[self.random.below(fit.len())])
    }

    /// A frame leaves its process.
    fn carry(&mut self, from: usize) {
        let Some(nth) = self.any(|connection| !connection.ends[from].is_broken()) else { return };
        let connection = &mut self.connections[nth];
        if let Some(frame) = connection.ends[from].pop() {
            connection.under_way[from].push_back(frame);
        }
    }

    /// A frame comes to its process.
    fn deliver(&mut self, to: usize) {
        let has_some = |connection: &Connection| {
            !connection.under_way[1 - to].is_empty() && !connection.noticed[to]
        };
        let Some(nth) = self.any(has_some) else { return };
        let frame = self.connections[nth].under_way[1 - to].pop_front().expect("just seen");
        if self.receive(to, nth, frame).is_none() {
            let id = self.connections[nth].ends[to].id();
            self.end(to, id);
            self.ended(to, nth);
        }
    }

    /// A connection breaks: of what is under way only the beginning still comes.
    fn break_one(&mut self) {
        let breaks = |connection: &Connection| {
            connection.roles[0] != Role::Gateway && !connection.ends[0].is_broken()
        };
        let Some(nth) = self.any(breaks) else { return };
        for from in 0..2 {
            let length = self.connections[nth].under_way[from].len();
            let remain = self.random.below(length + 1);
            self.connections[nth].under_way[from].truncate(remain);
            self.connections[nth].ends[from].break_off();
        }
    }

    fn lose(&mut self) {
        let Some(nth) = self.any(|connection| connection.roles[0] == Role::Gateway) else { return };
        let under_way = &mut self.connections[nth].under_way[self.random.below(2)];
        if !under_way.is_empty() {
            let at = self.random.below(under_way.len());
            let count = 1 + self.random.below(under_way.len() - at);
            under_way.drain(at..at + count);
        }
    }

    /// A recorded `Hello` comes to this side once more. Nothing may change.
    fn repeat(&mut self, to: usize) {
        let recorded = self.sides[1 - to].recorded.len();
        if recorded == 0 {
            return;
        }
        let frame = self.sides[1 - to].recorded[self.random.below(recorded)].clone();
        let used = |link: Arc<Link<Memory>>| link.connection().map(|connection| connection.id());
        let before = used(self.link(to));
        let gateway = self.any(|connection| connection.roles[0] == Role::Gateway);
        let nth = gateway.filter(|_| self.chance(2)).unwrap_or_else(|| {
            self.connect([Role::Stranger; 2]);
            self.connections.len() - 1
        });
        let queued = self.connections[nth].ends[to].waiting();
        let answer = self.receive(to, nth, frame);
        assert_eq!(used(self.link(to)), before, "a recorded Hello changes the link's connection");
        assert_eq!(self.connections[nth].ends[to].waiting(), queued, "and is answered");
        if self.connections[nth].roles[to] == Role::Stranger {
            assert!(answer.is_none());
            self.connections.pop();
        }
    }

    /// A process sees the end of a connection, after all that has still come.
    fn notice(&mut self, at: usize) {
        let has_ended = |connection: &Connection| {
            let broken = connection.ends.iter().any(|end| end.is_broken());
            broken && !connection.noticed[at] && connection.under_way[1 - at].is_empty()
        };
        let Some(nth) = self.any(has_ended) else { return };
        let id = self.connections[nth].ends[at].id();
        self.end(at, id);
        self.ended(at, nth);
    }
}
