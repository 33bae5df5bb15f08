//! Chooses the connection for each frame; if there is none, reports the drop.

use std::time::Instant;

use super::connection::{Connection, Count, Remote};
use super::engine::Engine;
use super::flow::{Flow, Frame, Pair};
use super::poll::Id;
use super::sockets;
use super::{FOR_GATEWAY, FOR_PROCESS, HELD, HELD_OF_ONE};
use crate::frame::control::{ControlFrame, Reason, Role};
use crate::frame::{Class, FrameKind, Header};
use crate::splitmix::SplitMix;

/// Counts since the gateway's start.
#[derive(Default)]
pub struct Counts {
    pub forwarded: Count,
    /// By reason, in the order of `Reason::ALL`.
    pub dropped: [u64; 5],
    pub notices: u64,
    /// Frames that a process has sent with another process's uid or another site.
    pub spoofed: u64,
    /// Hellos that were not of this world's (not sealed with its gateway key, or not signed), were
    /// for another gateway, or were replayed.
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
    /// Act on a frame that came on the connection `from`.
    pub fn receive(&mut self, from: Id, frame: Frame) {
        let Some(connection) = self.connections.get(from) else { return };
        match connection.remote {
            Remote::Stranger => self.admit(from, frame),
            Remote::Dialed { uid, slot, number } => {
                self.receive_welcome(from, (uid, slot), number, frame);
            }
            Remote::Process(uid) => {
                let header = &frame.header;
                if header.sender != uid || header.from_site != self.codec.site {
                    self.counts.spoofed += 1;
                } else if header.receiver == self.codec.uid {
                    self.receive_control(from, frame);
                } else {
                    self.forward(frame);
                }
            }
            Remote::Gateway { .. } if frame.header.receiver == self.codec.uid => {
                self.receive_control(from, frame);
            }
            Remote::Gateway { .. } => self.forward(frame),
        }
    }

    /// A member sends a control frame to this gateway.
    fn receive_control(&mut self, from: Id, mut frame: Frame) {
        let header = frame.header;
        let Some((inner, body)) = self.codec.open(&header, &mut frame.bytes) else { return };
        match inner.kind {
            FrameKind::Hello => {
                let role = self.codec.role(&header, &inner, body);
                if role.is_some_and(|role| self.is_new(role, &header)) {
                    let welcome = self.welcome(&frame, inner.number);
                    self.send_control(from, welcome);
                }
            }
            FrameKind::Bye => {
                let its = Remote::Process(header.sender);
                if self.connections.get(from).is_some_and(|connection| connection.remote == its) {
                    self.end(from, "it left");
                }
            }
            _ => {} // a beat, or a kind of a later version
        }
    }

    /// Whether this Hello is no replay.
    fn is_new(&mut self, role: Role, header: &Header) -> bool {
        let (of_processes, of_gateways) = &mut self.counters;
        let counters = if role == Role::Process { of_processes } else { of_gateways };
        counters.is_new(header.sender, header.counter)
    }

    fn welcome(&mut self, hello: &Frame, number: u64) -> ControlFrame {
        let header = &hello.header;
        self.codec.seal(FrameKind::Welcome, header.sender, header.from_site, number, b"")
    }

    /// Send a control frame of this gateway next, unscheduled.
    pub fn send_control(&mut self, to: Id, frame: ControlFrame) {
        if let Some(connection) = self.connections.get_mut(to) {
            if connection.waiting() > 2 * FOR_PROCESS {
                return self.end(to, "it asks for many answers and reads none");
            }
            connection.queue(Frame::new(frame.header, frame.bytes, Id::NONE, Instant::now()));
            self.write_later(to);
        }
    }

    /// The first frame of a connection must be a Hello.
    fn admit(&mut self, id: Id, mut frame: Frame) {
        let header = frame.header;
        if header.receiver != self.codec.uid {
            self.counts.misdirected += 1;
            return self.end(id, "its Hello is for another gateway");
        }
        let opened = self.codec.open(&header, &mut frame.bytes);
        let Some((inner, role)) =
            opened.and_then(|(inner, body)| Some((inner, self.codec.role(&header, &inner, body)?)))
        else {
            self.counts.foreign += 1;
            let address =
                self.connections.get(id).map(|connection| connection.address.ip().to_string());
            self.counts.last_foreign = address;
            return self.end(id, "its Hello does not show this world's key");
        };
        if !self.is_new(role, &header) {
            self.counts.replayed += 1;
            return self.end(id, "its Hello is a replay");
        }
        self.strangers.remove(id);
        let welcome = self.welcome(&frame, inner.number);
        match role {
            Role::Process if header.from_site != self.codec.site => {
                let why =
                    format!("this is a gateway of site {:?}, and not of yours", self.options.site);
                let to = (header.sender, header.from_site);
                let broken = self.codec.seal(FrameKind::Broken, to.0, to.1, 0, why.as_bytes());
                self.send_control(id, broken);
                self.write(id);
                self.end(id, "it is of another site");
            }
            Role::Process => {
                let Some(connection) = self.connections.get_mut(id) else { return };
                connection.remote = Remote::Process(header.sender);
                sockets::prepare_process(&connection.stream);
                let before = self.processes.insert(header.sender, id);
                self.send_control(id, welcome);
                if let Some(before) = before {
                    self.end(before, "its process has made another connection");
                }
                self.resume_to(header.sender);
            }
            Role::Gateway(slot) => self.admit_gateway(id, &header, slot.into(), welcome),
        }
    }

