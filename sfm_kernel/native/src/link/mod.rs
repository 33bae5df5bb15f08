//! A link delivers everything to one incarnation of a peer, once and in order, whatever happens to
//! its connections.
//!
//! ```text
//! window      how many bytes may be under way to one peer
//! reassembly  puts one peer's frames in order and packets together
//! outgoing    sends to one peer
//! resuming    chooses a link's connection, and resends on a new one
//! incoming    acts on what has come from one peer
//! ```
//!
//! The sender keeps numbered frames, sealed, until the peer acknowledges them, which every frame of
//! the peer does. A connection may break, or lose something at a gateway. Then `Hello` asks what
//! has arrived, the frames under way are given up, and after `Welcome` the missing ones are sent
//! again in order. On a pair's first connection there is nothing to ask, and messages follow
//! `Hello` at once.

mod incoming;
mod outgoing;
mod reassembly;
mod resuming;
#[cfg(test)]
mod tests;
mod window;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use self::reassembly::Reassembly;
use self::window::Window;
use crate::clock::{elapsed, monotonic as now};
use crate::core::Core;
use crate::core::SendCredit;
use crate::frame::control::Reason;
use crate::frame::seal::{Opener, Sealer, Secret};
use crate::reentry::Holder;
use crate::sync::lock;
use crate::wire::Wire;

pub use self::incoming::{Effect, Greeting};

/// Nanoseconds for which a frame through a gateway proves that the peer is there.
const RECENTLY: u64 = 1_000_000_000;

/// An endpoint's description of itself.
pub struct Identity {
    pub uid: u128,
    pub site: u32,
    pub address: String,
    pub secret: Secret,
}

impl Identity {
    /// Seals for a process of this site or another one.
    fn sealer(&self, uid: u128, site: u32) -> Sealer {
        if site == self.site {
            Sealer::clear()
        } else {
            self.secret.sealer(self.uid, uid)
        }
    }

    /// Opens what a process of this site or another one has sent to `receiver`.
    pub fn opener(&self, sender: u128, site: u32, receiver: u128) -> Opener {
        if site == self.site {
            Opener::clear()
        } else {
            self.secret.opener(sender, receiver)
        }
    }
}

/// Thread-safe.
pub struct Link<W: Wire> {
    pub uid: u128,
    pub site: u32,
    pub address: String,
    pub credit: Arc<SendCredit>,
    /// Bytes of the largest packet that goes in one frame.
    pub largest: usize,
    pub opener: Opener,
    /// Counter of the latest `Hello` with which the peer has begun a connection.
    last_hello: AtomicU64,
    uses_gateways: AtomicBool,
    /// A `Reason`; 0: none.
    dropped: AtomicU8,
    identity: Arc<Identity>,
    lost: OnceLock<String>,
    /// The directory says that the peer is dead. What it sent before may be under way.
    pub departed: AtomicBool,
    /// Since when the peer has not answered, in nanoseconds; 0 while it answers.
    silent_since: AtomicU64,
    /// When something last came from the peer.
    received_at: AtomicU64,
    /// Number of the last frame that has come with all before it, and bytes that have come since
    /// the last acknowledgement.
    arrived: AtomicU64,
    unreported: AtomicUsize,
    /// Number of the first frame of the packet that the peer has no memory for.
    refused: AtomicU64,
    /// Held while a packet is sent in fragments.
    turn: Mutex<()>,
    /// The thread that has `turn`.
    pub holder: Holder,
    reassembly: Mutex<Reassembly>,
    inbound: OnceLock<u32>,
    out: Mutex<Outgoing<W>>,
}

struct Outgoing<W: Wire> {
    sealer: Sealer,
    number: u64,
    /// Frames that may not have arrived, by number.
    unacked: VecDeque<Unacked>,
    under_way: usize,
    window: Window,
    connection: Option<Arc<W>>,
    /// Something was sent on some connection: the next one begins with a question.
    begun: bool,
    /// The unacknowledged frames wait for `Welcome`.
    held: bool,
    /// The number of questions what has arrived, and how many of them are settled: an answer to a
    /// later one is enough.
    questions: u64,
    answered: u64,
    /// When something was last known to have arrived, or nothing was under way.
    progress: u64,
    /// Number of the first frame of the packet that is being sent in fragments.
    first: u64,
    closed: bool,
}

struct Unacked {
    number: u64,
    frame: Arc<Vec<u8>>,
    at: u64,
    /// Bytes that had arrived when it was sent.
    delivered: u64,
    /// Nothing else was under way when it was sent.
    alone: bool,
}

