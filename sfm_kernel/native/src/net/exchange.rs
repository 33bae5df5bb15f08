//! All links and connections of one endpoint.

use std::collections::HashMap;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::direct::Direct;
use super::gateways::{SiteGateway, SiteGateways};
use super::{elapsed, Link};
use crate::core::Core;
use crate::event_fd::{owned, EventFd};
use crate::frame::control::ControlCodec;
use crate::frame::seal::Secret;
use crate::link::Identity;
use crate::sync::lock;
use crate::wire::gateway::{self, Socket};
use crate::wire::zmq::{Context, Key, Pair};
use crate::wire::{Connection, Wire};

/// Event ids: that of the alarm which wakes a driving thread, of the socket where others connect,
/// and of the one at which ZeroMQ asks who may.
pub(super) const ALARM: u64 = 0;
pub(super) const ROUTER: u64 = 1;
pub(super) const AUTHENTICATOR: u64 = 2;
/// Nanoseconds of silence after a peer's death until nothing more can come.
const SETTLED_AFTER: u64 = 150_000_000;

/// Work for the network thread.
pub(super) enum Event {
    /// A link is new, or needs a check.
    CheckLink(Arc<Link>),
    /// A peer goes around the gateways: what it sends through them does not arrive.
    AroundGateways(Arc<Link>),
    /// A gateway of this site is new, or has answered.
    Gateway(Arc<SiteGateway>),
    /// A probe's connection is made.
    ProbeConnected(Arc<Connection>, Arc<Link>),
    /// A connection has ended, with this error or without one.
    Ended(Arc<Connection>, Remote, Option<i32>),
}

/// The other end of a connection.
#[derive(Clone)]
pub(super) enum Remote {
    /// Accepted from the member with this uid, which has shown its key and has not greeted yet.
    Stranger(u128),
    /// Made by this process.
    Dialed(Arc<Link>),
    /// Plain TCP, made by this process to see whether anybody listens there.
    Probe(Arc<Link>),
    /// Accepted.
    Peer(Arc<Link>),
    /// A gateway of this site, which leads to other peers; made by this process.
    Gateway(Arc<SiteGateway>),
}

pub(super) struct Reading {
    pub remote: Remote,
    /// The front of an incomplete frame.
    pub partial: Vec<u8>,
}

/// A connection, and its reader's state.
type Open = (Arc<Connection>, Arc<Mutex<Reading>>);

/// The thread that holds its lock receives.
#[derive(Default)]
pub(super) struct ReceiverRole {
    pub scratch: Vec<u8>,
    pub events: Vec<libc::epoll_event>,
}

/// How others connect to an endpoint.
pub struct Listening {
    pub context: Arc<Context>,
    /// Such as "tcp://IP:*".
    pub address: String,
    /// The endpoint's own pair of keys.
    pub pair: Pair,
    /// The table of a world of one machine, which announces the members' keys.
    pub table: Option<PathBuf>,
    /// The number of connections that may exist without having shown a key.
    pub strangers: usize,
}

pub struct Exchange {
    pub core: Arc<Core>,
    pub(super) identity: Arc<Identity>,
    pub(super) role: Mutex<ReceiverRole>,
    /// Reports events of connections, of the socket where others connect, and of `alarm`.
    pub(super) epoll: Arc<OwnedFd>,
    pub(super) direct: Direct,
    /// The network thread had the role last, and sockets wake it. Set to true only with the role's
    /// lock held.
    pub(super) attending: AtomicBool,
    /// Wakes a driving thread.
    pub(super) alarm: Arc<EventFd>,
    /// A waiting thread has the role, or had it until `driven_at` (see network_thread.rs).
    pub(super) driving: AtomicBool,
    pub(super) driven_at: AtomicU64,
    /// When something last came.
    pub(super) received_at: AtomicU64,
    /// Something has arrived that was not acknowledged yet.
    pub(super) acks_pending: AtomicBool,
    pub(super) closing: AtomicBool,
    /// Nanoseconds until an unreachable peer is given up; `u64::MAX`: never.
    pub(super) patience: u64,
    pub(super) gateways: Mutex<SiteGateways>,
    pub(super) codec: Mutex<ControlCodec>,
    /// The congestion control of long connections, from `SFM_TCP`. Read here, since later another
    /// thread may be changing the environment.
    pub(super) congestion: String,
    next: AtomicU64,
    links: Mutex<HashMap<u128, Arc<Link>>>,
    pub(super) connections: Mutex<HashMap<u64, Open>>,
    events: Mutex<Vec<Event>>,
}

