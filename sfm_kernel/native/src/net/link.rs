//! A link delivers everything to one incarnation of a peer, once and in order, whatever happens to
//! its connections.
//!
//! The sender keeps numbered frames, sealed, until the peer acknowledges them, which every frame of
//! the peer does. A connection may break, or lose something at a gateway. Then `Hello` asks what
//! has arrived, the frames under way are given up, and after `Welcome` the missing ones are sent
//! again in order. On a pair's first connection there is nothing to ask, and messages follow
//! `Hello` at once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::connection::Connection;
use super::control::Reason;
use super::frame::{Inner, Kind};
use super::reassembly::{Outcome, Reassembly};
use super::seal::{Opener, Sealer, Secret};
use super::window::Window;
use super::{elapsed, now};
use crate::core::Core;
use crate::reentry::Holder;
use crate::send_credit::SendCredit;
use crate::sync::lock;

/// Bytes after which the receiver acknowledges, even if it has nothing else to send.
const ACK_EVERY: usize = 128 << 10;
/// Nanoseconds for which a frame through a gateway proves that the peer is there.
const RECENTLY: u64 = 1_000_000_000;

/// An endpoint's description of itself.
pub struct Identity {
    pub uid: u128,
    pub site: u32,
    pub address: String,
    pub secret: Secret,
}

/// Thread-safe.
pub struct Link {
    pub uid: u128,
    pub site: u32,
    pub address: String,
    pub credit: Arc<SendCredit>,
    pub opener: Opener,
    /// Counter of the latest `Hello` with which the peer has begun a connection.
    pub last_hello: AtomicU64,
    uses_gateways: AtomicBool,
    /// A `Reason`; 0: none.
    dropped: AtomicU8,
    pub(super) identity: Arc<Identity>,
    lost: OnceLock<String>,
    /// The directory says that the peer is dead. What it sent before may be under way.
    pub departed: AtomicBool,
    /// Since when the peer has not answered, in nanoseconds; 0 while it answers.
    silent_since: AtomicU64,
    /// When something last came from the peer.
    received_at: AtomicU64,
    /// Number of the last frame that has come with all before it, and bytes that have come since
    /// the last acknowledgement.
    pub(super) arrived: AtomicU64,
    pub(super) unreported: AtomicUsize,
    /// Number of the first frame of the packet that the peer has no memory for.
    pub(super) refused: AtomicU64,
    /// Held while a packet is sent in fragments.
    pub(super) turn: Mutex<()>,
    /// The thread that has `turn`.
    pub holder: Holder,
    reassembly: Mutex<Reassembly>,
    pub(super) inbound: OnceLock<u32>,
    out: Mutex<Outgoing>,
}

pub(super) struct Outgoing {
    pub sealer: Sealer,
    pub number: u64,
    /// Frames that may not have arrived, by number.
    pub unacked: VecDeque<Unacked>,
    pub under_way: usize,
    pub window: Window,
    pub connection: Option<Arc<Connection>>,
    /// Something was sent on some connection: the next one begins with a question.
    pub begun: bool,
    /// The unacknowledged frames wait for `Welcome`.
    pub held: bool,
    /// The number of questions what has arrived, and how many of them are settled: an answer to a
    /// later one is enough.
    pub questions: u64,
    pub answered: u64,
    /// When something was last known to have arrived, or nothing was under way.
    pub progress: u64,
    /// Number of the first frame of the packet that is being sent in fragments.
    pub first: u64,
    pub closed: bool,
}

pub(super) struct Unacked {
    pub number: u64,
    pub frame: Arc<Vec<u8>>,
    pub at: u64,
    /// Bytes that had arrived when it was sent.
    pub delivered: u64,
    /// Nothing else was under way when it was sent.
    pub alone: bool,
}

