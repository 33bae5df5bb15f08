//! The ways through gateways: a process's connections to those of its own site.
//!
//! What goes to another site that has a gateway goes through one of the own site's; where there are
//! several, a hash of the pair says through which. They are connected as soon as they are known, and
//! stay so: what is said first to somebody far away needs no handshake. A gateway that dies, or does
//! not answer while something is under way through it, is replaced by another one, or by a direct
//! connection; what was lost with it is sent again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::connection::Connection;
use super::control::{dropped_of, ControlVoice, Reason, Role};
use super::exchange::{lock, Event, Exchange, Who};
use super::frame::{Header, Inner, Kind};
use super::link::Link;
use super::now;

/// Bytes that wait in the kernel for a gateway that does not read: what waits here something can pass.
const UNSENT: i32 = 128 << 10;

/// A gateway, as the directory lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub uid: u128,
    pub site: u32,
    pub address: String,
}

/// A gateway of the own site.
pub struct SiteGateway {
    pub listed: Listed,
    /// The connection, once it has answered.
    way: Mutex<Option<Arc<Connection>>>,
    /// When it was asked, for the first time since it has answered, whether it is there; 0: it has
    /// answered.
    pub(super) asked: AtomicU64,
    /// Why it wants nothing of us.
    pub(super) refused: AtomicBool,
}

impl SiteGateway {
    pub(super) fn way(&self) -> Option<Arc<Connection>> {
        lock(&self.way).clone().filter(|way| !way.has_ended())
    }

    pub(super) fn lose_way(&self, id: u64) {
        lock(&self.way).take_if(|way| way.id == id);
    }
}

/// What an endpoint knows of gateways.
pub(super) struct SiteGateways {
    own: Vec<Arc<SiteGateway>>,
    /// Of all gateways, the uid and the site.
    all: Vec<(u128, u32)>,
}

impl SiteGateways {
    pub fn new() -> SiteGateways {
        SiteGateways { own: Vec::new(), all: Vec::new() }
    }
}

impl Exchange {
    /// These are the world's gateways now.
    pub fn set_gateways(&self, listed: &[Listed]) {
        let mut gates = lock(&self.gates);
        gates.all = listed.iter().map(|one| (one.uid, one.site)).collect();
        let before = std::mem::take(&mut gates.own);
        for one in listed.iter().filter(|one| one.site == self.identity.site) {
            let known = before.iter().find(|gate| gate.listed == *one).cloned();
            gates.own.push(known.unwrap_or_else(|| {
                let gate = Arc::new(SiteGateway {
                    listed: one.clone(),
                    way: Mutex::default(),
                    asked: AtomicU64::new(0),
                    refused: AtomicBool::new(false),
                });
                self.tell(Event::Gateway(gate.clone()));
                gate
            }));
        }
        for gone in before.iter().filter(|gate| !gates.own.iter().any(|one| Arc::ptr_eq(one, gate)))
        {
            if let Some(way) = gone.way() {
                way.socket.break_off(); // told as any end
            }
        }
        drop(gates);
        for link in self.links() {
            self.tell(Event::Wanted(link));
        }
    }

    pub(super) fn own_gates(&self) -> Vec<Arc<SiteGateway>> {
        lock(&self.gates).own.clone()
    }

    pub(super) fn is_listed(&self, gate: &Arc<SiteGateway>) -> bool {
        lock(&self.gates).own.iter().any(|one| Arc::ptr_eq(one, gate))
    }

    /// Whether what is sent to a peer is to go through gateways, as far as is known.
    pub(super) fn is_far(&self, link: &Link) -> bool {
        let gates = lock(&self.gates);
        link.site != self.identity.site
            && !gates.own.is_empty()
            && gates.all.iter().any(|(_, site)| *site == link.site)
    }

    /// The connection to the gateway through which a peer is reached; None if there is none just now.
    pub(super) fn gateway_to(&self, link: &Link) -> Option<Arc<Connection>> {
        if !self.is_far(link) {
            return None;
        }
        let mut open: Vec<_> = self
            .own_gates()
            .into_iter()
            .filter_map(|one| Some((one.listed.uid, one.way()?)))
            .collect();
        open.sort_by_key(|(uid, _)| *uid);
        let nth = (self.identity.uid ^ link.uid) % open.len().max(1) as u128;
        open.into_iter().nth(nth as usize).map(|(_, way)| way)
    }

