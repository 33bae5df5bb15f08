//! The other gateways: makes, checks and replaces connections to them.
//!
//! Of two gateways the one with the smaller uid dials. If there is no connection after
//! `DIAL_ANYWAY_AFTER`, the other one dials too: the path may be closed in one direction. While a
//! connection is silent, the gateway dials every second, and replaces it as soon as a new one is
//! established: that is faster than TCP, which doubles its pause after each try. What was in the
//! old connection is lost, and the gateway reports it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::connection::{Connection, Remote};
use super::engine::Engine;
use super::flow::Frame;
use super::handle::{Listed, MOST_CONNECTIONS};
use super::poll::Id;
use super::sockets;
use super::wide::Wide;
use crate::frame::control::{ControlFrame, Reason, Role};
use crate::frame::{site_number, FrameKind, Header};

const DIAL_ANYWAY_AFTER: Duration = Duration::from_secs(2);
const DIAL_EVERY: Duration = Duration::from_secs(1);
/// Time within which a connection must be established.
const DIAL_LIMIT: Duration = Duration::from_secs(4);

pub struct Peer {
    /// Empty if only the site's number is known.
    pub site_name: String,
    pub site: u32,
    pub address: Option<SocketAddr>,
    /// The directory lists it.
    pub listed: bool,
    pub slots: Vec<Slot>,
    /// Why it cannot be reached, and since when; None if it can.
    pub trouble: Option<(String, Instant)>,
}

/// One of the connections to a gateway.
pub struct Slot {
    pub up: Option<Id>,
    dialing: Vec<Id>,
    next: Instant,
    /// Since when there is no connection.
    down: Instant,
}

impl Slot {
    fn new() -> Slot {
        let now = Instant::now();
        Slot { up: None, dialing: Vec::new(), next: now, down: now }
    }
}

impl Peer {
    fn new(site: u32) -> Peer {
        let (site_name, slots) = (String::new(), Vec::new());
        Peer { site_name, site, address: None, listed: false, slots, trouble: None }
    }

    fn slot(&mut self, nth: usize) -> &mut Slot {
        while self.slots.len() <= nth {
            self.slots.push(Slot::new());
        }
        &mut self.slots[nth]
    }
}

impl Engine {
    /// The directory's list has changed.
    pub fn set_peers(&mut self, listed: Vec<Listed>) {
        for peer in self.peers.values_mut() {
            peer.listed = false;
        }
        for gateway in listed {
            if gateway.uid == self.codec.uid {
                continue;
            }
            let site = site_number(&gateway.site);
            let peer = self.peers.entry(gateway.uid).or_insert_with(|| Peer::new(site));
            let address = Some(gateway.address);
            (peer.site_name, peer.site, peer.address, peer.listed) =
                (gateway.site, site, address, true);
            let count = if site == self.codec.site { 1 } else { self.choice.connections };
            peer.slot(usize::from(count) - 1);
        }
        self.forget_unlisted();
        self.dial_due(Instant::now());
    }

    /// Forget gateways that are no longer listed and have no connection.
    fn forget_unlisted(&mut self) {
        self.peers.retain(|_, peer| {
            peer.listed
                || peer.slots.iter().any(|slot| slot.up.is_some() || !slot.dialing.is_empty())
        });
    }

    fn dial_due(&mut self, now: Instant) {
        let mut due = Vec::new();
        for (&uid, peer) in &mut self.peers {
            // The directory may have lost it for the same reason as this gateway.
            let is_known = peer.listed || peer.slots.iter().any(|slot| slot.up.is_some());
            let Some(address) = peer.address.filter(|_| is_known) else { continue };
            for (nth, slot) in peer.slots.iter_mut().enumerate() {
                let silent = slot
                    .up
                    .is_some_and(|up| self.connections.wide(up).is_some_and(|wide| wide.silent));
                let may_dial = self.codec.uid < uid || now >= slot.down + DIAL_ANYWAY_AFTER;
                if (silent || slot.up.is_none() && may_dial) && now >= slot.next {
                    slot.next = now + DIAL_EVERY;
                    due.push((uid, peer.site, nth, address));
                }
            }
        }
        for (uid, site, nth, address) in due {
            self.dial(uid, site, nth, &address);
        }
    }

