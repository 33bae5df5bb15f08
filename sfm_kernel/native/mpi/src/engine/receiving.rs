//! The receiving half of a message.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use sfm_native::core::{Found, Payload, Receiver};
use sfm_native::matching::Numbers;
use sfm_native::packet::{Envelope, Packet};

use super::control::{Kind, Note, Todo};
use super::offers::Offer;
use super::operation::{End, Outcome};
use super::{engine, lock, Engine, What};
use crate::data::Data;
use crate::handles::*;
use crate::message::Message;
use crate::tool::{counting, sessions};

pub struct Receiving {
    pub end: End,
    /// Where the bytes go.
    pub(super) data: Data,
    pub wanted: Wanted,
    /// Its number in the core while it is posted; 0 else.
    posted: AtomicU64,
}

// SAFETY: the user leaves the memory to the receive until it has ended.
unsafe impl Send for Receiving {}
// SAFETY: as above; only who has taken the message out of the queue writes there.
unsafe impl Sync for Receiving {}

impl Receiving {
    /// Bytes that there is room for.
    pub fn room(&self) -> usize {
        self.data.len()
    }

    /// What has come is of another collective call than this one.
    fn refuse(&self, note: &Note) {
        if note.kind != Kind::Plain {
            engine().leave(Todo::Answer(note.rank, note.number));
        }
        let mut outcome = Outcome::failed(MPI_ERR_OTHER);
        outcome.status.MPI_SOURCE = note.rank as c_int;
        outcome.status.MPI_TAG = c_int::from(note.what as u8);
        self.end.set(outcome);
    }

    /// The end of a receive of which `length` bytes came.
    pub(super) fn finish(&self, envelope: &Envelope, length: usize) {
        let room = self.data.len();
        let code = if length > room { MPI_ERR_TRUNCATE } else { MPI_SUCCESS };
        let length = length.min(room);
        if counting::is_on() {
            counting::received(envelope, length);
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
        let note = Note::of(envelope);
        if note.what != self.wanted.what {
            self.refuse(&note);
            return;
        }
        match note.kind {
            Kind::Offer => match Offer::read(payload) {
                Some(offer) => engine().leave(Todo::Fetch(self, *envelope, offer)),
                None => self.end.set(Outcome::failed(MPI_ERR_INTERN)),
            },
            kind => {
                // SAFETY: the memory is the receive's until it has ended.
                unsafe { self.data.fill(payload) };
                self.finish(envelope, payload.len());
                if kind == Kind::Synchronous {
                    engine().leave(Todo::Answer(note.rank, note.number));
                }
            }
        }
    }
}

/// Which messages a receive takes.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The core's (`messages`, `collectives`).
    pub context: u64,
    /// In the communicator, or MPI_ANY_SOURCE.
    pub source: c_int,
    /// Or MPI_ANY_TAG.
    pub tag: c_int,
    /// The sender (`process`); None for anybody.
    pub from: Option<usize>,
    pub what: What,
}

impl Wanted {
    fn numbers(&self) -> Numbers {
        let number = |value: c_int, any: c_int| (value != any).then_some(i64::from(value));
        let source = number(self.source, MPI_ANY_SOURCE);
        Numbers { source, tag: number(self.tag, MPI_ANY_TAG) }
    }
}

/// What a probe has found.
pub fn found(packet: &Packet) -> MPI_Status {
    probed(&packet.envelope().expect("only envelopes are found"), packet.payload())
}

/// The same of a message's envelope and what has come with it.
pub fn probed(envelope: &Envelope, bytes: &[u8]) -> MPI_Status {
    let length = match Note::of(envelope).kind {
        Kind::Offer => Offer::read(Payload(bytes, &[])).map_or(0, |offer| offer.length),
        _ => bytes.len(),
    };
    status_of(envelope, length)
}

impl Engine {
    /// Receive into `data`.
    ///
    /// # Safety
    /// The memory is the receive's until it has ended.
    pub unsafe fn receive(&self, wanted: &Wanted, data: Data) -> Arc<Receiving> {
        let receiving = Arc::new(Self::receiving(*wanted, data));
        let posted = self.core.post(wanted.context, wanted.numbers(), receiving.clone());
        receiving.posted.store(posted.unwrap_or(0), Ordering::Release);
        receiving
    }

    /// Take the first message that is wanted out of the queue: now, or when it comes. The number is
    /// for `leave_message`.
    pub fn take_message(&self, wanted: &Wanted, message: &Arc<Message>) -> u64 {
        self.core.post(wanted.context, wanted.numbers(), message.clone()).unwrap_or(0)
    }

    /// Do not; false where it has come.
    pub fn leave_message(&self, wanted: &Wanted, number: u64) -> bool {
        number != 0 && self.core.unpost(wanted.context, number)
    }

    /// Receive a message of a collective, or of none, that was taken out of the queue.
    ///
    /// # Safety
    /// As of `receive`.
    pub unsafe fn receive_taken(
        &self,
        message: &Message,
        what: What,
        data: Data,
    ) -> Arc<Receiving> {
        let (envelope, bytes) = message.get().expect("only what has come has a handle");
        let wanted = Wanted {
            context: envelope.context,
            source: envelope.source as c_int,
            tag: envelope.tag as c_int,
            from: Some(Note::of(envelope).rank),
            what,
        };
        let receiving = Arc::new(Self::receiving(wanted, data));
        receiving.clone().receive(envelope, Payload(bytes, &[]));
        receiving
    }

    fn receiving(wanted: Wanted, data: Data) -> Receiving {
        let (end, posted) = (End::new(), AtomicU64::new(0));
        Receiving { end, data, wanted, posted }
    }

    /// Take a receive back; false where its message has come.
    pub fn take_back(&self, receiving: &Receiving, outcome: Outcome) -> bool {
        let number = receiving.posted.load(Ordering::Acquire);
        let is_back = number != 0 && self.core.unpost(receiving.wanted.context, number);
        if is_back {
            receiving.end.set(outcome);
        }
        is_back
    }

    /// The first message with this tag, which stays where it is: its sender, the call that it belongs
    /// to, and how many bytes it has.
    pub fn first_of(&self, context: u64, tag: c_int) -> Option<(usize, What, usize)> {
        let wanted = Numbers { source: None, tag: Some(tag.into()) };
        let Found::Ask(first) = self.core.look_for(context, wanted, false)? else { return None };
        let note = Note::of(&first.packet.envelope()?);
        Some((note.rank, note.what, found(&first.packet).bytes() as usize))
    }

    /// The memory of a receive that was not taken back is given back: of a large message, which has
    /// been offered, no bytes go there any more. Its sender goes on as if they had come.
    pub fn abandon(&self, receiving: &Arc<Receiving>) {
        for one in &mut *lock(&self.todo) {
            match one {
                Todo::Fetch(other, envelope, _) if Arc::ptr_eq(other, receiving) => {
                    let note = Note::of(envelope);
                    *one = Todo::Answer(note.rank, note.number);
                }
                _ => {}
            }
        }
        lock(&self.poured).all.retain(|_, one| !one.is_of(receiving));
    }

    /// The first message that is wanted, which stays where it is.
    pub fn probe(&self, wanted: &Wanted) -> Option<MPI_Status> {
        let first = self.core.look_for(wanted.context, wanted.numbers(), false);
        if counting::is_on() {
            sessions::look(); // the look may have taken in what has come
        }
        match first? {
            Found::Ask(candidate) => Some(found(&candidate.packet)),
            Found::Taken(_) | Found::Nothing { .. } => None,
        }
    }
}
