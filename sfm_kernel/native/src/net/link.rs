//! The conversation with one incarnation of a peer: all that is sent arrives in order, and once,
//! whatever happens to connections.
//!
//! Numbered frames are kept, sealed, until the peer says that they have arrived, which every frame of
//! its does. A *way* to the peer is a connection, which may break, or lose something at a gateway. Then
//! `Hello` asks how far everything has come; what is under way is given up, and all that has not arrived
//! is sent again after `Welcome`, in order. On a pair's first connection there is nothing to ask, and
//! messages follow `Hello` at once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::connection::Connection;
use super::control::Reason;
use super::frame::{Inner, Kind};
use super::now;
use super::reassembly::{Outcome, Reassembly};
use super::seal::{Opener, Sealer, Secret};
use super::window::Window;
use crate::core::Core;
use crate::reentry::Holder;
use crate::send_credit::SendCredit;

/// After so many bytes the sender is told how far they have come, though nothing else goes there.
const ACK_EVERY: usize = 128 << 10;
/// What has been heard through a gateway says for so many nanoseconds that the peer is there.
const RECENTLY: u64 = 1_000_000_000;

/// What an endpoint says of itself.
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
    /// The directory says that the peer is gone. What it sent before may be under way.
    pub departed: AtomicBool,
    /// Since when the peer does not answer, in nanoseconds; 0 while it does.
    silent_since: AtomicU64,
    /// When something came from it.
    received_at: AtomicU64,
    /// Number of the last frame that has come with all before it, and bytes of which it was not told.
    pub(super) arrived: AtomicU64,
    pub(super) unreported: AtomicUsize,
    /// Number of the first part of the packet that the peer has no memory for.
    pub(super) refused: AtomicU64,
    /// Held while a packet of several parts goes out.
    pub(super) turn: Mutex<()>,
    /// Who has `turn`.
    pub holder: Holder,
    reassembly: Mutex<Reassembly>,
    pub(super) inbound: OnceLock<u32>,
    out: Mutex<Outgoing>,
}

pub(super) struct Outgoing {
    pub sealer: Sealer,
    pub number: u64,
    /// What was sent and is not known to have arrived, by number.
    pub unacked: VecDeque<Unacked>,
    pub under_way: usize,
    pub window: Window,
    pub connection: Option<Arc<Connection>>,
    /// Something was sent on some connection: the next one begins with a question.
    pub begun: bool,
    /// What is kept waits for `Welcome`.
    pub held: bool,
    /// How often it was asked how far everything has come, and how many of those questions are
    /// settled: an answer to one of the others will do.
    pub questions: u64,
    pub answered: u64,
    /// When something was known to have arrived, or nothing was under way.
    pub progress: u64,
    /// Number of the first part of the packet that goes out in parts.
    pub first: u64,
    pub closed: bool,
}

pub(super) struct Unacked {
    pub number: u64,
    pub frame: Arc<Vec<u8>>,
    pub at: u64,
    /// Bytes that had arrived by then.
    pub delivered: u64,
    /// Nothing else was under way then.
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
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn reassembly(&self) -> MutexGuard<'_, Reassembly> {
        self.reassembly.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn core(&self) -> &Core {
        self.credit.core()
    }

    /// How messages travel on it, as users know it.
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

    /// Whether messages are to go through gateways.
    pub fn set_uses_gateways(&self, uses_gateways: bool) {
        self.uses_gateways.store(uses_gateways, Ordering::Relaxed);
    }

    /// A gateway has not forwarded what was sent.
    pub fn dropped(&self, reason: Reason) {
        self.dropped.store(reason as u8, Ordering::Relaxed);
    }

    /// Why nothing arrives through gateways, as far as they have told.
    pub fn why_dropped(&self) -> Option<Reason> {
        Reason::from_u8(self.dropped.load(Ordering::Relaxed))
    }

    /// What gateways say of a peer that does not answer; "" where they say nothing.
    pub fn why_silent(&self) -> &'static str {
        let uses_gateways = self.uses_gateways.load(Ordering::Relaxed);
        self.why_dropped().filter(|_| uses_gateways).map_or("", Reason::sentence)
    }

    /// Since when something is under way of which nothing is heard, in nanoseconds; None: nothing is.
    pub fn waits_since(&self) -> Option<u64> {
        let out = self.out();
        (!out.unacked.is_empty()).then_some(out.progress)
    }

    /// The shortest round trip of late, in nanoseconds.
    pub fn round_trip(&self) -> Option<u64> {
        self.out().window.round_trip()
    }

    // ---- losing, closing ----

    /// Nothing will ever arrive at the peer any more; the first reason stays.
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
        // That a gateway answers says little of who is behind it.
        let recent =
            |connection: &Connection| !connection.shared || now() - self.received_at() < RECENTLY;
        let answers = |connection: Arc<Connection>| {
            connection.confirmed.load(Ordering::Relaxed) && recent(&connection)
        };
        let departed = self.lost.get().is_some() || self.departed.load(Ordering::Relaxed);
        !departed && self.connection().is_some_and(answers)
    }

    /// Since when the peer does not answer, in nanoseconds of the monotonic clock; 0 while it does.
    pub fn silent_since(&self) -> u64 {
        self.silent_since.load(Ordering::Relaxed)
    }

    /// `since`: 0 when it answers again.
    pub fn set_silent(&self, since: u64) {
        self.silent_since.store(since, Ordering::Relaxed);
    }

    /// Whether all that was sent has arrived.
    pub fn is_empty(&self) -> bool {
        self.out().unacked.is_empty()
    }

    /// Lose it. What was not sent is given up.
    pub fn close(&self, why: &str) {
        self.lose(why);
        let out = &mut *self.out();
        out.closed = true;
        out.connection = None;
    }

    // ---- what comes ----

    /// Everything up to this number has arrived at the peer.
    pub fn settle(&self, number: u64) {
        let out = &mut *self.out();
        let (mut bytes, mut alone) = (0, false);
        let mut last = None;
        while out.unacked.front().is_some_and(|one| one.number <= number) {
            let one = out.unacked.pop_front().expect("it has a front");
            bytes += one.frame.len();
            alone |= one.alone;
            last = Some((one.at, one.delivered));
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
        // In this order, and `seal` in the other one: what it does not tell stays untold.
        self.arrived.store(reassembly.arrived(), Ordering::SeqCst);
        let unreported =
            self.unreported.fetch_add(body.len().max(1), Ordering::SeqCst) + body.len();
        match outcome {
            // Delivered before the next one is taken in.
            Outcome::Packet(packet, urgent) => self.core().deliver(self.inbound(), packet, urgent),
            Outcome::Accepted => {}
            Outcome::Refused => self.control(Kind::Refused, false, inner.number, b""),
            // Sent again though it had come: said again how far it has.
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

    /// Say how far everything has come, if it was not said since.
    pub fn send_ack(&self) {
        if self.unreported.load(Ordering::Relaxed) > 0 {
            self.control(Kind::Arrived, false, 0, b"");
        }
    }

    /// The inbound of what it delivers.
    pub fn inbound(&self) -> u32 {
        *self.inbound.get_or_init(|| self.core().inbound(self.uid, None))
    }

    /// Something has come from it.
    pub fn set_received_at(&self, at: u64) {
        self.received_at.store(at, Ordering::Relaxed);
    }

    /// When something came from it, in nanoseconds; 0: never.
    pub fn received_at(&self) -> u64 {
        self.received_at.load(Ordering::Relaxed)
    }
}
