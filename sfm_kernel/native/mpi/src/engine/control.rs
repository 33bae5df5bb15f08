//! Kinds of messages, and the control messages that two libraries exchange about them.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use sfm_native::core::{Library, Payload, Receiver};
use sfm_native::packet::Envelope;

use super::offers::Offer;
use super::operation::Outcome;
use super::queue::Waiting;
use super::together::{Accept, Helped};
use super::{cancelling, engine, lock, Alike, Collective, Engine, Receiving, Sending, CONTROL};
use crate::process;

/// The kind of a message. The note of its envelope has the kind, then the collective call it
/// belongs to, the sender's number (`process`), and in the upper bits the number under which the
/// sender keeps it if it waits for an answer; otherwise, for the program's messages, the number of
/// the call that sent it (`unfinished`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum MessageKind {
    /// It carries its bytes.
    Plain = 0,
    /// It carries its bytes, and the sender waits for the receive to match it.
    Synchronous = 1,
    /// It carries the address of the bytes.
    Offer = 2,
    // In the control context:
    /// The message with that number was received.
    Received = 3,
    /// The receiver is fetching an offer's bytes; its sender may help.
    Accepted = 4,
    /// The receiver cannot fetch them: the sender has to stream them. `tag`: the receive's number.
    Pull = 5,
    /// A fragment for the receive with number `tag`, at offset `source`.
    Streamed = 6,
    /// The sender cancels the message with that number and the tag `tag`, if no receive has matched
    /// it.
    Cancel = 7,
    /// The receiver has dropped it.
    Cancelled = 8,
    /// Something that the peer waits for in shared memory has changed: the peer must check again.
    Nudge = 9,
    /// An operation on a window's memory in this process, and the result of one (`window::served`).
    Access = 10,
    Accessed = 11,
    /// `tag` messages that were sent in the call of that number (`unfinished`), with these arguments,
    /// were never received.
    Unreceived = 12,
    /// The sender has left the collective call with number `tag` before its end (`early`).
    Left = 13,
}

impl MessageKind {
    fn of(note: u64) -> MessageKind {
        use MessageKind::*;
        const ALL: [MessageKind; 14] = [
            Plain,
            Synchronous,
            Offer,
            Received,
            Accepted,
            Pull,
            Streamed,
            Cancel,
            Cancelled,
            Nudge,
            Access,
            Accessed,
            Unreceived,
            Left,
        ];
        ALL.get(note as usize & 0xf).copied().unwrap_or(Plain)
    }
}

/// The lowest bit of the number, which extends to the end of the note.
const NUMBER_AT: u32 = 12 + process::BITS;
/// The upper limit of numbers, exclusive.
pub(super) const NUMBERS: u32 = 1 << (64 - NUMBER_AT);

/// The fields in the note of an envelope.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    pub kind: MessageKind,
    pub what: Collective,
    /// The number (`process`) of its sender.
    pub rank: usize,
    pub number: u32,
}

impl Note {
    pub fn of(envelope: &Envelope) -> Note {
        let note = envelope.note;
        let rank = (note >> 12) as usize & ((1 << process::BITS) - 1);
        let (what, number) = (Collective::of((note >> 4) as u8), (note >> NUMBER_AT) as u32);
        Note { kind: MessageKind::of(note), what, rank, number }
    }

    /// The arguments of a collective call, from one of its plain messages.
    pub fn alike(&self) -> Alike {
        Alike::of(if self.kind == MessageKind::Plain { self.number } else { 0 })
    }

    pub fn word(&self) -> u64 {
        let (kind, what) = (self.kind as u64, self.what as u64);
        kind | what << 4 | (self.rank as u64) << 12 | u64::from(self.number) << NUMBER_AT
    }
}