impl<W: Wire> Link<W> {
    pub fn new(
        core: Arc<Core>,
        identity: Arc<Identity>,
        uid: u128,
        site: u32,
        address: &str,
    ) -> Link<W> {
        let sealer = identity.sealer(uid, site);
        let largest = sealer.largest();
        let out = Outgoing {
            sealer,
            number: 0,
            unacked: VecDeque::new(),
            under_way: 0,
            window: Window::default(),
            connection: None,
            begun: false,
            held: false,
            questions: 0,
            answered: 0,
            progress: now(),
            first: 0,
            closed: false,
        };
        Link {
            uid,
            site,
            address: address.to_owned(),
            credit: Arc::new(SendCredit::new(core, uid)),
            largest,
            opener: identity.opener(uid, site, identity.uid),
            last_hello: AtomicU64::new(0),
            uses_gateways: AtomicBool::new(false),
            dropped: AtomicU8::new(0),
            identity,
            lost: OnceLock::new(),
            departed: AtomicBool::new(false),
            silent_since: AtomicU64::new(0),
            received_at: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
            unreported: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            turn: Mutex::new(()),
            holder: Holder::default(),
            reassembly: Mutex::default(),
            inbound: OnceLock::new(),
            out: Mutex::new(out),
        }
    }

    fn out(&self) -> MutexGuard<'_, Outgoing<W>> {
        lock(&self.out)
    }

    fn reassembly(&self) -> MutexGuard<'_, Reassembly> {
        lock(&self.reassembly)
    }

    fn core(&self) -> &Core {
        self.credit.core()
    }

    /// The path of its messages, for users: "gateway" or "zmq".
    pub fn kind(&self) -> &'static str {
        let shared = self.connection().map_or_else(
            || self.uses_gateways.load(Ordering::Relaxed),
            |connection| connection.is_shared(),
        );
        if shared {
            "gateway"
        } else {
            "zmq"
        }
    }

    /// Whether messages go through gateways.
    pub fn set_uses_gateways(&self, uses_gateways: bool) {
        self.uses_gateways.store(uses_gateways, Ordering::Relaxed);
    }

    /// A gateway has dropped frames to this peer.
    pub fn dropped(&self, reason: Reason) {
        self.dropped.store(reason as u8, Ordering::Relaxed);
    }

    /// Why nothing arrives through gateways, as far as they have reported.
    pub fn why_dropped(&self) -> Option<Reason> {
        Reason::from_u8(self.dropped.load(Ordering::Relaxed))
    }

    /// The gateways' reason why the peer does not answer; "" if they have none.
    pub fn why_silent(&self) -> &'static str {
        let uses_gateways = self.uses_gateways.load(Ordering::Relaxed);
        self.why_dropped().filter(|_| uses_gateways).map_or("", Reason::sentence)
    }

    /// Since when the link has waited for an acknowledgement, in nanoseconds; None if nothing is
    /// under way.
    pub fn waits_since(&self) -> Option<u64> {
        let out = self.out();
        (!out.unacked.is_empty()).then_some(out.progress)
    }

    // ---- losing, closing ----

    /// Give the peer up: nothing more will arrive there. The first reason stays.
    pub fn lose(&self, why: &str) {
        let _ = self.lost.set(why.to_owned());
        self.out().unacked.clear();
        self.core().note_loss();
    }

    pub fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Whether the peer answers, as far as is known.
    pub fn is_up(&self) -> bool {
        // A gateway's answer proves little about the peer behind it.
        let recent =
            |connection: &W| !connection.is_shared() || elapsed(self.received_at()) < RECENTLY;
        let answers = |connection: Arc<W>| connection.is_confirmed() && recent(&connection);
        let departed = self.lost.get().is_some() || self.departed.load(Ordering::Relaxed);
        !departed && self.connection().is_some_and(answers)
    }

    /// Since when the peer has not answered, in nanoseconds of the monotonic clock; 0 while it
    /// answers.
    pub fn silent_since(&self) -> u64 {
        self.silent_since.load(Ordering::Relaxed)
    }

    /// The peer has not answered since `since`, or since an earlier time that was noted.
    pub fn begin_silence(&self, since: u64) {
        let relaxed = Ordering::Relaxed;
        let _ = self.silent_since.compare_exchange(0, since, relaxed, relaxed);
    }

    /// The peer answers.
    pub fn end_silence(&self) {
        self.silent_since.store(0, Ordering::Relaxed);
    }

    /// Whether everything that was sent has arrived.
    pub fn is_empty(&self) -> bool {
        self.out().unacked.is_empty()
    }

    /// Give the peer up and drop what was not sent.
    pub fn close(&self, why: &str) {
        self.lose(why);
        let out = &mut *self.out();
        out.closed = true;
        out.connection = None;
    }
}