    /// Ask a gateway whether it is there.
    pub(super) fn ask_gateway(&self, gate: &SiteGateway, on: &Connection) {
        let at = now();
        let _ = gate.asked.compare_exchange(0, at, Ordering::Relaxed, Ordering::Relaxed);
        let said = lock(&self.voice).hello(Role::Process, gate.listed.uid, gate.listed.site, at);
        on.put_ahead(Arc::new(said.bytes));
    }

    /// A frame has come from a gateway: of the gateway's own, or of somebody far away.
    pub(super) fn through_gateway(
        &self,
        connection: &Arc<Connection>,
        gate: &Arc<SiteGateway>,
        header: &Header,
        frame: &mut [u8],
    ) -> Option<()> {
        if connection.confirmed.load(Ordering::Relaxed) {
            // It is there, though what we ask may wait behind what we send.
            gate.asked.store(0, Ordering::Relaxed);
        }
        // Of what was dropped also gateways of other sites tell.
        if lock(&self.gates).all.iter().any(|(uid, _)| *uid == header.sender) {
            let opened = lock(&self.voice).open(header, frame).map(|(inner, body)| {
                self.gateway_says(connection, gate, header.sender, &inner, body);
            });
            return opened;
        }
        if header.receiver != self.identity.uid {
            return Some(()); // it was for somebody who had our place, or the gateway errs
        }
        if let Some(link) = self.known(header.sender) {
            // What cannot be opened is not its: whoever has the gateway's key can forge nothing.
            if let Some((inner, body)) = link.opener.open(header, frame) {
                if inner.kind == Kind::Hello && link.way().is_none() {
                    link.take_way(connection.clone(), false);
                }
                self.arrived(connection, &link, &inner, body);
            }
            return Some(());
        }
        let opener = self.identity.secret.opener(header.sender, header.receiver);
        let Some((inner, body)) = opener.open(header, frame) else { return Some(()) };
        let Ok(address) = std::str::from_utf8(body) else { return Some(()) };
        if inner.kind == Kind::Hello {
            let (link, _) = self.link_of(header.sender, header.from_site, address);
            link.met.fetch_max(header.counter, Ordering::SeqCst);
            link.take_way(connection.clone(), false);
            self.arrived(connection, &link, &inner, b"");
            self.tell(Event::Wanted(link));
        }
        Some(())
    }

    fn gateway_says(
        &self,
        connection: &Arc<Connection>,
        gate: &Arc<SiteGateway>,
        sender: u128,
        inner: &Inner,
        body: &[u8],
    ) {
        match inner.kind {
            Kind::Welcome if sender == gate.listed.uid => {
                gate.asked.store(0, Ordering::Relaxed);
                connection.confirmed.store(true, Ordering::Relaxed);
                let before = lock(&gate.way).replace(connection.clone());
                if before.is_none_or(|before| before.id != connection.id) {
                    self.tell(Event::Gateway(gate.clone()));
                }
            }
            Kind::Broken if sender == gate.listed.uid => {
                gate.refused.store(true, Ordering::Relaxed);
                let why = String::from_utf8_lossy(body);
                self.say(&format!("the gateway at {} refuses: {why}", gate.listed.address));
            }
            Kind::Dropped => {
                let Some((pair, reason)) = dropped_of(inner, body) else { return };
                let Some(link) = self.known(pair.receiver) else { return };
                match reason {
                    Reason::PathBroke => link.may_have_lost(),
                    _ => link.dropped(reason),
                }
                self.tell(Event::Wanted(link));
            }
            _ => {}
        }
    }

    /// Begin a connection to a gateway.
    pub(super) fn dial_gateway(&self, gate: &Arc<SiteGateway>) -> std::io::Result<Arc<Connection>> {
        let socket = super::socket::Socket::connect(&gate.listed.address)?;
        socket.limit_unsent(UNSENT);
        let connection = self.connection(socket, Who::Gateway(gate.clone()));
        self.ask_gateway(gate, &connection);
        Ok(connection)
    }

    /// Say to the gateways that we leave.
    pub(super) fn leave_gateways(&self) {
        for gate in self.own_gates() {
            if let Some(way) = gate.way() {
                let (uid, site) = (gate.listed.uid, gate.listed.site);
                let said = lock(&self.voice).say(Kind::Bye, uid, site, 0, b"");
                way.put(Arc::new(said.bytes));
            }
        }
    }
}

pub(super) fn voice(own_uid: u128, own_site: u32, gateway_key: &[u8]) -> Mutex<ControlVoice> {
    Mutex::new(ControlVoice::new(gateway_key, own_uid, own_site))
}
