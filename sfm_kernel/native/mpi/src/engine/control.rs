//! Kinds of messages, and what the two libraries say to each other about them.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use sfm_native::core::{Payload, Receiver};
use sfm_native::packet::Envelope;

use super::offers::{Accept, Offer};
use super::operation::Outcome;
use super::peer::Waiting;
use super::{cancelling, engine, lock, Engine, Receiving, Sending, What, CONTROL};
use crate::window::served;
use crate::{left, process};

/// What a message is. The note of its envelope has the kind, then the collective call that it is of,
/// the number of the sender (`process`), and above it the number under which the sender knows it, if it
/// is to hear of it; else, of the program's messages, that of the call that has sent it (`left`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// The bytes are here.
    Plain = 0,
    /// So are these, and the sender waits to hear that they were received.
    Synchronous = 1,
    /// Where the bytes are.
    Offer = 2,
    // In the control context:
    /// What was sent under that number has been received.
    Received = 3,
    /// An offer's bytes are being fetched; its sender may help.
    Accepted = 4,
    /// They cannot be fetched: the sender is to pour them out. `tag`: the receive's number.
    Pull = 5,
    /// Some of them, for the receive of number `tag`, from the place `source` on.
    Poured = 6,
    /// What was sent under that number, with the tag `tag`, is wanted back if nobody has it.
    Cancel = 7,
    /// It was forgotten.
    Cancelled = 8,
    /// Something that the peer waits for in shared memory has changed: it is to look again.
    Nudge = 9,
    /// An operation on a window's memory here, and what comes back of one (`window::served`).
    Access = 10,
    Accessed = 11,
    /// As many messages as `tag` says that were sent in the call of that number (`left`), with these
    /// arguments, were never received.
    Unreceived = 12,
    /// The sender has left the collective call of number `tag` before its end (`early`).
    Left = 13,
}

impl Kind {
    fn of(note: u64) -> Kind {
        use Kind::*;
        match note & 0xf {
            1 => Synchronous,
            2 => Offer,
            3 => Received,
            4 => Accepted,
            5 => Pull,
            6 => Poured,
            7 => Cancel,
            8 => Cancelled,
            9 => Nudge,
            10 => Access,
            11 => Accessed,
            12 => Unreceived,
            13 => Left,
            _ => Plain,
        }
    }
}

/// Where the number begins, to the end of the note.
const NUMBER_AT: u32 = 12 + process::BITS;
/// Numbers are smaller than this.
pub(super) const NUMBERS: u32 = 1 << (64 - NUMBER_AT);

/// What the note of an envelope says.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    pub kind: Kind,
    pub what: What,
    /// Of its sender: its number (`process`).
    pub rank: usize,
    pub number: u32,
}

impl Note {
    pub fn of(envelope: &Envelope) -> Note {
        let note = envelope.note;
        let rank = (note >> 12) as usize & ((1 << process::BITS) - 1);
        let (what, number) = (What::of((note >> 4) as u8), (note >> NUMBER_AT) as u32);
        Note { kind: Kind::of(note), what, rank, number }
    }

    pub fn word(&self) -> u64 {
        let (kind, what) = (self.kind as u64, self.what as u64);
        kind | what << 4 | (self.rank as u64) << 12 | u64::from(self.number) << NUMBER_AT
    }
}

/// What is to be done about a message that has come in.
pub enum Todo {
    /// Tell a sender that what it sent under this number was received.
    Answer(usize, u32),
    Fetch(Arc<Receiving>, Envelope, Offer),
    Received(u32),
    Accepted(Note, Accept),
    Pull(Note, i64),
    /// With a tag and a context.
    Forget(Note, i64, u64),
    Cancelled(u32),
    /// What has come for windows.
    Windows,
    Unreceived(Note, i64, String),
}

/// Takes all messages of the control context.
pub struct Answers;