    fn forward(&mut self, mut frame: Frame) {
        let (header, pair) = (frame.header, frame.pair());
        // Drops of a gateway's flow, such as its Dropped frames, are not reported.
        let of_gateway = self.is_gateway(header.sender);
        let flow = if of_gateway { None } else { self.flows.record(&frame) };
        let current = flow.as_ref().and_then(|flow| flow.to);
        if let Some(reason) = flow.and_then(|flow| flow.useless(header.class)) {
            return self.drop_frame(pair, reason);
        }
        if header.class == Class::Resume {
            self.withdraw(current, pair);
        }
        // Its sender had no answer: perhaps the connection that the flow uses leads nowhere.
        let current = current.filter(|_| header.class != Class::Resume);
        if header.hops == 0 {
            return self.drop_frame(pair, Reason::Loop);
        }
        frame.hop();
        if let Some(&to) = self.processes.get(&header.receiver) {
            return self.deliver(to, frame);
        }
        let current = current.filter(|&to| self.is_established(to));
        let route_onward = || self.route_onward(pair, header.to_site, self.is_sibling(frame.from));
        let Some(to) = current.or_else(route_onward) else {
            let is_local = header.to_site == self.codec.site;
            return self.drop_frame(pair, if is_local { Reason::Unknown } else { Reason::NoRoute });
        };
        if let Some(flow) = self.flows.get_mut(pair) {
            flow.to = Some(to);
        }
        self.schedule(to, frame);
    }

    fn deliver(&mut self, to: Id, frame: Frame) {
        let Some(connection) = self.connections.get_mut(to) else { return };
        if connection.waiting() + frame.size() > FOR_PROCESS {
            connection.overflowed = true;
            return self.drop_frame(frame.pair(), Reason::Full);
        }
        self.counts.forwarded.add(frame.size());
        if let Some(wide) = self.connections.wide_mut(frame.from) {
            wide.used = frame.arrived_at;
        }
        if let Some(connection) = self.connections.get_mut(to) {
            connection.queue(frame);
        }
        self.write_later(to);
    }

    /// Queue a frame for the wide area.
    fn schedule(&mut self, to: Id, frame: Frame) {
        let (from, bytes, arrived_at) = (frame.from, frame.size(), frame.arrived_at);
        let limit = self.hold_limit();
        let of_process = |connection: &Connection| matches!(connection.remote, Remote::Process(_));
        let held_up = self.connections.get(from).is_some_and(of_process);
        let Some(wide) = self.connections.wide_mut(to) else { return };
        if !held_up && wide.schedule.bytes() + bytes > HELD + FOR_GATEWAY {
            return self.drop_frame(frame.pair(), Reason::Full);
        }
        self.counts.forwarded.add(bytes);
        wide.used = arrived_at;
        wide.schedule.push(frame, &self.weights);
        self.write_later(to);
        if let Some(connection) = self.connections.get_mut(from) {
            connection.held += bytes;
            // TCP holds up this sender only.
            connection.paused = held_up && connection.held > limit;
        }
    }

    /// Remove the messages of a flow that wait for another gateway: its sender sends them again.
    fn withdraw(&mut self, to: Option<Id>, pair: Pair) {
        let Some(wide) = to.and_then(|to| self.connections.wide_mut(to)) else { return };
        for frame in wide.schedule.withdraw(pair, &self.weights) {
            self.release(frame.from, frame.size());
        }
    }

    /// Bytes of one process's frames that may wait for the wide area.
    pub fn hold_limit(&self) -> usize {
        (HELD / self.processes.len().max(1)).clamp(HELD_OF_ONE.0, HELD_OF_ONE.1)
    }

    /// Whether frames arrive over this connection to another gateway, as far as is known.
    fn is_established(&self, id: Id) -> bool {
        let Some(connection) = self.connections.get(id) else { return false };
        let is_gateway = matches!(connection.remote, Remote::Gateway { .. });
        is_gateway && connection.wide.as_ref().is_some_and(|wide| !wide.silent)
    }