impl Exchange {
    /// `key` is the world's.
    pub fn new(
        core: Arc<Core>,
        uid: u128,
        site: u32,
        key: &[u8],
        listening: Listening,
        patience: u64,
    ) -> std::io::Result<Exchange> {
        // SAFETY: the system call takes numbers only, and touches no memory.
        let epoll = Arc::new(owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?);
        let alarm = Arc::new(EventFd::new()?);
        let (reports, rings) = (Arc::clone(&epoll), Arc::clone(&alarm));
        let direct = Direct::new(listening, reports, rings)?;
        let (address, secret) = (direct.address.clone(), Secret::of_world(key));
        let identity = Identity { uid, site, address, secret };
        let chosen = std::env::var("SFM_TCP").ok().filter(|chosen| !chosen.is_empty());
        let congestion = chosen.unwrap_or_else(|| "bbr".to_owned());
        let codec = ControlCodec::of_process(key, uid, site);
        let exchange = Exchange {
            core,
            identity: Arc::new(identity),
            role: Mutex::default(),
            epoll,
            direct,
            attending: AtomicBool::new(true),
            alarm,
            driving: AtomicBool::new(false),
            driven_at: AtomicU64::new(0),
            received_at: AtomicU64::new(0),
            acks_pending: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            patience,
            gateways: Mutex::default(),
            codec: Mutex::new(codec),
            congestion,
            next: AtomicU64::new(AUTHENTICATOR + 1),
            links: Mutex::default(),
            connections: Mutex::default(),
            events: Mutex::default(),
        };
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: ALARM };
        let (epoll, alarm) = (exchange.epoll.as_raw_fd(), exchange.alarm.as_raw_fd());
        // SAFETY: an epoll instance of ours, and an event that it copies.
        unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, alarm, &mut event) };
        Ok(exchange)
    }

    /// Where others connect directly: "tcp://IP:port".
    pub fn address(&self) -> &str {
        &self.identity.address
    }

    // ---- links ----

    /// The directory has announced these members and the public halves of their pairs.
    pub fn announce(&self, members: impl IntoIterator<Item = (u128, Key)>) {
        self.direct.announce(members);
    }

    /// A member was put out of the world: nothing comes from it any more.
    pub fn expel(&self, uid: u128, why: &str) {
        self.direct.expel(uid);
        if let Some(link) = self.known(uid) {
            link.lose(why);
            self.post(Event::CheckLink(link));
        }
        for (connection, remote) in self.each() {
            let is_its = match &remote {
                Remote::Stranger(owner) => *owner == uid,
                Remote::Dialed(link) | Remote::Peer(link) => link.uid == uid,
                Remote::Probe(_) | Remote::Gateway(_) => false,
            };
            if is_its {
                self.end(&connection);
            }
        }
    }

    /// The link to a peer. If it is new, the network thread is about to make a connection.
    pub fn link(&self, uid: u128, site: u32, address: &str) -> Arc<Link> {
        let (link, new) = self.link_of(uid, site, address);
        if new {
            self.post(Event::CheckLink(link.clone()));
        }
        link
    }

    /// The same for a peer that has connected; also whether the link is new.
    pub(super) fn link_of(&self, uid: u128, site: u32, address: &str) -> (Arc<Link>, bool) {
        let mut links = lock(&self.links);
        if let Some(link) = links.get(&uid) {
            return (link.clone(), false);
        }
        let link = Link::new(self.core.clone(), self.identity.clone(), uid, site, address);
        let link = Arc::new(link);
        link.set_uses_gateways(self.uses_gateways(&link));
        links.insert(uid, link.clone());
        (link, true)
    }

    pub fn links(&self) -> Vec<Arc<Link>> {
        lock(&self.links).values().cloned().collect()
    }

    /// The link to a peer, if there is one.
    pub fn known(&self, uid: u128) -> Option<Arc<Link>> {
        lock(&self.links).get(&uid).cloned()
    }

    /// Whether everything that a dead peer had sent has come in: its connections have ended, or
    /// nothing has come for a while.
    pub fn is_settled(&self, uid: u128) -> bool {
        let Some(link) = self.known(uid) else { return true };
        let ended = link.lost().is_some() || !self.has_connection(uid);
        ended || elapsed(link.received_at()) > SETTLED_AFTER
    }

    fn has_connection(&self, uid: u128) -> bool {
        self.all().iter().any(|(_, reading)| match &lock(reading).remote {
            Remote::Stranger(_) | Remote::Probe(_) | Remote::Gateway(_) => false,
            Remote::Dialed(link) | Remote::Peer(link) => link.uid == uid,
        })
    }

    pub(super) fn post(&self, event: Event) {
        lock(&self.events).push(event);
        self.core.poke();
    }

    pub(super) fn events(&self) -> Vec<Event> {
        std::mem::take(&mut lock(&self.events))
    }

    pub(super) fn has_events(&self) -> bool {
        !lock(&self.events).is_empty()
    }

    /// Warn the user on stderr. Text from other processes must not control a terminal.
    pub(super) fn warn(&self, text: &str) {
        let clean = |c: char| match c {
            c if c.is_control() => c.escape_default().to_string(),
            c => c.to_string(),
        };
        let text: String = text.chars().map(clean).collect();
        let _ = writeln!(std::io::stderr(), "sfm: {text}"); // stderr may be closed
    }

    /// Report to senders how much of theirs was received.
    pub(super) fn credit(&self) {
        for (uid, account, total) in self.core.acks() {
            if let Some(link) = self.known(uid) {
                link.credit(account, total);
            }
        }
    }

    // ---- connections ----

    /// Enter a connection over plain TCP.
    pub(super) fn add_connection(&self, socket: Socket, remote: Remote) -> Arc<Connection> {
        let waits = matches!(remote, Remote::Probe(_));
        let shared = matches!(remote, Remote::Gateway(_));
        let made = |id| {
            let epoll = self.epoll.as_raw_fd();
            Ok(Connection::Tcp(gateway::Connection::new(id, socket, epoll, waits, shared)))
        };
        self.enter(remote, made).expect("nothing here fails")
    }

    /// Make a connection with a fresh number, and enter it.
    pub(super) fn enter(
        &self,
        remote: Remote,
        make: impl FnOnce(u64) -> std::io::Result<Connection>,
    ) -> std::io::Result<Arc<Connection>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let reading = Arc::new(Mutex::new(Reading { remote, partial: Vec::new() }));
        let mut connections = lock(&self.connections);
        // Under the lock: events must not come before the connection can be found.
        let connection = Arc::new(make(id)?);
        connections.insert(id, (connection.clone(), reading));
        Ok(connection)
    }

    /// The reader's state of a connection that is in use.
    pub(super) fn reading(&self, connection: &Connection) -> Option<Arc<Mutex<Reading>>> {
        lock(&self.connections).get(&connection.id()).map(|(_, reading)| reading.clone())
    }

    /// A live connection that this peer has made and confirmed.
    pub(super) fn other_connection(&self, to: &Arc<Link>) -> Option<Arc<Connection>> {
        let found = self.all().into_iter().find(|(connection, reading)| {
            let remote = &lock(reading).remote;
            let leads = matches!(remote, Remote::Peer(link) if Arc::ptr_eq(link, to));
            leads && !connection.has_ended() && connection.is_confirmed()
        });
        found.map(|(connection, _)| connection)
    }

    /// All connections. The reader of one may need this lock, so it is released before a reading is
    /// locked.
    fn all(&self) -> Vec<Open> {
        lock(&self.connections).values().cloned().collect()
    }

    /// All connections and their other ends.
    pub(super) fn each(&self) -> impl Iterator<Item = (Arc<Connection>, Remote)> {
        let with_remote = |(connection, reading): Open| {
            let remote = lock(&reading).remote.clone();
            (connection, remote)
        };
        self.all().into_iter().map(with_remote)
    }

    /// End a connection; returns whether it was still in use.
    pub(super) fn end(&self, connection: &Connection) -> bool {
        connection.end();
        lock(&self.connections).remove(&connection.id()).is_some()
    }
}