    fn dial(&mut self, uid: u128, site: u32, slot: usize, address: &SocketAddr) {
        let stream = match sockets::connect(address, self.options.mptcp) {
            Ok(stream) => stream,
            Err(error) => return self.note_trouble(uid, error.to_string()),
        };
        let number = self.codec.next_counter();
        let wide = self.wide(&stream, true, site);
        let id = self.add_connection(stream, *address, Remote::Dialed { uid, slot, number });
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.wide = Some(wide);
        let hello = self.codec.hello(Role::Gateway(slot as u8), uid, site, number);
        self.send_control(id, hello);
        if let Some(peer) = self.peers.get_mut(&uid) {
            peer.slot(slot).dialing.push(id);
        }
    }

    /// The state of a connection to a gateway of `site`.
    fn wide(&self, stream: &std::net::TcpStream, dialed: bool, site: u32) -> Box<Wide> {
        let sibling = site == self.codec.site;
        let mut wide = Wide::new(self.options.scheduler, dialed, sibling);
        sockets::prepare(stream);
        if !sibling {
            sockets::prepare_wide(stream, &self.choice.algorithm);
            wide.asked = self.choice.algorithm.clone();
        }
        Box::new(wide)
    }

    /// Divide the rate for a gateway among all connections to it, whichever side made them.
    fn share_pacing(&mut self, uid: u128) {
        let (Some(rate), Some(peer)) = (self.options.pacing, self.peers.get(&uid)) else { return };
        let each = (rate / peer.slots.len() as u64).max(1);
        for id in peer.slots.iter().filter_map(|slot| slot.up) {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            if let Some(wide) = connection.wide.as_mut().filter(|wide| !wide.sibling) {
                wide.given.pacing = sockets::pace(&connection.stream, each);
            }
        }
    }

    fn note_trouble(&mut self, uid: u128, why: String) {
        if let Some(peer) = self.peers.get_mut(&uid) {
            let since = peer.trouble.take().map_or_else(Instant::now, |(_, since)| since);
            peer.trouble = Some((why, since));
        }
    }

    /// A gateway has made this connection and has said Hello.
    pub fn admit_gateway(&mut self, id: Id, header: &Header, nth: usize, welcome: ControlFrame) {
        let (uid, site) = (header.sender, header.from_site);
        if uid == self.codec.uid || nth >= usize::from(MOST_CONNECTIONS) {
            return self.end(id, "it is this gateway's own connection");
        }
        let slot = self.peers.entry(uid).or_insert_with(|| Peer::new(site)).slot(nth);
        // If both gateways have dialed at once, both keep the connection of the smaller uid: the
        // one that is established on its side, or about to be.
        let young = |connection: &&Connection| connection.since.elapsed() < DIAL_ANYWAY_AFTER;
        let dialed = |connection: &Connection| {
            connection
                .wide
                .as_ref()
                .is_some_and(|wide| wide.dialed && !wide.silent && connection.writable)
        };
        let ours = slot.up.iter().chain(&slot.dialing);
        let mut ours =
            ours.filter_map(|&connection| self.connections.get(connection)).filter(young);
        if self.codec.uid < uid && ours.any(dialed) {
            return self.end(id, "there is another connection already");
        }
        let Some(connection) = self.connections.get(id) else { return };
        let wide = self.wide(&connection.stream, false, site);
        self.connections.get_mut(id).expect("as before").wide = Some(wide);
        self.send_control(id, welcome);
        self.establish(id, uid, nth);
    }

    /// The answer to this gateway's Hello on a connection that it has made.
    pub fn receive_welcome(
        &mut self,
        id: Id,
        remote: (u128, usize),
        number: u64,
        mut frame: Frame,
    ) {
        let header = frame.header;
        let opened = self.codec.open(&header, &mut frame.bytes);
        match opened.map(|(inner, _)| inner) {
            Some(inner)
                if header.sender == remote.0
                    && inner.kind == FrameKind::Welcome
                    && inner.number == number =>
            {
                self.establish(id, remote.0, remote.1);
            }
            _ => self.end(id, "its answer is not a welcome to this gateway"),
        }
    }

