//! The receiving half of a message.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sfm_native::core::{Found, Payload, Receiver};
use sfm_native::matching::Numbers;
use sfm_native::packet::{Envelope, Packet};

use super::control::{MessageKind, Note, Todo};
use super::offers::Offer;
use super::operation::{End, Outcome};
use super::{engine, lock, Alike, Collective, Engine};
use crate::counting;
use crate::data::Data;
use crate::handles::*;
use crate::message::Message;

pub struct Receiving {
    pub end: End,
    /// The receive buffer.
    data: Data,
    /// True once its memory is released.
    released: Mutex<bool>,
    pub pattern: Pattern,
    /// Its number in the core while it is posted; otherwise 0.
    posted: AtomicU64,
    /// The length of a message that was too long.
    sent: AtomicU64,
}

/// The receive of a message that was taken out of the inbox.
pub enum Taken {
    /// It has ended at once, and nobody else knows it.
    Ended(Receiving),
    GoesOn(Arc<Receiving>),
}

impl Taken {
    /// As a receive that others may know.
    pub fn shared(self) -> Arc<Receiving> {
        match self {
            Taken::Ended(receiving) => Arc::new(receiving),
            Taken::GoesOn(receiving) => receiving,
        }
    }
}

impl Deref for Taken {
    type Target = Receiving;

    fn deref(&self) -> &Receiving {
        match self {
            Taken::Ended(receiving) => receiving,
            Taken::GoesOn(receiving) => receiving,
        }
    }
}

// SAFETY: the user leaves the memory to the receive until it has ended.
unsafe impl Send for Receiving {}
// SAFETY: as above; only the thread that has taken the message out of the inbox writes there.
unsafe impl Sync for Receiving {}

impl Receiving {
    /// The size of the buffer in bytes.
    pub fn room(&self) -> usize {
        self.data.len()
    }

    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Write what was fetched of a large message to the receive's memory; None if that is released.
    pub(super) fn write<T>(&self, write: impl FnOnce() -> T) -> Option<T> {
        let released = lock(&self.released);
        (!*released).then(write)
    }

    /// The length of a message that was longer than the buffer; 0 for any other.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Fail, because the message belongs to another collective call than this receive.
    fn refuse(&self, note: &Note) {
        if note.kind != MessageKind::Plain {
            engine().queue_todo(Todo::Answer(note.rank, note.number));
        }
        let (rank, what) = (note.rank as c_int, c_int::from(note.what as u8));
        let status = MPI_Status::new(rank, what, note.alike().word().into());
        self.end.set(Outcome { status, code: MPI_ERR_OTHER });
    }

    /// Take a message, and end; an offer is returned: its bytes are still to be fetched.
    fn take(&self, envelope: &Envelope, payload: Payload<'_>) -> Option<Offer> {
        let note = Note::of(envelope);
        if self.pattern.contradicts(&note) {
            self.refuse(&note);
            return None;
        }
        if note.kind == MessageKind::Offer {
            let offer = Offer::read(payload);
            if offer.is_none() {
                self.end.set(Outcome::failed(MPI_ERR_INTERN));
            }
            return offer;
        }
        // SAFETY: the receive owns the memory until it has ended.
        unsafe { self.data.fill(payload) };
        self.finish(envelope, payload.len());
        if note.kind == MessageKind::Synchronous {
            engine().queue_todo(Todo::Answer(note.rank, note.number));
        }
        None
    }

    /// End a receive whose message has `length` bytes.
    pub(super) fn finish(&self, envelope: &Envelope, length: usize) {
        let room = self.data.len();
        let code = if length > room { MPI_ERR_TRUNCATE } else { MPI_SUCCESS };
        if length > room {
            self.sent.store(length as u64, Ordering::Relaxed);
        }
        let length = length.min(room);
        if counting::is_on() {
            let from = Note::of(envelope).rank;
            counting::received(envelope.context, from, envelope.tag as c_int, length);
        }
        let status = status_of(envelope, length);
        self.end.set(Outcome { status, code });
    }
}

fn status_of(envelope: &Envelope, length: usize) -> MPI_Status {
    MPI_Status::new(envelope.source as c_int, envelope.tag as c_int, length as u64)
}

impl Receiver for Receiving {
    fn receive(self: Arc<Self>, envelope: &Envelope, payload: Payload<'_>) {
        if let Some(offer) = self.take(envelope, payload) {
            engine().queue_todo(Todo::Fetch(self, *envelope, offer));
        }
    }
}

/// The messages that a receive matches.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// The core's context (`messages`, `collectives`).
    pub context: u64,
    /// A rank of the communicator, or MPI_ANY_SOURCE.
    pub source: c_int,
    /// A tag, or MPI_ANY_TAG.
    pub tag: c_int,
    /// The sender (`process`); None for any.
    pub from: Option<usize>,
    pub what: Collective,
    pub alike: Alike,
}

impl Pattern {
    /// True for a message of another collective call, or of the same call with other arguments.
    /// Only plain messages say what these are, and some of mpi4py's do not say the call.
    pub fn contradicts(&self, note: &Note) -> bool {
        if note.what == Collective::Message || self.what == Collective::Message {
            return false;
        }
        note.what != self.what
            || note.kind == MessageKind::Plain && note.alike().differs(self.alike)
    }

