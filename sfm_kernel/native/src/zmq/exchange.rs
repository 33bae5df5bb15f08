//! All links and sources of one endpoint; and what happens to a message that comes in.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::library::{Frame, Library, Socket};
use super::link::Link;
use super::source::{Piece, Source};
use super::wire::{Header, Kind, HEADER};
use crate::core::Core;

/// What the network thread has to do in Python.
#[derive(Default)]
pub struct News {
    /// Links that were asked for and have no socket yet.
    pub unopened: Vec<Arc<Link>>,
    /// Links whose peer does not accept our messages any more.
    pub refused: Vec<Arc<Link>>,
    /// What the user should know.
    pub complaints: Vec<String>,
}

/// The socket that receives. Whoever holds the lock has the role of the receiver.
#[derive(Default)]
pub(super) struct Role {
    pub router: Option<Router>,
    /// Nothing was left when it was last looked at: its descriptor tells when something comes.
    pub drained: bool,
}

pub(super) struct Router {
    pub socket: Socket,
    pub fd: i32,
    connection: Frame,
    body: Frame,
}

pub struct Exchange {
    pub core: Arc<Core>,
    pub(super) role: Mutex<Role>,
    pub(super) router_fd: AtomicI32,
    pub(super) epoll: OwnedFd,
    /// The network thread had the role last, and the ROUTER wakes it. Becomes true with the role's
    /// lock held only.
    pub(super) attending: AtomicBool,
    /// Pokes a thread that drives.
    pub(super) alarm: OwnedFd,
    /// A thread that waits has the role, or had it until `driven_at` (see tending.rs).
    pub(super) driving: AtomicBool,
    pub(super) driven_at: AtomicU64,
    /// When the last message came; when nothing more was there (nanoseconds, monotonic).
    pub(super) heard_at: AtomicU64,
    pub(super) idle_at: AtomicU64,
    /// When the network thread went to do something in Python; 0 while it tends.
    pub(super) left_at: AtomicU64,
    /// Python asked the network thread to return.
    pub(super) rung: AtomicBool,
    own: u128,
    address: String,
    sources: Mutex<HashMap<u128, Source>>,
    links: Mutex<HashMap<u128, Arc<Link>>>,
    news: Mutex<News>,
    /// The descriptors of connections through which somebody has greeted.
    speakers: Mutex<HashSet<i32>>,
}