    /// Use this connection as number `nth` of this pair.
    fn establish(&mut self, id: Id, uid: u128, nth: usize) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.remote = Remote::Gateway { uid, slot: nth };
        connection.since = Instant::now();
        let Some(wide) = connection.wide.as_mut() else { return };
        wide.begin(&connection.stream, self.options.mptcp);
        let Some(peer) = self.peers.get_mut(&uid) else { return };
        peer.trouble = None;
        let site = peer.site;
        let slot = peer.slot(nth);
        let before = slot.up.replace(id);
        let others = std::mem::take(&mut slot.dialing);
        for other in others.into_iter().chain(before).filter(|&other| other != id) {
            self.end(other, "another connection has replaced it");
        }
        self.share_pacing(uid);
        self.resume_site(site);
        self.write_later(id);
    }

    /// Dial, beat, and check which connections are silent. Called at each tick.
    pub fn check_peers(&mut self, now: Instant) {
        for id in self.connections.ids(|connection| connection.wide.is_some()) {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            let Some(wide) = connection.wide.as_mut() else { continue };
            let Remote::Gateway { uid, .. } = connection.remote else {
                if now >= connection.since + DIAL_LIMIT {
                    self.end(id, "nobody has answered");
                }
                continue;
            };
            let (changed, beat) = (wide.check(&connection.stream, now), wide.beat_is_due(now));
            let (silent, quiet) = (wide.silent, connection.waiting() == 0);
            let site = self.peers.get(&uid).map_or(0, |peer| peer.site);
            if changed && silent {
                self.fall_silent(id, now);
            } else if changed {
                self.resume_site(site);
            }
            if beat && quiet {
                let beat = self.codec.seal(FrameKind::Beat, uid, site, 0, b"");
                self.send_control(id, beat);
            }
        }
        self.dial_due(now);
        self.forget_unlisted();
    }

    /// Nothing arrives through this connection: drop what waits for it.
    fn fall_silent(&mut self, id: Id, now: Instant) {
        let wide = self.connections.wide_mut(id);
        let frames = wide.map(|wide| wide.schedule.drain()).unwrap_or_default();
        self.report_lost(id, frames, now);
    }

    /// Report what was under way on a connection to another gateway as lost.
    fn report_lost(&mut self, id: Id, frames: Vec<Frame>, now: Instant) {
        for (pair, site) in self.flows.reroute(id, now) {
            let has_route = self.route_onward(pair, site, false).is_some();
            self.notify(pair, if has_route { Reason::PathBroke } else { Reason::NoRoute });
        }
        for frame in &frames {
            self.release(frame.from, frame.size());
        }
        self.counts.drop(Reason::PathBroke, frames.len());
    }

    /// End a connection, for whatever reason.
    pub fn end(&mut self, id: Id, why: &str) {
        let Some(mut connection) = self.connections.remove(id) else { return };
        let now = Instant::now();
        let unsent = connection.take_unsent().iter().filter(|frame| frame.from != Id::NONE).count();
        match connection.remote {
            Remote::Stranger => self.strangers.remove(id),
            Remote::Process(uid) => {
                let is_last = self.processes.get(&uid) == Some(&id);
                if is_last {
                    self.processes.remove(&uid);
                }
                let reason = if is_last { Reason::Unknown } else { Reason::PathBroke };
                let towards = self.flows.towards(uid, now);
                self.notify_all(towards, reason);
                self.counts.drop(reason, unsent);
            }
            Remote::Gateway { uid, slot } => {
                let mut wide = connection.wide.take().expect("every gateway's connection has one");
                let frames = wide.schedule.drain();
                self.counts.drop(Reason::PathBroke, unsent);
                let slot = self.peers.get_mut(&uid).map(|peer| peer.slot(slot));
                if let Some(slot) = slot.filter(|slot| slot.up == Some(id)) {
                    (slot.up, slot.down) = (None, now);
                    self.note_trouble(uid, why.to_owned());
                }
                self.report_lost(id, frames, now);
            }
            Remote::Dialed { uid, slot, .. } => {
                if let Some(peer) = self.peers.get_mut(&uid) {
                    let slot = peer.slot(slot);
                    slot.dialing.retain(|&other| other != id);
                    if slot.up.is_none() {
                        self.note_trouble(uid, why.to_owned());
                    }
                }
            }
        }
    }
}