impl Link {
    pub fn new(
        core: Arc<Core>,
        identity: Arc<Identity>,
        uid: u128,
        site: u32,
        address: &str,
    ) -> Link {
        let sealer = identity.secret.sealer(identity.uid, uid);
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
            opener: identity.secret.opener(uid, identity.uid),
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

    pub(super) fn out(&self) -> MutexGuard<'_, Outgoing> {
        lock(&self.out)
    }

    pub(super) fn reassembly(&self) -> MutexGuard<'_, Reassembly> {
        lock(&self.reassembly)
    }

    pub(super) fn core(&self) -> &Core {
        self.credit.core()
    }

    /// The path of its messages, for users: "gateway" or "tcp".
    pub fn kind(&self) -> &'static str {
        let shared = self.connection().map_or_else(
            || self.uses_gateways.load(Ordering::Relaxed),
            |connection| connection.shared,
        );
        if shared {
            "gateway"
        } else {
            "tcp"
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
        self.core().ring();
    }

    pub fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Whether the peer answers, as far as is known.
    pub fn is_up(&self) -> bool {
        // A gateway's answer proves little about the peer behind it.
        let recent =
            |connection: &Connection| !connection.shared || elapsed(self.received_at()) < RECENTLY;
        let answers = |connection: Arc<Connection>| {
            connection.confirmed.load(Ordering::Relaxed) && recent(&connection)
        };
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

    // ---- receiving ----

    /// Everything up to this number has arrived at the peer.
    pub fn settle(&self, number: u64) {
        let out = &mut *self.out();
        let (mut bytes, mut alone) = (0, false);
        let mut last = None;
        while out.unacked.front().is_some_and(|sent| sent.number <= number) {
            let sent = out.unacked.pop_front().expect("it has a front");
            bytes += sent.frame.len();
            alone |= sent.alone;
            last = Some((sent.at, sent.delivered));
        }
        let Some((at, delivered)) = last else { return };
        let now = now();
        out.under_way -= bytes;
        self.dropped.store(0, Ordering::Relaxed);
        out.progress = now;
        out.window.arrived(bytes as u64, at, delivered, alone, now);
        self.core().ring();
    }

    /// Take in a numbered frame: see `Reassembly::take`.
    pub fn take(&self, inner: &Inner, body: &[u8]) -> Result<(), String> {
        let mut reassembly = self.reassembly();
        let outcome = reassembly.take(inner, body)?;
        // In this order, and in `seal` in the reverse order: what a frame does not acknowledge
        // stays unreported.
        self.arrived.store(reassembly.arrived(), Ordering::SeqCst);
        let unreported =
            self.unreported.fetch_add(body.len().max(1), Ordering::SeqCst) + body.len();
        match outcome {
            // Delivered before the next packet is taken in.
            Outcome::Packet(packet, urgent) => self.core().deliver(self.inbound(), packet, urgent),
            Outcome::Accepted => {}
            Outcome::Refused => self.control(Kind::Refused, false, inner.number, b""),
            // The peer repeats what has come: acknowledge again.
            Outcome::Duplicate => self.unreported.store(ACK_EVERY, Ordering::Relaxed),
            Outcome::Gap => {
                if let Some(question) = reassembly.report_gap() {
                    self.control(Kind::Arrived, true, question, b"");
                }
            }
        }
        if unreported >= ACK_EVERY {
            self.send_ack();
        }
        Ok(())
    }

    /// Acknowledge what has arrived since the last acknowledgement.
    pub fn send_ack(&self) {
        if self.unreported.load(Ordering::Relaxed) > 0 {
            self.control(Kind::Arrived, false, 0, b"");
        }
    }

    /// The inbound of the packets that the peer delivers.
    pub fn inbound(&self) -> u32 {
        *self.inbound.get_or_init(|| self.core().inbound(self.uid, None))
    }

    /// Record when something came from the peer.
    pub fn set_received_at(&self, at: u64) {
        self.received_at.store(at, Ordering::Relaxed);
    }

    /// When something last came from the peer, in nanoseconds; 0: never.
    pub fn received_at(&self) -> u64 {
        self.received_at.load(Ordering::Relaxed)
    }
}