/// Messages that are taken in before acknowledgements and lines have their turn.
const BATCH: usize = 64;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Exchange {
    /// `own` and `address` are what peers learn of us.
    pub fn new(core: Arc<Core>, own: u128, address: &str) -> std::io::Result<Exchange> {
        let owned = |fd: i32| match fd {
            -1 => Err(std::io::Error::last_os_error()),
            // SAFETY: a fresh descriptor.
            fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        };
        let exchange = Exchange {
            core,
            role: Mutex::default(),
            router_fd: AtomicI32::new(-1),
            attending: AtomicBool::new(true),
            // SAFETY: plain system calls.
            epoll: owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?,
            // SAFETY: as above.
            alarm: owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?,
            driving: AtomicBool::new(false),
            driven_at: AtomicU64::new(0),
            heard_at: AtomicU64::new(0),
            idle_at: AtomicU64::new(0),
            left_at: AtomicU64::new(0),
            rung: AtomicBool::new(false),
            own,
            address: address.to_owned(),
            sources: Mutex::default(),
            links: Mutex::default(),
            news: Mutex::default(),
            speakers: Mutex::default(),
        };
        exchange.watch(exchange.core.event_fd());
        Ok(exchange)
    }

    /// Receive through the ROUTER at `socket`, whose descriptor is `fd`, of the module's library.
    ///
    /// # Safety
    /// As `Socket::new`, until `close`.
    pub unsafe fn open(&self, module: &CStr, socket: usize, fd: i32) -> Result<(), String> {
        let library = Library::of_module(module)?;
        // SAFETY: the caller's promise.
        let socket = unsafe { Socket::new(library, socket) };
        let (connection, body) = (Frame::empty(library), Frame::empty(library));
        lock(&self.role).router = Some(Router { socket, fd, connection, body });
        self.router_fd.store(fd, Ordering::Relaxed);
        self.watch(fd);
        Ok(())
    }

    /// Leave the ROUTER to its owner.
    pub fn close(&self) {
        self.core.ring(); // a thread that drives may sleep
        lock(&self.role).router = None;
        let fd = self.router_fd.swap(-1, Ordering::Relaxed);
        if fd >= 0 {
            self.unwatch(fd);
        }
    }

    // ---- links ----

    /// The link to a peer. If it is new, the network thread is about to open it.
    pub fn link(&self, uid: u128, address: &str) -> Arc<Link> {
        let mut links = lock(&self.links);
        let link = links.entry(uid).or_insert_with(|| {
            let link = Link::new(self.core.clone(), self.own, &self.address, uid, address);
            let link = Arc::new(link);
            lock(&self.news).unopened.push(link.clone());
            self.core.poke();
            link
        });
        link.clone()
    }

    pub fn links(&self) -> Vec<Arc<Link>> {
        lock(&self.links).values().cloned().collect()
    }

    /// The link to a peer, if there is one.
    pub fn known(&self, uid: u128) -> Option<Arc<Link>> {
        lock(&self.links).get(&uid).cloned()
    }

    pub fn news(&self) -> News {
        std::mem::take(&mut lock(&self.news))
    }

    pub(super) fn has_news(&self) -> bool {
        let news = lock(&self.news);
        !(news.unopened.is_empty() && news.refused.is_empty() && news.complaints.is_empty())
    }

    /// The descriptors of connections through which members have come since this was last asked.
    pub fn speakers(&self) -> HashSet<i32> {
        std::mem::take(&mut lock(&self.speakers))
    }

    // ---- sources ----

    /// Whether messages of this peer are missing; None if it has never greeted us.
    pub fn broken(&self, uid: u128) -> Option<bool> {
        lock(&self.sources).get(&uid).map(|source| source.broken)
    }

    /// When something came from this peer (seconds, monotonic).
    pub fn heard(&self, uid: u128) -> Option<f64> {
        lock(&self.sources).get(&uid).map(|source| source.heard)
    }

    /// When nothing more was waiting (seconds, monotonic).
    pub fn idle_at(&self) -> f64 {
        self.idle_at.load(Ordering::Relaxed) as f64 / 1e9
    }

    /// Tell those whose messages were received how much.
    pub fn acknowledge(&self) {
        for (uid, account, total) in self.core.acks() {
            let address = lock(&self.sources).get(&uid).map(|source| source.address.clone());
            if let Some(address) = address {
                self.link(uid, &address).acknowledge(account, total);
            }
        }
    }

    /// The line to a peer has come up again: say how much was sent, and once more what may have
    /// been lost with the old connection and is waited for.
    pub fn greet_again(&self, link: &Link) {
        link.greet();
        if let Some(source) = lock(&self.sources).get(&link.uid) {
            for (account, total) in self.core.taken(source.lane).into_iter().enumerate() {
                link.acknowledge(account, total);
            }
            if let Some(first) = source.refused() {
                link.control(Kind::Refused, first);
            }
            link.control(Kind::Took, source.parts());
        }
    }

    /// Ask everybody to confirm that all has arrived; who only sends to us is to know as well.
    pub fn say_goodbye(&self) -> Vec<Arc<Link>> {
        self.acknowledge();
        let sources: Vec<(u128, String)> =
            lock(&self.sources).iter().map(|(&uid, one)| (uid, one.address.clone())).collect();
        for (uid, address) in sources {
            self.link(uid, &address);
        }
        let links = self.links();
        for link in &links {
            link.control(Kind::Bye, 0);
        }
        links
    }

    // ---- what comes in ----

    /// Take in what has come, until `enough()`; true if there may be more. The last look, which
    /// finds nothing, costs a system call.
    pub(super) fn receive(&self, role: &mut Role, enough: &dyn Fn() -> bool) -> bool {
        let Some(router) = &mut role.router else { return false };
        role.drained = false;
        for _ in 0..BATCH {
            // [connection, header and body]; what else there may be is none of ours.
            let Ok(true) = router.socket.receive(&mut router.connection) else {
                self.idle_at.store(now(), Ordering::Relaxed);
                role.drained = true;
                return false;
            };
            let mut frames = 1;
            let mut more = router.connection.more();
            while more && matches!(router.socket.receive(&mut router.body), Ok(true)) {
                frames += 1;
                more = router.body.more();
            }
            if frames == 2 {
                if let Some(header) = Header::read(router.body.bytes()) {
                    if header.kind == Kind::Greet {
                        lock(&self.speakers).insert(router.body.descriptor());
                    }
                    if header.receiver == self.own {
                        self.arrived(&header, router.body.take());
                        if enough() {
                            return true;
                        }
                    }
                }
            }
        }
        true
    }

    fn arrived(&self, header: &Header, frame: Frame) {
        let uid = header.sender;
        self.heard_at.store(now(), Ordering::Relaxed);
        match header.kind {
            Kind::Data | Kind::First | Kind::Part | Kind::Abort => self.numbered(header, frame),
            Kind::Greet => self.greeted(header, &frame.bytes()[HEADER..]),
            Kind::Ask => {
                if let Some(source) = lock(&self.sources).get(&uid) {
                    self.core.ask(source.lane);
                }
            }
            Kind::Bye => {
                let address = lock(&self.sources).get(&uid).map(|source| source.address.clone());
                if let Some(address) = address {
                    let leaving = self.link(uid, &address);
                    // It will not receive any more. First: when it has our answer it is gone.
                    leaving.lose("");
                    leaving.control(Kind::Done, 0);
                }
            }
            Kind::Ack => {
                if let Some(link) = self.known(uid) {
                    link.outflow.credit(usize::from(header.flag), header.number);
                }
            }
            Kind::Took => {
                if let Some(link) = self.known(uid) {
                    link.took(header.number);
                }
            }
            Kind::Refused => {
                if let Some(link) = self.known(uid) {
                    link.refused(header.number);
                }
            }
            Kind::Done => {
                if let Some(link) = self.known(uid) {
                    link.done.store(true, Ordering::Release);
                }
            }
            Kind::Broken => {
                if let Some(link) = self.known(uid) {
                    link.lose("and messages to it were lost on the way");
                    lock(&self.news).refused.push(link);
                    self.core.poke();
                }
            }
        }
    }

    fn greeted(&self, header: &Header, body: &[u8]) {
        let mut sources = lock(&self.sources);
        let source = sources.entry(header.sender).or_insert_with(|| {
            let address = String::from_utf8_lossy(body).into_owned();
            Source::new(self.core.lane(header.sender, None), address, now() as f64 / 1e9)
        });
        if source.broken || !source.has_all(header.number) {
            self.refuse(header.sender, source, "messages from it were lost on the way");
        }
    }

    fn numbered(&self, header: &Header, frame: impl Piece) {
        let mut sources = lock(&self.sources);
        let Some(source) = sources.get_mut(&header.sender) else { return };
        if source.broken || self.core.is_closed() {
            return;
        }
        source.heard = self.heard_at.load(Ordering::Relaxed) as f64 / 1e9;
        match source.take(header, frame) {
            Ok(outcome) => {
                if outcome.refused {
                    self.link(header.sender, &source.address).control(Kind::Refused, header.number);
                }
                if let Some(parts) = outcome.took {
                    self.link(header.sender, &source.address).control(Kind::Took, parts);
                }
                if let Some((packet, urgent)) = outcome.packet {
                    self.core.deliver(source.lane, packet, urgent);
                }
            }
            Err(why) => self.refuse(header.sender, source, &why),
        }
    }

    /// Accept nothing more from a peer, and tell it: order and completeness are promised.
    fn refuse(&self, uid: u128, source: &mut Source, why: &str) {
        let link = self.link(uid, &source.address);
        if !source.broken {
            source.broken = true;
            let complaint = format!("sfm: lost process {uid:032x} at {}: {why}", source.address);
            lock(&self.news).complaints.push(complaint);
            self.core.poke();
        }
        link.control(Kind::Broken, 0);
        link.lose(&format!("({why})"));
    }
}

/// Nanoseconds of the monotonic clock, the same as Python's `time.monotonic`.
pub(super) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills in a struct of ours; this clock exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
