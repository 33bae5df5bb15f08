//! A process's connections to the gateways of its site.
//!
//! A message to another site that has a gateway goes through a gateway of this site; if there are
//! several, a hash of the pair chooses one. The process connects to them as soon as it knows them,
//! so a first message to a far peer needs no handshake. If a gateway dies, or does not answer while
//! something is under way through it, another gateway or a direct connection replaces it, and what
//! it lost is sent again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::exchange::{Event, Exchange, Remote};
use super::monitor::{CHECK_EVERY, IDLE_CHECK_EVERY};
use super::{elapsed, now, Link, SECOND};
use crate::frame::control::{parse_dropped, Reason, Role};
use crate::frame::{FrameKind, Header, Inner};
use crate::sync::lock;
use crate::wire::gateway::Socket;
use crate::wire::{Connection, Wire};

/// Unsent bytes in the kernel for a gateway that does not read; status frames can pass only what
/// waits in this process.
const MAX_UNSENT: i32 = 128 << 10;

/// A gateway, as the directory lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub uid: u128,
    pub site: u32,
    pub address: String,
}

/// A gateway of this process's site.
pub struct SiteGateway {
    pub listed: Listed,
    /// Set when the gateway has answered.
    connection: Mutex<Option<Arc<Connection>>>,
    /// When this process first asked, since the last answer, whether the gateway is there; 0: it
    /// has answered.
    pub(super) asked: AtomicU64,
    /// The gateway has refused this process.
    pub(super) refused: AtomicBool,
}

impl SiteGateway {
    pub(super) fn connection(&self) -> Option<Arc<Connection>> {
        lock(&self.connection).clone().filter(|connection| !connection.has_ended())
    }

    pub(super) fn drop_connection(&self, id: u64) {
        lock(&self.connection).take_if(|connection| connection.id() == id);
    }
}

/// The state of one gateway of this site.
pub(super) struct GatewayMonitor {
    pub gateway: Arc<SiteGateway>,
    pub attempt: Option<(Arc<Connection>, u64)>,
    pub next: u64,
}

impl GatewayMonitor {
    pub fn new(gateway: &Arc<SiteGateway>) -> GatewayMonitor {
        GatewayMonitor { gateway: gateway.clone(), attempt: None, next: 0 }
    }

    pub fn dial(&mut self, exchange: &Exchange) {
        self.next = now() + SECOND;
        if let Ok(connection) = exchange.dial_gateway(&self.gateway) {
            self.attempt = Some((connection, now()));
        }
    }

    /// Check the gateway; returns nanoseconds until the next check.
    pub fn check(&mut self, exchange: &Exchange) -> u64 {
        let asked = self.gateway.asked.load(Ordering::Relaxed);
        let late = asked != 0 && elapsed(asked) > SECOND;
        match (self.gateway.connection(), &self.attempt) {
            // It is connected and does not answer: what goes there is lost.
            (Some(connection), _) if late => {
                connection.break_off();
                CHECK_EVERY
            }
            (Some(_), _) if asked != 0 => CHECK_EVERY,
            (Some(_), _) => IDLE_CHECK_EVERY,
            (None, Some((attempt, begun))) if elapsed(*begun) > SECOND => {
                exchange.end(attempt);
                self.attempt = None;
                self.dial(exchange);
                CHECK_EVERY
            }
            (None, None) if now() >= self.next && !self.gateway.refused.load(Ordering::Relaxed) => {
                self.dial(exchange);
                CHECK_EVERY
            }
            _ => CHECK_EVERY,
        }
    }
}

/// The gateways that an endpoint knows.
#[derive(Default)]
pub(super) struct SiteGateways {
    of_site: Vec<Arc<SiteGateway>>,
    /// Uid and site of every gateway.
    all: Vec<(u128, u32)>,
}

impl Exchange {
    /// Replace the list of the world's gateways.
    pub fn set_gateways(&self, listed: &[Listed]) {
        let mut gateways = lock(&self.gateways);
        gateways.all = listed.iter().map(|gateway| (gateway.uid, gateway.site)).collect();
        let before = std::mem::take(&mut gateways.of_site);
        for listed in listed.iter().filter(|gateway| gateway.site == self.identity.site) {
            let known = before.iter().find(|gateway| gateway.listed == *listed).cloned();
            gateways.of_site.push(known.unwrap_or_else(|| {
                let gateway = Arc::new(SiteGateway {
                    listed: listed.clone(),
                    connection: Mutex::default(),
                    asked: AtomicU64::new(0),
                    refused: AtomicBool::new(false),
                });
                self.post(Event::Gateway(gateway.clone()));
                gateway
            }));
        }
        let is_removed = |gateway: &&Arc<SiteGateway>| {
            !gateways.of_site.iter().any(|remaining| Arc::ptr_eq(remaining, gateway))
        };
        for removed in before.iter().filter(is_removed) {
            if let Some(connection) = removed.connection() {
                connection.break_off(); // reported like any other end
            }
        }
        drop(gateways);
        for link in self.links() {
            self.post(Event::CheckLink(link));
        }
    }

    pub(super) fn site_gateways(&self) -> Vec<Arc<SiteGateway>> {
        lock(&self.gateways).of_site.clone()
    }

    pub(super) fn is_listed(&self, gateway: &Arc<SiteGateway>) -> bool {
        lock(&self.gateways).of_site.iter().any(|listed| Arc::ptr_eq(listed, gateway))
    }

