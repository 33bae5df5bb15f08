//! Where each frame goes; and if it goes nowhere, who is told.

use std::time::Instant;

use super::connection::{Connection, Count, Whose};
use super::engine::Engine;
use super::flow::{Flow, Frame, Pair};
use super::poll::Id;
use super::sockets;
use super::{FOR_GATEWAY, FOR_PROCESS, HELD, HELD_OF_ONE};
use crate::net::control::{role_of, ControlFrame, Reason, Role};
use crate::net::frame::{Class, Kind};

/// What has happened so far.
#[derive(Default)]
pub struct Counts {
    pub forwarded: Count,
    /// By reason, in the order of `Reason::ALL`.
    pub dropped: [u64; 5],
    pub told: u64,
    /// Frames that a process has sent in the name of another one, or of another site.
    pub spoofed: u64,
    /// Hellos that were not sealed with this world's gateway key, were for another gateway, or came
    /// a second time.
    pub foreign: u64,
    pub misdirected: u64,
    pub replayed: u64,
    pub last_foreign: Option<String>,
}

impl Counts {
    pub fn drop(&mut self, reason: Reason, frames: usize) {
        self.dropped[reason as usize - 1] += frames as u64;
    }
}

impl Engine {
    /// A frame has come through the connection `from`.
    pub fn take(&mut self, from: Id, frame: Frame) {
        let Some(one) = self.connections.get(from) else { return };
        match one.whose {
            Whose::Stranger => self.admit(from, frame),
            Whose::Dialed { uid, slot, number } => {
                self.hear_welcome(from, (uid, slot), number, frame);
            }
            Whose::Process(uid) => {
                let header = &frame.header;
                if header.sender != uid || header.from_site != self.voice.site {
                    self.counts.spoofed += 1;
                } else if header.receiver == self.voice.uid {
                    self.hear(from, frame);
                } else {
                    self.forward(frame);
                }
            }
            Whose::Gateway { .. } if frame.header.receiver == self.voice.uid => {
                self.hear(from, frame);
            }
            Whose::Gateway { .. } => self.forward(frame),
        }
    }

    /// A member says something to this gateway.
    fn hear(&mut self, from: Id, mut frame: Frame) {
        let header = frame.header;
        let Some((inner, _)) = self.voice.open(&header, &mut frame.bytes) else { return };
        match inner.kind {
            Kind::Hello if self.counters.is_new(header.sender, header.counter) => {
                let welcome = self.welcome(&frame, inner.number);
                self.queue(from, welcome);
            }
            Kind::Bye => {
                let its = Whose::Process(header.sender);
                if self.connections.get(from).is_some_and(|one| one.whose == its) {
                    self.end(from, "it left");
                }
            }
            _ => {} // a beat, or what a later version says
        }
    }

    fn welcome(&mut self, hello: &Frame, number: u64) -> ControlFrame {
        let header = &hello.header;
        self.voice.say(Kind::Welcome, header.sender, header.from_site, number, b"")
    }

    /// What we say goes out next, as it is.
    pub fn queue(&mut self, to: Id, said: ControlFrame) {
        if let Some(one) = self.connections.get_mut(to) {
            if one.waiting() > 2 * FOR_PROCESS {
                return self.end(to, "it has us say much, and reads nothing");
            }
            one.queue(Frame::new(said.header, said.bytes, Id::NONE, Instant::now()));
            self.write_later(to);
        }
    }

    /// The first frame of a connection: a Hello, or its end.
    fn admit(&mut self, id: Id, mut frame: Frame) {
        let header = frame.header;
        if header.receiver != self.voice.uid {
            self.counts.misdirected += 1;
            return self.end(id, "its Hello is for another gateway");
        }
        let opened = self.voice.open(&header, &mut frame.bytes);
        let Some((inner, role)) = opened.and_then(|(one, body)| Some((one, role_of(&one, body)?)))
        else {
            self.counts.foreign += 1;
            let address = self.connections.get(id).map(|one| one.address.ip().to_string());
            self.counts.last_foreign = address;
            return self.end(id, "its Hello is not sealed with this world's gateway key");
        };
        if !self.counters.is_new(header.sender, header.counter) {
            self.counts.replayed += 1;
            return self.end(id, "its Hello was said before");
        }
        self.strangers.gone(id);
        let welcome = self.welcome(&frame, inner.number);
        match role {
            Role::Process if header.from_site != self.voice.site => {
                let why =
                    format!("this is a gateway of site {:?}, and not of yours", self.options.site);
                let to = (header.sender, header.from_site);
                let broken = self.voice.say(Kind::Broken, to.0, to.1, 0, why.as_bytes());
                self.queue(id, broken);
                self.write(id);
                self.end(id, "it is of another site");
            }
            Role::Process => {
                let Some(one) = self.connections.get_mut(id) else { return };
                one.whose = Whose::Process(header.sender);
                sockets::prepare_process(&one.stream);
                let before = self.processes.insert(header.sender, id);
                self.queue(id, welcome);
                if let Some(before) = before {
                    self.end(before, "its process has made another one");
                }
                self.open_to(header.sender);
            }
            Role::Gateway(slot) => self.admit_gateway(id, &header, slot.into(), welcome),
        }
    }

