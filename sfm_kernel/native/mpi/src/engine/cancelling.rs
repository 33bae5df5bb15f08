//! Taking a send back.
//!
//! What has not gone yet leaves its queue here. Of what has gone, the receiver is asked to forget
//! it, as long as its sender waits to hear of it: an offer, or a synchronous send. If no receive has
//! taken it, it leaves the receiver's queue, and the receiver says so; else it goes on. What was
//! sent with its bytes and is waited for by nobody has ended: it cannot be taken back.

use std::sync::Arc;

use sfm_native::core::{Found, Payload};
use sfm_native::matching::{Numbers, Template};

use super::control::{Kind, Note};
use super::operation::Outcome;
use super::{Engine, Sending};

impl Engine {
    /// Take a send back, if it is not received; that may become known only later.
    pub fn call_back(&self, sending: &Arc<Sending>) {
        if sending.end.is_done() {
            return;
        }
        let envelope = &sending.envelope;
        let note = Note::of(envelope);
        if self.drop_waiting(sending) {
            if note.kind != Kind::Plain {
                self.heard(note.number);
            }
            sending.end.set(Outcome::cancelled());
        } else if note.kind != Kind::Plain {
            let context = envelope.context.to_le_bytes();
            self.say(Kind::Cancel, sending.dest, note.number, envelope.tag, &context);
        }
    }

    /// A peer wants back what it sent under the note's number.
    pub(super) fn forget(&self, note: &Note, tag: i64, context: u64) {
        let wanted = Numbers { source: None, tag: Some(tag) };
        let template = Template::of(wanted);
        let (mut cursor, mut near) = (0, None);
        while let Found::Ask(found) = self.core.look(context, &template, cursor, near, false, false)
        {
            (cursor, near) = (found.seq, Some(found.slot));
            let of = found.packet.envelope().map(|envelope| Note::of(&envelope));
            let is_it = of.is_some_and(|of| of.rank == note.rank && of.number == note.number);
            if is_it && self.core.take(&found).is_some() {
                return self.say(Kind::Cancelled, note.rank, note.number, 0, &[]);
            }
        }
    }
}

/// The context that a peer named with a send that it wants back.
pub fn context_of(payload: Payload<'_>) -> Option<u64> {
    let mut context = [0; 8];
    // SAFETY: room for so many bytes.
    let copied = unsafe { payload.copy(context.as_mut_ptr(), context.len()) };
    (copied == context.len()).then(|| u64::from_le_bytes(context))
}