    /// Whether messages to a peer go through gateways, as far as is known.
    pub(super) fn uses_gateways(&self, link: &Link) -> bool {
        let gateways = lock(&self.gateways);
        link.site != self.identity.site
            && !gateways.of_site.is_empty()
            && gateways.all.iter().any(|(_, site)| *site == link.site)
    }

    /// The connection to the gateway for a peer; None if no gateway is up.
    pub(super) fn gateway_to(&self, link: &Link) -> Option<Arc<Connection>> {
        if !self.uses_gateways(link) {
            return None;
        }
        let mut open: Vec<_> = self
            .site_gateways()
            .into_iter()
            .filter_map(|gateway| Some((gateway.listed.uid, gateway.connection()?)))
            .collect();
        open.sort_by_key(|(uid, _)| *uid);
        let nth = (self.identity.uid ^ link.uid) % open.len().max(1) as u128;
        open.into_iter().nth(nth as usize).map(|(_, connection)| connection)
    }

    /// Ask a gateway whether it is there.
    pub(super) fn ask_gateway(&self, gateway: &SiteGateway, on: &Connection) {
        let at = now();
        let _ = gateway.asked.compare_exchange(0, at, Ordering::Relaxed, Ordering::Relaxed);
        let frame =
            lock(&self.codec).hello(Role::Process, gateway.listed.uid, gateway.listed.site, at);
        on.put_ahead(Arc::new(frame.bytes));
    }

    /// Act on a frame that came through a gateway: the gateway's, or a far peer's.
    pub(super) fn through_gateway(
        &self,
        connection: &Arc<Connection>,
        gateway: &Arc<SiteGateway>,
        header: &Header,
        frame: &mut [u8],
    ) -> Option<()> {
        if connection.is_confirmed() {
            // The gateway is there, though the question may wait behind messages.
            gateway.asked.store(0, Ordering::Relaxed);
        }
        // Gateways of other sites also report drops.
        if lock(&self.gateways).all.iter().any(|(uid, _)| *uid == header.sender) {
            let opened = lock(&self.codec).open(header, frame).map(|(inner, body)| {
                self.receive_from_gateway(connection, gateway, header.sender, &inner, body);
            });
            return opened;
        }
        if header.receiver != self.identity.uid {
            return Some(()); // it was for an earlier process at this address, or the gateway errs
        }
        let known = self.known(header.sender);
        let opened = match &known {
            Some(link) => link.opener.open(header, frame),
            None => self.opener(header).open(header, frame),
        };
        // A frame that cannot be opened is not the peer's: the gateway key is not enough to forge
        // one.
        let Some((inner, body)) = opened else { return Some(()) };
        let is_hello = inner.kind == FrameKind::Hello;
        let (link, new) = match (known, std::str::from_utf8(body)) {
            (Some(link), _) => (link, false),
            (None, Ok(address)) if is_hello => {
                self.link_of(header.sender, header.from_site, address)
            }
            _ => return Some(()),
        };
        // Whoever has recorded a `Hello` can send it again through the gateways.
        if !is_hello || link.greet_through(connection, header) {
            self.arrived(connection, &link, &inner, body);
        }
        if new {
            self.post(Event::CheckLink(link));
        }
        Some(())
    }

    fn receive_from_gateway(
        &self,
        connection: &Arc<Connection>,
        gateway: &Arc<SiteGateway>,
        sender: u128,
        inner: &Inner,
        body: &[u8],
    ) {
        match inner.kind {
            FrameKind::Welcome if sender == gateway.listed.uid => {
                gateway.asked.store(0, Ordering::Relaxed);
                connection.confirm(true);
                let before = lock(&gateway.connection).replace(connection.clone());
                if before.is_none_or(|before| before.id() != connection.id()) {
                    self.post(Event::Gateway(gateway.clone()));
                }
            }
            FrameKind::Broken if sender == gateway.listed.uid => {
                gateway.refused.store(true, Ordering::Relaxed);
                let why = String::from_utf8_lossy(body);
                self.warn(&format!("the gateway at {} refuses: {why}", gateway.listed.address));
            }
            FrameKind::Dropped => {
                let Some((pair, reason)) = parse_dropped(inner, body) else { return };
                let Some(link) = self.known(pair.receiver) else { return };
                match reason {
                    Reason::PathBroke => link.check_losses(),
                    _ => link.dropped(reason),
                }
                self.post(Event::CheckLink(link));
            }
            _ => {}
        }
    }

    /// Begin a connection to a gateway.
    pub(super) fn dial_gateway(
        &self,
        gateway: &Arc<SiteGateway>,
    ) -> std::io::Result<Arc<Connection>> {
        let socket = Socket::connect(&gateway.listed.address)?;
        socket.limit_unsent(MAX_UNSENT);
        let connection = self.add_connection(socket, Remote::Gateway(gateway.clone()));
        self.ask_gateway(gateway, &connection);
        Ok(connection)
    }

    /// Send `Bye` to the gateways.
    pub(super) fn leave_gateways(&self) {
        for gateway in self.site_gateways() {
            if let Some(connection) = gateway.connection() {
                let (uid, site) = (gateway.listed.uid, gateway.listed.site);
                let frame = lock(&self.codec).seal(FrameKind::Bye, uid, site, 0, b"");
                connection.put(Arc::new(frame.bytes));
            }
        }
    }
}