    /// Pass a frame on.
    fn forward(&mut self, mut frame: Frame) {
        let (header, pair) = (frame.header, frame.pair());
        // A flow of a gateway, a Dropped that is: of what happens to it nobody is told.
        let of_gateway = self.is_gateway(header.sender);
        let flow = if of_gateway { None } else { self.flows.note(&frame) };
        let kept = flow.as_ref().and_then(|flow| flow.to);
        if let Some(reason) = flow.and_then(|flow| flow.useless(header.class)) {
            return self.drop_frame(pair, reason);
        }
        if header.class == Class::Resume {
            self.withdraw(kept, pair);
        }
        if header.hops == 0 {
            return self.drop_frame(pair, Reason::Loop);
        }
        frame.hop();
        if let Some(&to) = self.processes.get(&header.receiver) {
            return self.deliver(to, frame);
        }
        let kept = kept.filter(|&to| self.stands(to));
        let onward = || self.onward(pair, header.to_site, self.is_sibling(frame.from));
        let Some(to) = kept.or_else(onward) else {
            let is_own = header.to_site == self.voice.site;
            return self.drop_frame(pair, if is_own { Reason::Unknown } else { Reason::NoRoute });
        };
        if let Some(flow) = self.flows.get_mut(pair) {
            flow.to = Some(to);
        }
        self.send(to, frame);
    }

    fn deliver(&mut self, to: Id, frame: Frame) {
        let Some(one) = self.connections.get_mut(to) else { return };
        if one.waiting() + frame.size() > FOR_PROCESS {
            one.overflowed = true;
            return self.drop_frame(frame.pair(), Reason::Full);
        }
        self.counts.forwarded.add(frame.size());
        if let Some(wide) = self.connections.get_mut(frame.from).and_then(|one| one.wide.as_mut()) {
            wide.used = frame.came;
        }
        if let Some(one) = self.connections.get_mut(to) {
            one.queue(frame);
        }
        self.write_later(to);
    }

    /// A frame waits for its turn to cross the wide area.
    fn send(&mut self, to: Id, frame: Frame) {
        let (from, bytes, came) = (frame.from, frame.size(), frame.came);
        let most = self.may_hold();
        let of_process = |one: &Connection| matches!(one.whose, Whose::Process(_));
        let held_up = self.connections.get(from).is_some_and(of_process);
        let Some(wide) = self.connections.get_mut(to).and_then(|one| one.wide.as_mut()) else {
            return;
        };
        if !held_up && wide.schedule.bytes() + bytes > HELD + FOR_GATEWAY {
            return self.drop_frame(frame.pair(), Reason::Full);
        }
        self.counts.forwarded.add(bytes);
        wide.used = came;
        wide.schedule.push(frame, &self.weights);
        self.write_later(to);
        if let Some(one) = self.connections.get_mut(from) {
            one.held += bytes;
            // Its sender is held up by TCP, and nobody else.
            one.paused = held_up && one.held > most;
        }
    }

    /// Messages of a flow that wait for a connection to another gateway are sent again.
    fn withdraw(&mut self, to: Option<Id>, pair: Pair) {
        let one = to.and_then(|to| self.connections.get_mut(to));
        let Some(wide) = one.and_then(|one| one.wide.as_mut()) else { return };
        for frame in wide.schedule.withdraw(pair, &self.weights) {
            self.release(frame.from, frame.size());
        }
    }

    /// Bytes of one process's frames that may wait for the wide area.
    pub fn may_hold(&self) -> usize {
        (HELD / self.processes.len().max(1)).clamp(HELD_OF_ONE.0, HELD_OF_ONE.1)
    }

    /// Whether what is sent over this connection to another gateway arrives, as far as we know.
    fn stands(&self, id: Id) -> bool {
        let Some(one) = self.connections.get(id) else { return false };
        let is_gateway = matches!(one.whose, Whose::Gateway { .. });
        is_gateway && one.wide.as_ref().is_some_and(|wide| !wide.silent)
    }

    fn is_sibling(&self, id: Id) -> bool {
        let wide = self.connections.get(id).and_then(|one| one.wide.as_ref());
        wide.is_some_and(|wide| wide.sibling)
    }

