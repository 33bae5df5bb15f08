//! Acts on what has come from one peer.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::reassembly::Outcome;
use super::Link;
use crate::clock::monotonic as now;
use crate::frame::{FrameKind, Header, Inner};
use crate::wire::Wire;

/// Bytes after which the receiver acknowledges, even if it has nothing else to send.
const ACK_EVERY: usize = 128 << 10;

/// What a frame asks of those who know the link's connections.
pub enum Effect {
    None,
    /// Something must be acknowledged soon.
    AckPending,
    /// The peer has sent what cannot be understood, and was given up.
    Damaged(String),
    /// The peer has given this process up.
    GivenUp,
    /// The peer has left: it waits for the end of its connection.
    Left,
}

/// What a peer's `Hello` on a new connection has led to.
pub enum Greeting<W> {
    /// The peer was given up before, and hears so.
    TooLate,
    /// The link uses another connection.
    Spare,
    /// The link uses this connection from now on, instead of the former one.
    Used(Option<Arc<W>>),
}

impl<W: Wire> Link<W> {
    /// Note a `Hello` with this header; returns whether it is newer than all before it, or else
    /// somebody may have recorded it.
    pub fn note_hello(&self, header: &Header) -> bool {
        self.last_hello.fetch_max(header.counter, Ordering::SeqCst) < header.counter
    }

    /// The peer has begun a connection with this `Hello`.
    pub fn greet(&self, on: &Arc<W>, takes_over: bool) -> Greeting<W> {
        if self.lost().is_some() {
            // The link has given up what the peer sent meanwhile: the peer hears it, and hangs up.
            self.send_on(FrameKind::Bye, 0, on);
            return Greeting::TooLate;
        }
        let current = self.connection();
        let replaces = match &current {
            None => true,
            // If both sides have dialed at once, the connection of the smaller uid stays.
            Some(current) if !current.is_confirmed() => takes_over && self.uid < self.identity.uid,
            Some(_) => takes_over,
        };
        if !replaces {
            return Greeting::Spare;
        }
        self.use_connection(on.clone(), false);
        Greeting::Used(current)
    }

    /// The peer says `Hello` through a gateway. Returns false if it is not new, and nothing has
    /// changed; otherwise the link uses this way if it has no other.
    pub fn greet_through(&self, gateway: &Arc<W>, header: &Header) -> bool {
        let is_new = self.note_hello(header);
        if is_new && self.connection().is_none() {
            self.use_connection(gateway.clone(), false);
        }
        is_new
    }

    /// Act on a frame of the peer, which has come on this connection at this time.
    pub fn arrived(&self, on: &W, inner: &Inner, body: &[u8], at: u64) -> Effect {
        self.received_at.store(at, Ordering::Relaxed);
        self.settle(inner.arrived);
        match inner.kind {
            FrameKind::Data | FrameKind::First | FrameKind::Fragment | FrameKind::Abort => {
                if self.lost().is_some() {
                    // The peer was out of reach for too long and does not know that it was given
                    // up.
                    self.send_on(FrameKind::Bye, 0, on);
                } else if !self.core().is_closed() {
                    return match self.take(inner, body) {
                        Ok(()) => Effect::AckPending,
                        Err(why) => self.refuse(why),
                    };
                }
            }
            FrameKind::Hello => {
                self.reassembly().note_question(inner.number);
                self.send_on(FrameKind::Welcome, inner.number, on);
                self.repeat_state();
            }
            FrameKind::Welcome => {
                self.welcomed(inner.number);
                self.repeat_state(); // the former connection may have lost it
            }
            FrameKind::Arrived if inner.flag => self.resend_missing(inner.number),
            FrameKind::Arrived | FrameKind::Beat | FrameKind::Dropped => {}
            FrameKind::Ask => {
                if !self.core().ask(self.inbound()) {
                    self.repeat_state(); // the peer may have missed the answer
                }
            }
            FrameKind::Credit => self.credit.credit(usize::from(inner.flag), inner.number),
            FrameKind::Refused => self.refused(inner.number),
            FrameKind::Bye => {
                self.lose("");
                return Effect::Left;
            }
            FrameKind::Broken => {
                self.lose("and messages to it were lost on the way");
                return Effect::GivenUp;
            }
        }
        Effect::None
    }

    /// Accept nothing more from the peer, and report that to it: order and completeness are promised.
    fn refuse(&self, why: String) -> Effect {
        self.control(FrameKind::Broken, false, 0, why.as_bytes());
        self.lose(&format!("({why})"));
        Effect::Damaged(why)
    }

    /// Everything up to this number has arrived at the peer.
    fn settle(&self, number: u64) {
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
    fn take(&self, inner: &Inner, body: &[u8]) -> Result<(), String> {
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
            Outcome::Refused => self.control(FrameKind::Refused, false, inner.number, b""),
            // The peer repeats what has come: acknowledge again.
            Outcome::Duplicate => self.unreported.store(ACK_EVERY, Ordering::Relaxed),
            Outcome::Gap => {
                if let Some(question) = reassembly.report_gap() {
                    self.control(FrameKind::Arrived, true, question, b"");
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
            self.control(FrameKind::Arrived, false, 0, b"");
        }
    }

    /// The inbound of the packets that the peer delivers.
    pub fn inbound(&self) -> u32 {
        *self.inbound.get_or_init(|| self.core().inbound(self.uid, None))
    }

    /// When something last came from the peer, in nanoseconds; 0: never.
    pub fn received_at(&self) -> u64 {
        self.received_at.load(Ordering::Relaxed)
    }
}
