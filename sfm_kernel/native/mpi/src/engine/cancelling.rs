//! Cancelling a send.
//!
//! A message that has not been sent leaves its queue here. For a sent message the receiver is asked
//! to drop it, as long as the sender waits for an answer: for an offer, or a synchronous send. If
//! no receive has matched it, the receiver takes it out of its inbox and confirms; otherwise it
//! proceeds. An eager message without a waiting sender is complete, and cannot be cancelled.

use std::sync::Arc;

use sfm_native::core::{Found, Payload};
use sfm_native::matching::{Numbers, Template};

use super::control::{MessageKind, Note};
use super::operation::Outcome;
use super::{Engine, Sending};

impl Engine {
    /// Cancel a send unless it is matched; whether that succeeds may be known only later.
    pub fn cancel_send(&self, sending: &Arc<Sending>) {
        if sending.end.is_done() {
            return;
        }
        let envelope = &sending.envelope;
        let note = Note::of(envelope);
        if self.drop_waiting(sending) {
            if note.kind != MessageKind::Plain {
                self.take_answered(note.number);
            }
            sending.end.set(Outcome::cancelled());
        } else if note.kind != MessageKind::Plain {
            let context = envelope.context.to_le_bytes();
            self.send_control(
                MessageKind::Cancel,
                sending.dest,
                note.number,
                envelope.tag,
                &context,
            );
        }
    }

    /// Answer a peer that cancels the send with the note's number.
    pub(super) fn forget(&self, note: &Note, tag: i64, context: u64) {
        let numbers = Numbers { source: None, tag: Some(tag) };
        let template = Template::of(numbers);
        let (mut cursor, mut near) = (0, None);
        while let Found::Ask(found) = self.core.find(context, &template, cursor, near, false, false)
        {
            (cursor, near) = (found.seq, Some(found.slot));
            let of = found.packet.envelope().map(|envelope| Note::of(&envelope));
            let is_it = of.is_some_and(|of| of.rank == note.rank && of.number == note.number);
            if is_it && self.core.take(&found).is_some() {
                return self.send_control(MessageKind::Cancelled, note.rank, note.number, 0, &[]);
            }
        }
    }
}

/// The context that a peer named in its request to cancel a send.
pub fn context_of(payload: Payload<'_>) -> Option<u64> {
    let mut context = [0; 8];
    // SAFETY: the array has room for as many bytes.
    let copied = unsafe { payload.copy(context.as_mut_ptr(), context.len()) };
    (copied == context.len()).then(|| u64::from_le_bytes(context))
}
