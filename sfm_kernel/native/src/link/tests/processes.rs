//! Two processes on a network: what `net` decides about connections is played here.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::network::{Network, Role};
use crate::clock::monotonic as now;
use crate::core::Core;
use crate::frame::seal::Secret;
use crate::frame::{FrameKind, Header, LARGEST};
use crate::link::{Effect, Greeting, Identity, Link};
use crate::packet::{self, Builder, Gather};
use crate::wire::memory::Memory;
use crate::wire::Wire;

pub struct Side {
    pub core: Arc<Core>,
    identity: Arc<Identity>,
    pub link: Option<Arc<Link<Memory>>>,
    /// The link has had a connection that was confirmed.
    broke: bool,
    /// Its frames `Hello` that have come.
    pub recorded: Vec<Vec<u8>>,
    /// All packets that were sent.
    pub sent: Vec<Vec<u8>>,
    /// The packet that is being sent in fragments, and how much of it has gone.
    pub large: Option<(Vec<u8>, usize)>,
}

impl Side {
    pub fn new(uid: u128) -> Side {
        Side {
            core: Arc::new(Core::new(None, None).unwrap()),
            identity: Arc::new(Identity {
                uid,
                site: 0,
                address: "tcp://127.0.0.1:1".to_owned(),
                secret: Secret::of_world(b"sixteen bytes..."),
            }),
            link: None,
            broke: false,
            recorded: Vec::new(),
            sent: Vec::new(),
            large: None,
        }
    }
}

fn packet(number: usize, length: usize) -> Vec<u8> {
    let mut builder = Builder::new();
    builder.attribute("n", packet::Kind::Int, &[&(number as u64).to_le_bytes()]).unwrap();
    builder.attribute("x", packet::Kind::Bytes, &[&vec![7; length]]).unwrap();
    // SAFETY: the packet has no buffers outside of itself that would have to live.
    unsafe { builder.finish() }.head().to_vec()
}

impl Network {
    pub(super) fn link(&mut self, at: usize) -> Arc<Link<Memory>> {
        let uid = self.sides[1 - at].identity.uid;
        let side = &mut self.sides[at];
        let new = || {
            let (core, identity) = (side.core.clone(), side.identity.clone());
            Arc::new(Link::new(core, identity, uid, 0, "tcp://127.0.0.1:1"))
        };
        side.link.get_or_insert_with(new).clone()
    }

    pub(super) fn send(&mut self, at: usize) {
        let number = self.sides[at].sent.len();
        if self.sides[at].large.is_some() {
            return self.send_more(at);
        }
        let link = self.link(at);
        if self.chance(8) {
            let length = LARGEST + self.random.below(2 * LARGEST);
            self.sides[at].large = Some((packet(number, length), 0));
            return;
        }
        let packet = packet(number, self.random.below(100));
        match link.send(&Gather::of(&packet), false) {
            true => self.sides[at].sent.push(packet),
            false => assert!(link.lost().is_some()),
        }
    }

    /// Go on with a packet in fragments, or give it up.
    pub(super) fn send_more(&mut self, at: usize) {
        let Some((packet, mut done)) = self.sides[at].large.take() else { return };
        let link = self.link(at);
        if done > 0 && self.chance(4) {
            return link.abort();
        }
        if !link.send_fragment(&Gather::of(&packet), &mut done, false) {
            return assert!(link.lost().is_some());
        }
        if done < packet.len() {
            self.sides[at].large = Some((packet, done));
        } else {
            self.sides[at].sent.push(packet);
        }
    }

    /// What a network thread does now and then: acknowledge, and connect.
    pub(super) fn tend(&mut self, at: usize) {
        let Some(link) = self.sides[at].link.clone() else { return };
        link.send_ack();
        if link.connection().is_some() || link.lost().is_some() {
            return;
        }
        if let Some(gateway) = self.open(at, |role| role == Role::Gateway) {
            link.use_connection(gateway, self.sides[at].broke);
        } else {
            self.dial(at);
        }
    }

    /// What a monitor does when an answer is late.
    pub(super) fn ask_again(&mut self, at: usize) {
        if let Some(link) = self.sides[at].link.clone().filter(|link| !link.is_empty()) {
            link.check_losses();
        }
    }

    pub(super) fn dial(&mut self, at: usize) {
        let Some(link) = self.sides[at].link.clone() else { return };
        let mut roles = [Role::Stranger; 2];
        roles[at] = Role::Dialed;
        self.connect(roles);
        let end = self.connections.last().expect("just made").ends[at].clone();
        let former = link.connection();
        link.use_connection(end, self.sides[at].broke);
        if let Some(former) = former.filter(|former| !former.is_shared()) {
            self.end(at, former.id());
        }
    }

    /// Between a gateway and a direct connection, while nothing is under way.
    pub(super) fn change_route(&mut self, at: usize) {
        let Some(link) = self.sides[at].link.clone().filter(|link| link.is_empty()) else { return };
        let gateway = self.open(at, |role| role == Role::Gateway).expect("there is one");
        let former = link.connection();
        if former.as_ref().is_some_and(|former| former.id() == gateway.id()) {
            return self.dial(at);
        }
        link.use_connection(gateway, self.sides[at].broke);
        if let Some(former) = former {
            self.end(at, former.id());
        }
    }

    pub(super) fn ended(&mut self, at: usize, nth: usize) {
        let end = self.connections[nth].ends[at].clone();
        self.sides[at].broke |= end.is_confirmed();
        let Some(link) = self.sides[at].link.clone() else { return };
        if link.drop_connection(end.id()) && link.lost().is_none() {
            let confirmed = self.connections.iter().find(|connection| {
                let end = &connection.ends[at];
                connection.roles[at] == Role::Peer && !end.is_broken() && end.is_confirmed()
            });
            if let Some(other) = confirmed.map(|connection| connection.ends[at].clone()) {
                link.use_connection(other, true);
            }
        }
    }

    /// None: hang up.
    pub(super) fn receive(&mut self, at: usize, nth: usize, mut frame: Vec<u8>) -> Option<()> {
        let end = self.connections[nth].ends[at].clone();
        let role = self.connections[nth].roles[at];
        let recorded = if frame.len() < 512 { frame.clone() } else { Vec::new() };
        let header = Header::read(&frame).expect("frames have headers");
        let link = self.link(at);
        let (inner, body) = link.opener.open(&header, &mut frame).expect("sealed for this process");
        let is_hello = inner.kind == FrameKind::Hello;
        if is_hello {
            self.sides[1 - at].recorded.push(recorded);
        }
        match role {
            Role::Stranger => {
                if !is_hello || !link.note_hello(&header) {
                    return None;
                }
                end.confirmed.store(true, Ordering::Relaxed);
                self.connections[nth].roles[at] = Role::Peer;
                match link.greet(&end, inner.flag) {
                    Greeting::TooLate => return Some(()),
                    Greeting::Used(Some(former)) if !former.is_shared() => {
                        self.end(at, former.id());
                    }
                    _ => {}
                }
            }
            Role::Gateway => {
                if is_hello && !link.greet_through(&end, &header) {
                    return Some(());
                }
            }
            Role::Dialed | Role::Peer => {
                end.confirmed.store(true, Ordering::Relaxed);
                if is_hello {
                    link.note_hello(&header);
                }
            }
        }
        match link.arrived(&end, &inner, body, now()) {
            Effect::None | Effect::AckPending => Some(()),
            Effect::Damaged(why) => panic!("{why}"),
            Effect::Left if end.is_shared() => Some(()),
            Effect::Left | Effect::GivenUp => None,
        }
    }
}