impl Receiver for Answers {
    fn receive(self: Arc<Self>, envelope: &Envelope, payload: Payload<'_>) {
        let (engine, note) = (engine(), Note::of(envelope));
        match note.kind {
            Kind::Poured => engine.take_poured(envelope, payload),
            Kind::Received => engine.leave(Todo::Received(note.number)),
            Kind::Pull => engine.leave(Todo::Pull(note, envelope.tag)),
            Kind::Accepted => {
                if let Some(accept) = Accept::read(payload) {
                    engine.leave(Todo::Accepted(note, accept));
                }
            }
            Kind::Cancel => {
                if let Some(context) = cancelling::context_of(payload) {
                    engine.leave(Todo::Forget(note, envelope.tag, context));
                }
            }
            Kind::Cancelled => engine.leave(Todo::Cancelled(note.number)),
            Kind::Left => {
                if let Some(context) = cancelling::context_of(payload) {
                    engine.hear_of_leaving(note.rank, note.number, context, envelope.tag);
                }
            }
            Kind::Access | Kind::Accessed => {
                served::arrive(note, envelope.tag, payload);
                engine.leave(Todo::Windows);
            }
            Kind::Unreceived => {
                let mut text = vec![0; payload.len()];
                // SAFETY: room for all of it.
                unsafe { payload.copy(text.as_mut_ptr(), text.len()) };
                let text = String::from_utf8_lossy(&text).into_owned();
                engine.leave(Todo::Unreceived(note, envelope.tag, text));
            }
            Kind::Nudge | Kind::Plain | Kind::Synchronous | Kind::Offer => {}
        }
    }
}

impl Engine {
    /// To be done by the next one who advances: this may be under the core's lock.
    pub(super) fn leave(&self, todo: Todo) {
        lock(&self.todo).push(todo);
        self.has_todo.store(true, Ordering::Release);
    }

    /// Do what was left.
    pub(super) fn catch_up(&self) {
        while self.has_todo.swap(false, Ordering::AcqRel) {
            let all = std::mem::take(&mut *lock(&self.todo));
            for one in all {
                match one {
                    Todo::Answer(rank, number) => self.say(Kind::Received, rank, number, 0, &[]),
                    Todo::Fetch(receiving, envelope, offer) => {
                        self.fetch(&receiving, &envelope, &offer)
                    }
                    Todo::Received(number) => {
                        if let Some(sending) = self.heard(number) {
                            sending.end.set(Outcome::of_send());
                        }
                    }
                    Todo::Forget(note, tag, context) => self.forget(&note, tag, context),
                    Todo::Cancelled(number) => {
                        if let Some(sending) = self.heard(number) {
                            sending.end.set(Outcome::cancelled());
                        }
                    }
                    Todo::Accepted(note, accept) => self.help(&note, &accept),
                    Todo::Windows => served::catch_up(self),
                    Todo::Unreceived(note, count, text) => {
                        left::never_received(note.rank, note.number, count as usize, &text)
                    }
                    Todo::Pull(note, key) => {
                        if let Some(sending) = self.heard(note.number) {
                            self.put(note.rank, Waiting::pour(sending, key));
                        }
                    }
                }
            }
        }
    }

    /// The send of this number, which nobody will speak of any more.
    pub(super) fn heard(&self, number: u32) -> Option<Arc<Sending>> {
        lock(&self.answered).all.remove(&number)
    }

    /// Have a peer look again at what it waits for.
    pub fn nudge(&self, rank: usize) {
        self.say(Kind::Nudge, rank, 0, 0, &[]);
    }

    /// Say something that takes many bytes, as operations on windows do.
    pub fn say_more(&self, kind: Kind, rank: usize, number: u32, tag: i64, bytes: Vec<u8>) {
        let note = Note { kind, what: What::Message, rank: self.rank, number }.word();
        let envelope = Envelope { context: CONTROL, source: 0, tag, note };
        self.put(rank, Waiting::kept(envelope, bytes));
    }

    /// Say something to a peer about the message that it knows under `number`.
    pub(super) fn say(&self, kind: Kind, rank: usize, number: u32, tag: i64, bytes: &[u8]) {
        let note = Note { kind, what: What::Message, rank: self.rank, number }.word();
        let envelope = Envelope { context: CONTROL, source: 0, tag, note };
        self.put(rank, Waiting::control(envelope, bytes));
    }
}