/// What layers above the engine do with control messages that are theirs.
pub struct Upper {
    /// Keep a message for a window. The caller holds the core's lock.
    pub window_message: fn(Note, i64, Payload<'_>),
    /// Work on the messages that are kept.
    pub window_work: fn(&Engine),
    /// A process has never received so many messages of this call, with these arguments.
    pub never_received: fn(usize, u32, usize, &str),
}

/// The work that an arrived message causes.
pub enum Todo {
    /// Confirm to a sender that the message with this number was received.
    Answer(usize, u32),
    Fetch(Arc<Receiving>, Envelope, Offer),
    Received(u32),
    Accepted(Note, Accept),
    Pull(Note, i64),
    /// With a tag and a context.
    Forget(Note, i64, u64),
    Cancelled(u32),
    /// Handle messages that have arrived for windows.
    Windows,
    Unreceived(Note, i64, String),
}

/// Receives all messages of the control context.
pub struct Answers;

impl Receiver for Answers {
    fn receive(self: Arc<Self>, envelope: &Envelope, payload: Payload<'_>) {
        let (engine, note) = (engine(), Note::of(envelope));
        match note.kind {
            MessageKind::Streamed => engine.take_streamed(envelope, payload),
            MessageKind::Received => engine.queue_todo(Todo::Received(note.number)),
            MessageKind::Pull => engine.queue_todo(Todo::Pull(note, envelope.tag)),
            MessageKind::Accepted => {
                if let Some(accept) = Accept::read(payload) {
                    engine.queue_todo(Todo::Accepted(note, accept));
                }
            }
            MessageKind::Cancel => {
                if let Some(context) = cancelling::context_of(payload) {
                    engine.queue_todo(Todo::Forget(note, envelope.tag, context));
                }
            }
            MessageKind::Cancelled => engine.queue_todo(Todo::Cancelled(note.number)),
            MessageKind::Left => engine.note_leaving(&note, envelope.tag, payload),
            MessageKind::Access | MessageKind::Accessed => {
                (engine.upper.window_message)(note, envelope.tag, payload);
                engine.queue_todo(Todo::Windows);
            }
            MessageKind::Unreceived => {
                let mut text = vec![0; payload.len()];
                // SAFETY: the buffer has room for all of it.
                unsafe { payload.copy(text.as_mut_ptr(), text.len()) };
                let text = String::from_utf8_lossy(&text).into_owned();
                engine.queue_todo(Todo::Unreceived(note, envelope.tag, text));
            }
            MessageKind::Nudge
            | MessageKind::Plain
            | MessageKind::Synchronous
            | MessageKind::Offer => {}
        }
    }
}

impl Library for Engine {
    fn has_work(&self) -> bool {
        self.has_todo.load(Ordering::Acquire)
    }

    fn work(&self) {
        self.catch_up();
    }

    fn send_held_back(&self) -> bool {
        self.send_for_the_program()
    }
}

impl Engine {
    /// Queue work for the next `advance`, because the caller may hold the core's lock.
    pub(super) fn queue_todo(&self, todo: Todo) {
        let mut all = lock(&self.todo);
        all.push_back(todo);
        self.has_todo.store(true, Ordering::Release);
    }

    /// Do the queued work, and help those who fetch from this process.
    pub(super) fn catch_up(&self) {
        self.catch_up_and_help(Helped::new(), 0);
    }

    pub(super) fn next_todo(&self) -> Option<Todo> {
        let mut all = lock(&self.todo);
        let next = all.pop_front();
        if all.is_empty() {
            self.has_todo.store(false, Ordering::Relaxed); // under the lock, as in `queue_todo`
        }
        next
    }

    pub(super) fn carry_out(&self, todo: Todo, helped: &mut Helped) {
        match todo {
            Todo::Answer(rank, number) => {
                self.send_control(MessageKind::Received, rank, number, 0, &[])
            }
            Todo::Fetch(receiving, envelope, offer) => {
                self.fetch(&receiving, envelope, offer, helped)
            }
            Todo::Received(number) => {
                if let Some(sending) = self.take_answered(number) {
                    sending.end.set(Outcome::of_send());
                }
            }
            Todo::Forget(note, tag, context) => self.forget(&note, tag, context),
            Todo::Cancelled(number) => {
                if let Some(sending) = self.take_answered(number) {
                    sending.end.set(Outcome::cancelled());
                }
            }
            Todo::Accepted(note, accept) => helped.extend(self.accepted(&note, accept)),
            Todo::Windows => (self.upper.window_work)(self),
            Todo::Unreceived(note, count, text) => {
                (self.upper.never_received)(note.rank, note.number, count as usize, &text)
            }
            Todo::Pull(note, key) => {
                if let Some(sending) = self.take_answered(note.number) {
                    self.put(note.rank, Waiting::stream(sending, key));
                }
            }
        }
        self.wake_resting();
    }

    /// The send with this number, about which no further message will come.
    pub(super) fn take_answered(&self, number: u32) -> Option<Arc<Sending>> {
        lock(&self.answered).all.remove(&number)
    }

    /// Make a peer check again what it waits for.
    pub fn nudge(&self, rank: usize) {
        self.send_control(MessageKind::Nudge, rank, 0, 0, &[]);
    }

    /// Send a control message of many bytes, such as an operation on a window.
    pub fn send_large_control(
        &self,
        kind: MessageKind,
        rank: usize,
        number: u32,
        tag: i64,
        bytes: Vec<u8>,
    ) {
        let note = Note { kind, what: Collective::Message, rank: self.rank, number }.word();
        let envelope = Envelope { context: CONTROL, source: 0, tag, note };
        self.put(rank, Waiting::many(envelope, bytes));
    }

    /// Send a peer a control message about the message that it keeps under `number`.
    pub(super) fn send_control(
        &self,
        kind: MessageKind,
        rank: usize,
        number: u32,
        tag: i64,
        bytes: &[u8],
    ) {
        let note = Note { kind, what: Collective::Message, rank: self.rank, number }.word();
        let envelope = Envelope { context: CONTROL, source: 0, tag, note };
        self.put(rank, Waiting::control(envelope, bytes));
    }
}
