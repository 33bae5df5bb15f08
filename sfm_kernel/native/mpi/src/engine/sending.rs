//! The sending half of a message.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sfm_native::packet::Envelope;

use super::control::{MessageKind, Note};
use super::offers::{Offer, VALID};
use super::operation::{End, Outcome};
use super::peer::Sent;
use super::queue::Waiting;
use super::{limits, lock, site_of, Collective, Engine};
use crate::counting;
use crate::data::Data;
use crate::handles::*;

/// The meaning of a send's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The memory may be used again.
    Standard,
    /// The memory may be used again, and the receive has begun.
    Synchronous,
}

pub struct Sending {
    pub end: End,
    /// The receiver (`process`).
    pub dest: usize,
    pub(super) envelope: Envelope,
    bytes: Mutex<Bytes>,
    /// VALID, not 0, while the bytes are in the user's memory, where a receiver may fetch them.
    valid: AtomicU64,
    /// True if it ends when its bytes are sent; false if the receiver's answer ends it.
    ends_gone: bool,
}

struct Bytes {
    from: *const u8,
    length: usize,
    /// A copy of the bytes, if they are not in the user's memory.
    copy: Option<Vec<u8>>,
}

// SAFETY: the user leaves the memory unchanged until the send has ended.
unsafe impl Send for Sending {}
// SAFETY: the user leaves the memory unchanged until the send has ended, and the rest is atomic
// or behind a lock.
unsafe impl Sync for Sending {}

impl Sending {
    pub fn context(&self) -> u64 {
        self.envelope.context
    }

    pub fn tag(&self) -> c_int {
        self.envelope.tag as c_int
    }

    /// Use the bytes, which stay at this address meanwhile.
    pub(super) fn with_bytes<T>(&self, work: impl FnOnce(*const u8, usize) -> T) -> T {
        let bytes = lock(&self.bytes);
        work(bytes.from, bytes.length)
    }

    /// Keep a copy, because the user is about to get the memory back before the send has ended.
    pub fn keep(&self) {
        let mut bytes = lock(&self.bytes);
        if bytes.copy.is_none() && bytes.length > 0 {
            // SAFETY: the user leaves the bytes valid until the send has ended, which it has not
            // yet.
            let copy = unsafe { std::slice::from_raw_parts(bytes.from, bytes.length) }.to_vec();
            bytes.from = copy.as_ptr();
            bytes.copy = Some(copy);
            // SYNC POINT offer: a receiver reads this after the bytes, which change only after it.
            self.valid.store(0, Ordering::SeqCst);
        }
    }

    /// The address where a receiver checks that the bytes it has fetched were valid.
    pub(super) fn valid_address(&self) -> usize {
        self.valid.as_ptr() as usize
    }

    /// Note that its bytes are sent.
    pub(super) fn gone(&self) {
        if self.ends_gone {
            self.end.set(Outcome::of_send());
        }
    }
}

/// The destination of a message.
#[derive(Clone, Copy, Debug)]
pub struct To {
    /// The core's context (`messages`, `collectives`).
    pub context: u64,
    /// The receiver (`process`).
    pub rank: usize,
    /// The sender's rank in the communicator.
    pub source: c_int,
    pub tag: c_int,
    pub what: Collective,
    /// The number of the program's call that sends it (`unfinished`); for a message of a collective
    /// its mark (`history`).
    pub mark: u32,
}

impl To {
    /// The number of the program's call.
    pub fn site(&self) -> u32 {
        match self.what {
            Collective::Message => self.mark,
            _ => site_of(self.mark),
        }
    }
}

impl Engine {
    /// Send; None if the send has ended at once.
    ///
    /// # Safety
    /// The data is unchanged until the send has ended.
    pub unsafe fn send(&self, to: To, mode: Mode, data: &Data) -> Option<Arc<Sending>> {
        let (from, length, packed) = match data.contiguous() {
            Some(from) => (from.cast_const(), data.len(), None),
            None => {
                let packed = data.pack();
                (packed.as_ptr(), packed.len(), Some(packed))
            }
        };
        self.send_from(to, mode, from, length, packed)
    }

