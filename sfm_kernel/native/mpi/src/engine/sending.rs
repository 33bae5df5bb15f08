//! The sending half of a message.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sfm_native::packet::Envelope;

use super::control::{Kind, Note};
use super::offers::Offer;
use super::operation::{End, Outcome};
use super::peer::{Sent, Waiting};
use super::{limits, lock, Engine, What};
use crate::data::Data;
use crate::handles::*;
use crate::tool::counting;

/// What the end of a send says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The memory may be used again.
    Standard,
    /// So may it, and the receive has begun.
    Synchronous,
}

pub struct Sending {
    pub end: End,
    /// The receiver (`process`).
    pub dest: usize,
    pub(super) envelope: Envelope,
    bytes: Mutex<Bytes>,
    /// Not 0 while the bytes are in the user's memory, where a receiver may fetch them.
    stands: AtomicU64,
    /// It ends when its bytes have gone, and not only when the receiver says so.
    ends_gone: bool,
}

/// What is sent.
struct Bytes {
    from: *const u8,
    length: usize,
    /// Where they are, if not in the user's memory.
    own: Option<Vec<u8>>,
}

// SAFETY: the user leaves the memory as it is until the send has ended.
unsafe impl Send for Sending {}
// SAFETY: as above.
unsafe impl Sync for Sending {}

impl Sending {
    pub fn context(&self) -> u64 {
        self.envelope.context
    }

    pub fn tag(&self) -> c_int {
        self.envelope.tag as c_int
    }

    /// Do something with the bytes, which stay where they are meanwhile.
    pub(super) fn with_bytes<T>(&self, work: impl FnOnce(*const u8, usize) -> T) -> T {
        let bytes = lock(&self.bytes);
        work(bytes.from, bytes.length)
    }

    /// The user is about to have the memory back before the send has ended: keep a copy.
    pub fn keep(&self) {
        let mut bytes = lock(&self.bytes);
        if bytes.own.is_none() && bytes.length > 0 {
            // SAFETY: until now the bytes are there.
            let copy = unsafe { std::slice::from_raw_parts(bytes.from, bytes.length) }.to_vec();
            bytes.from = copy.as_ptr();
            bytes.own = Some(copy);
            // SYNC POINT offer: a receiver reads this after the bytes, which change only after it.
            self.stands.store(0, Ordering::SeqCst);
        }
    }

    /// Where a receiver finds out whether what it has fetched were the bytes.
    pub(super) fn stands_at(&self) -> usize {
        self.stands.as_ptr() as usize
    }

    /// Its bytes have gone.
    pub(super) fn gone(&self) {
        if self.ends_gone {
            self.end.set(Outcome::of_send());
        }
    }
}

/// Where a message goes.
#[derive(Clone, Copy, Debug)]
pub struct To {
    /// The core's (`messages`, `collectives`).
    pub context: u64,
    /// The receiver (`process`).
    pub rank: usize,
    /// The sender, in the communicator.
    pub source: c_int,
    pub tag: c_int,
    pub what: What,
    /// The call of the program's that sends it, by number (`left`).
    pub site: u32,
}

impl Engine {
    /// Send; None where it has ended at once.
    ///
    /// # Safety
    /// The data stays as it is until the send has ended.
    pub unsafe fn send(&self, to: To, mode: Mode, data: &Data) -> Option<Arc<Sending>> {
        let (from, length, packed) = match data.contiguous() {
            Some(from) => (from.cast_const(), data.len(), None),
            None => {
                // SAFETY: as the caller promises.
                let packed = unsafe { data.pack() };
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
            counting::sent(&to, length);
        }
        let offered = length >= limits::OFFER_FROM.get() && to.rank != self.rank;
        let kind = match mode {
            _ if offered => Kind::Offer,
            Mode::Standard => Kind::Plain,
            Mode::Synchronous => Kind::Synchronous,
        };
        let number = if kind == Kind::Plain { to.site } else { 0 };
        let mut note = Note { kind, what: to.what, rank: self.rank, number };
        let (source, tag) = (i64::from(to.source), i64::from(to.tag));
        let mut envelope = Envelope { context: to.context, source, tag, note: note.word() };
        if kind == Kind::Plain {
            // SAFETY: `send` and `send_copy` are promised that the bytes are there.
            if unsafe { self.try_send(to.rank, &envelope, from, length) } == Sent::Gone {
                return None;
            }
        } else {
            note.number = lock(&self.answered).next();
            envelope.note = note.word();
        }
        let ends_gone = kind == Kind::Plain;
        let (end, bytes) = (End::new(), Mutex::new(Bytes { from, length, own: packed }));
        let stands = AtomicU64::new(1);
        let sending = Arc::new(Sending { end, dest: to.rank, envelope, bytes, stands, ends_gone });
        if kind != Kind::Plain {
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

    /// The same of a copy, so that the data may be used again at once.
    ///
    /// # Safety
    /// The data is there.
    pub unsafe fn send_copy(&self, to: To, mode: Mode, data: &Data) -> Option<Arc<Sending>> {
        // SAFETY: as the caller promises.
        let packed = unsafe { data.pack() };
        self.send_from(to, mode, packed.as_ptr(), packed.len(), Some(packed))
    }

    /// Sends whose receiver has not said yet that it has them.
    pub fn unanswered(&self) -> usize {
        lock(&self.answered).all.len()
    }

    /// One of the sends that have not gone, or whose receiver has not said that it has them.
    pub fn first_not_received(&self) -> Option<Arc<Sending>> {
        let answered = lock(&self.answered).all.values().next().cloned();
        answered.or_else(|| self.first_waiting())
    }

    /// The same of those in one context.
    pub fn has_sent_all_in(&self, context: u64) -> bool {
        let is_it = |sending: &Arc<Sending>| sending.envelope.context == context;
        !self.has_waiting_in(context) && !lock(&self.answered).all.values().any(is_it)
    }

    /// All sends have gone that nobody waits for any more.
    pub fn has_sent_all(&self) -> bool {
        self.queued.load(Ordering::Acquire) == 0 && lock(&self.answered).all.is_empty()
    }
}