    /// The source and the tag, None for any, and the context.
    pub fn numbers_and_context(&self) -> (Option<i64>, Option<i64>, u64) {
        let Numbers { source, tag } = self.numbers();
        (source, tag, self.context)
    }

    fn numbers(&self) -> Numbers {
        let number = |value: c_int, any: c_int| (value != any).then_some(i64::from(value));
        let source = number(self.source, MPI_ANY_SOURCE);
        Numbers { source, tag: number(self.tag, MPI_ANY_TAG) }
    }
}

/// The status of a message that a probe has found.
pub fn found(packet: &Packet) -> MPI_Status {
    probed(&packet.envelope().expect("only envelopes are found"), packet.payload())
}

/// The same from a message's envelope and bytes.
pub fn probed(envelope: &Envelope, bytes: &[u8]) -> MPI_Status {
    let length = match Note::of(envelope).kind {
        MessageKind::Offer => Offer::read(Payload(bytes, &[])).map_or(0, |offer| offer.length),
        _ => bytes.len(),
    };
    status_of(envelope, length)
}

impl Engine {
    /// # Safety
    /// The receive owns the memory until it has ended.
    pub unsafe fn receive(&self, pattern: &Pattern, data: Data) -> Arc<Receiving> {
        let receiving = Arc::new(Self::receiving(*pattern, data));
        let posted = self.core.post(pattern.context, pattern.numbers(), receiving.clone());
        receiving.posted.store(posted.unwrap_or(0), Ordering::Release);
        receiving
    }

    /// Take the first matching message out of the inbox, now or when it comes. The returned number
    /// is for `leave_message`.
    pub fn take_message(&self, pattern: &Pattern, message: &Arc<Message>) -> u64 {
        self.core.post(pattern.context, pattern.numbers(), message.clone()).unwrap_or(0)
    }

    /// Undo `take_message`; false if the message has come.
    pub fn leave_message(&self, pattern: &Pattern, number: u64) -> bool {
        number != 0 && self.core.unpost(pattern.context, number)
    }

    /// Receive a message that was taken out of the inbox; `what` is its collective, if any.
    ///
    /// # Safety
    /// As for `receive`.
    pub unsafe fn receive_taken(&self, message: &Message, what: Collective, data: Data) -> Taken {
        let (envelope, bytes) = message.get().expect("only what has come has a handle");
        let pattern = Pattern {
            context: envelope.context,
            source: envelope.source as c_int,
            tag: envelope.tag as c_int,
            from: Some(Note::of(envelope).rank),
            what,
            alike: Alike::default(),
        };
        let receiving = Self::receiving(pattern, data);
        let Some(offer) = receiving.take(envelope, Payload(bytes, &[])) else {
            return Taken::Ended(receiving);
        };
        let receiving = Arc::new(receiving);
        self.queue_todo(Todo::Fetch(receiving.clone(), *envelope, offer));
        Taken::GoesOn(receiving)
    }

    fn receiving(pattern: Pattern, data: Data) -> Receiving {
        let (end, posted, sent) = (End::new(), AtomicU64::new(0), AtomicU64::new(0));
        Receiving { end, data, released: Mutex::default(), pattern, posted, sent }
    }

    /// Cancel a receive; false if its message has come.
    pub fn cancel_receive(&self, receiving: &Receiving, outcome: Outcome) -> bool {
        let number = receiving.posted.load(Ordering::Acquire);
        let is_cancelled = number != 0 && self.core.unpost(receiving.pattern.context, number);
        if is_cancelled {
            receiving.end.set(outcome);
        }
        is_cancelled
    }

    /// The first message with this tag, which stays in the inbox: its sender, its call, and its
    /// bytes.
    pub fn first_of(
        &self,
        context: u64,
        tag: c_int,
    ) -> Option<(usize, (Collective, Alike), usize)> {
        let numbers = Numbers { source: None, tag: Some(tag.into()) };
        let Found::Ask(first) = self.core.find_envelope(context, numbers, false)? else {
            return None;
        };
        let note = Note::of(&first.packet.envelope()?);
        let call = (note.what, note.alike());
        Some((note.rank, call, found(&first.packet).bytes() as usize))
    }

    /// The memory of a receive is released: from now on nothing is written there, also if its
    /// message has come. The sender of a large message gets the answer that it was received.
    ///
    /// Blocks: while another thread copies a chunk there.
    pub fn release(&self, receiving: &Receiving) {
        if !receiving.end.is_done() && !self.cancel_receive(receiving, Outcome::cancelled()) {
            *lock(&receiving.released) = true;
        }
    }

    /// The first matching message, which stays in the inbox.
    pub fn probe(&self, pattern: &Pattern) -> Option<MPI_Status> {
        let first = self.core.find_envelope(pattern.context, pattern.numbers(), false);
        if counting::is_on() {
            counting::tell(|tools| (tools.update_high_water)()); // the call may have taken in messages
        }
        match first? {
            Found::Ask(candidate) => Some(found(&candidate.packet)),
            Found::Taken(_) | Found::Nothing { .. } => None,
        }
    }
}