    /// `packed`: the memory, if it is not the user's.
    fn send_from(
        &self,
        to: To,
        mode: Mode,
        from: *const u8,
        length: usize,
        packed: Option<Vec<u8>>,
    ) -> Option<Arc<Sending>> {
        if counting::is_on() {
            counting::sent(to.context, to.rank, to.tag, length);
        }
        let is_large = length >= limits::OFFER_FROM.get()
            || length >= limits::OFFER_FAR_FROM && !self.endpoint.is_near(to.rank)
            || length > limits::ALWAYS_FITS && length > self.longest(to.rank);
        let offered = is_large && to.rank != self.rank;
        let kind = match mode {
            _ if offered => MessageKind::Offer,
            Mode::Standard => MessageKind::Plain,
            Mode::Synchronous => MessageKind::Synchronous,
        };
        let number = if kind == MessageKind::Plain { to.mark } else { 0 };
        let mut note = Note { kind, what: to.what, rank: self.rank, number };
        let (source, tag) = (i64::from(to.source), i64::from(to.tag));
        let mut envelope = Envelope { context: to.context, source, tag, note: note.word() };
        if kind == MessageKind::Plain {
            // SAFETY: the callers of `send` and `send_copy` promise that the bytes are valid.
            if unsafe { self.try_send(to.rank, &envelope, from, length) } == Sent::Gone {
                return None;
            }
        } else {
            note.number = lock(&self.answered).next();
            envelope.note = note.word();
        }
        let ends_gone = kind == MessageKind::Plain;
        let (end, bytes) = (End::new(), Mutex::new(Bytes { from, length, copy: packed }));
        let valid = AtomicU64::new(VALID);
        let sending = Arc::new(Sending { end, dest: to.rank, envelope, bytes, valid, ends_gone });
        if kind != MessageKind::Plain {
            lock(&self.answered).all.insert(note.number, sending.clone());
        }
        if offered {
            let offer = Offer::of(self, from, length, &sending);
            self.put(to.rank, Waiting::control(envelope, offer.bytes()));
        } else {
            self.put(to.rank, Waiting::send(sending.clone()));
        }
        Some(sending)
    }

    /// Send a copy, so that the data may be used again at once.
    ///
    /// # Safety
    /// The data is valid.
    pub unsafe fn send_copy(&self, to: To, mode: Mode, data: &Data) -> Option<Arc<Sending>> {
        let packed = data.pack();
        self.send_from(to, mode, packed.as_ptr(), packed.len(), Some(packed))
    }

    /// The number of sends that wait for the receiver's answer.
    pub fn unanswered(&self) -> usize {
        lock(&self.answered).all.len()
    }

    /// One of the sends that are not sent, or whose receiver has not answered.
    pub fn first_not_received(&self) -> Option<Arc<Sending>> {
        let answered = lock(&self.answered).all.values().next().cloned();
        answered.or_else(|| self.first_waiting())
    }

    /// The receivers of those sends of one context that are not sent, or not answered.
    pub fn receivers_in(&self, context: u64) -> Vec<usize> {
        let mut receivers = self.receivers_waited_for_in(context);
        let answered = lock(&self.answered);
        let open = answered.all.values().filter(|sending| sending.envelope.context == context);
        receivers.extend(open.map(|sending| sending.dest));
        receivers
    }

    /// The receivers of all sends that are not answered.
    pub fn receivers(&self) -> Vec<usize> {
        lock(&self.answered).all.values().map(|sending| sending.dest).collect()
    }

    /// True if all sends are sent and answered.
    pub fn has_sent_all(&self) -> bool {
        self.held_back.load(Ordering::Acquire) == 0 && lock(&self.answered).all.is_empty()
    }
}