    fn is_sibling(&self, id: Id) -> bool {
        self.connections.wide(id).is_some_and(|wide| wide.sibling)
    }

    /// The connection for a flow to this site: directly, or to another gateway of this site, which
    /// may know the receiver or have a route. `from_sibling`: that other gateway has sent the
    /// frame.
    pub fn route_onward(&self, pair: Pair, site: u32, from_sibling: bool) -> Option<Id> {
        let this_site = self.codec.site;
        let direct = if site == this_site { None } else { self.route_to_site(pair, site) };
        direct.or_else(|| if from_sibling { None } else { self.route_to_site(pair, this_site) })
    }

    /// A connection to a gateway of this site. A hash of the pair chooses among the established
    /// ones, so flows spread, and only the flows of a lost or new connection move.
    fn route_to_site(&self, pair: Pair, site: u32) -> Option<Id> {
        let established = |uid: &u128| {
            let ups = self.peers[uid].slots.iter().enumerate();
            let ups = ups.filter_map(|(nth, slot)| {
                Some((nth, slot.up.filter(|&id| self.is_established(id))?))
            });
            ups.collect::<Vec<_>>()
        };
        let of_site = self.peers.iter().filter(|(_, peer)| peer.site == site);
        let (_, ups) = of_site
            .map(|(uid, _)| (uid, established(uid)))
            .filter(|(_, ups)| !ups.is_empty())
            .max_by_key(|(uid, _)| mixed(pair, **uid))?;
        let chosen = ups.into_iter().max_by_key(|(nth, _)| mixed(pair, *nth as u128));
        chosen.map(|(_, id)| id)
    }

    /// (Somebody with the gateway key may call itself a gateway with the uid of a process.)
    pub fn is_gateway(&self, uid: u128) -> bool {
        let is_listed = self.peers.contains_key(&uid) && !self.processes.contains_key(&uid);
        uid == self.codec.uid || is_listed
    }

    // ---- drops ----

    fn drop_frame(&mut self, pair: Pair, reason: Reason) {
        self.counts.drop(reason, 1);
        self.notify(pair, reason);
    }

    /// Notify the sender of a flow, unless it was notified too recently.
    pub fn notify(&mut self, pair: Pair, reason: Reason) {
        if self.flows.record_drop(pair, reason, Instant::now()) {
            self.send_dropped(pair, reason);
        }
    }

    pub fn notify_all(&mut self, pairs: Vec<Pair>, reason: Reason) {
        for pair in pairs {
            self.notify(pair, reason);
        }
    }

    pub fn send_dropped(&mut self, pair: Pair, reason: Reason) {
        let Some(flow) = self.flows.get_mut(pair) else { return };
        let (from, site) = (flow.from, flow.from_site);
        self.counts.notices += 1;
        let frame = self.codec.dropped(pair, site, reason);
        if let Some(&to) = self.processes.get(&pair.sender) {
            return self.send_control(to, frame);
        }
        // Back to the connection that the flow came on, which leads to the sender; otherwise to any
        // gateway of the sender's site.
        let back = Some(from).filter(|&id| self.is_established(id));
        let Some(to) = back.or_else(|| self.route_to_site(pair, site)) else { return };
        self.schedule(to, Frame::new(frame.header, frame.bytes, Id::NONE, Instant::now()));
    }

    /// There is room for this process (again): senders that have lost something to it resume.
    pub fn resume_to(&mut self, receiver: u128) {
        let lost = self.flows.lost(|pair, _| pair.receiver == receiver);
        self.notify_all(lost, Reason::PathBroke);
    }

    /// There is a route to this site (again). If it is this site, another gateway is up, which may
    /// have routes to any.
    pub fn resume_site(&mut self, site: u32) {
        let any = site == self.codec.site;
        let lost = self.flows.lost(|_, flow: &Flow| any || flow.to_site == site);
        self.notify_all(lost, Reason::PathBroke);
    }
}

/// A pseudorandom number for each pair and choice.
fn mixed(pair: Pair, choice: u128) -> u64 {
    let mut mix = 0u64;
    for number in [pair.sender, pair.receiver, choice] {
        for half in [number as u64, (number >> 64) as u64] {
            mix = SplitMix::new(mix ^ half).next();
        }
    }
    mix
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
            let best = |choices: &[u128]| {
                *choices.iter().max_by_key(|&&choice| mixed(pair, choice)).unwrap()
            };
            let of_four = best(&[0, 1, 2, 3]);
            chosen[of_four as usize] += 1;
            moved += usize::from(of_four != 3 && best(&[0, 1, 2]) != of_four);
        }
        assert!(chosen.iter().all(|count| (150..350).contains(count)), "{chosen:?}");
        assert_eq!(moved, 0, "only those of the one that went");
    }
}