    /// The connection that a flow to this site takes: there, or to another gateway of our own site,
    /// which may know the receiver, or have a way. `asked`: it is that one who asks.
    pub fn onward(&self, pair: Pair, site: u32, asked: bool) -> Option<Id> {
        let own = self.voice.site;
        let there = if site == own { None } else { self.way(pair, site) };
        there.or_else(|| if asked { None } else { self.way(pair, own) })
    }

    /// A connection to a gateway of this site. Of those that stand a hash of the pair chooses,
    /// so that flows spread, and only those of one that goes or comes have to move.
    fn way(&self, pair: Pair, site: u32) -> Option<Id> {
        let standing = |uid: &u128| {
            let ups = self.peers[uid].slots.iter().enumerate();
            let ups =
                ups.filter_map(|(nth, slot)| Some((nth, slot.up.filter(|&id| self.stands(id))?)));
            ups.collect::<Vec<_>>()
        };
        let of_site = self.peers.iter().filter(|(_, peer)| peer.site == site);
        let (_, ups) = of_site
            .map(|(uid, _)| (uid, standing(uid)))
            .filter(|(_, ups)| !ups.is_empty())
            .max_by_key(|(uid, _)| mixed(pair, **uid))?;
        let best = ups.into_iter().max_by_key(|(nth, _)| mixed(pair, *nth as u128));
        best.map(|(_, id)| id)
    }

    pub fn is_gateway(&self, uid: u128) -> bool {
        uid == self.voice.uid || self.peers.contains_key(&uid)
    }

    // ---- what was dropped ----

    fn drop_frame(&mut self, pair: Pair, reason: Reason) {
        self.counts.drop(reason, 1);
        self.tell(pair, reason);
    }

    /// Tell the sender of a flow, if it is to be told now.
    pub fn tell(&mut self, pair: Pair, reason: Reason) {
        if self.flows.tell(pair, reason, Instant::now()) {
            self.say_dropped(pair, reason);
        }
    }

    pub fn tell_all(&mut self, pairs: Vec<Pair>, reason: Reason) {
        for pair in pairs {
            self.tell(pair, reason);
        }
    }

    pub fn say_dropped(&mut self, pair: Pair, reason: Reason) {
        let Some(flow) = self.flows.get_mut(pair) else { return };
        let (from, site) = (flow.from, flow.from_site);
        self.counts.told += 1;
        let said = self.voice.dropped(pair, site, reason);
        if let Some(&to) = self.processes.get(&pair.sender) {
            return self.queue(to, said);
        }
        // To whom it came from, who is connected to the sender; else to any gateway of that site.
        let back = Some(from).filter(|&id| self.stands(id));
        let Some(to) = back.or_else(|| self.way(pair, site)) else { return };
        self.send(to, Frame::new(said.header, said.bytes, Id::NONE, Instant::now()));
    }

    /// There is room for this process (again): who has lost something on the way to it goes on.
    pub fn open_to(&mut self, receiver: u128) {
        let lost = self.flows.lost(|pair, _| pair.receiver == receiver);
        self.tell_all(lost, Reason::PathBroke);
    }

    /// There is a way to this site (again); to the own one: another gateway, which may have some.
    pub fn open_site(&mut self, site: u32) {
        let any = site == self.voice.site;
        let lost = self.flows.lost(|_, flow: &Flow| any || flow.to_site == site);
        self.tell_all(lost, Reason::PathBroke);
    }
}

/// A number for each pair and choice that looks like chance (the finalizer of splitmix64).
fn mixed(pair: Pair, choice: u128) -> u64 {
    let mut all = 0u64;
    for number in [pair.sender, pair.receiver, choice] {
        for half in [number as u64, (number >> 64) as u64] {
            all = (all ^ half).wrapping_add(0x9e37_79b9_7f4a_7c15);
            all = (all ^ (all >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            all = (all ^ (all >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            all ^= all >> 31;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_spread_over_their_choices_and_stay() {
        let mut chosen = [0; 4];
        let mut moved = 0;
        for sender in 0..1000 {
            let pair = Pair { sender, receiver: 1 << 100 };
            let best =
                |choices: &[u128]| *choices.iter().max_by_key(|&&one| mixed(pair, one)).unwrap();
            let of_four = best(&[0, 1, 2, 3]);
            chosen[of_four as usize] += 1;
            moved += usize::from(of_four != 3 && best(&[0, 1, 2]) != of_four);
        }
        assert!(chosen.iter().all(|count| (150..350).contains(count)), "{chosen:?}");
        assert_eq!(moved, 0, "only those of the one that went");
    }
}
