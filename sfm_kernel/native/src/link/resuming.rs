//! A link's connection, and what is sent again when it has broken or a gateway has lost something.

use std::sync::Arc;

use super::{Link, Outgoing};
use crate::clock::monotonic as now;
use crate::frame::FrameKind;
use crate::wire::Wire;

impl<W: Wire> Link<W> {
    /// Send on this connection from now on. `again`: the former one broke.
    pub fn use_connection(&self, connection: Arc<W>, again: bool) {
        let out = &mut *self.out();
        if out.closed {
            return;
        }
        out.connection = Some(connection.clone());
        if out.begun {
            self.resume(out, again);
        } else {
            self.put(out, FrameKind::Hello, again, 0, self.identity.address.as_bytes());
            for sent in &out.unacked {
                connection.put(sent.frame.clone());
            }
            out.begun = !out.unacked.is_empty();
        }
        self.core().ring(); // a large packet may wait for a connection
    }

    /// The connection on which messages go now.
    pub fn connection(&self) -> Option<Arc<W>> {
        self.out().connection.clone()
    }

    /// This connection has ended; returns whether messages went on it.
    pub fn drop_connection(&self, id: u64) -> bool {
        let out = &mut *self.out();
        let was = out.connection.as_ref().is_some_and(|connection| connection.id() == id);
        if was {
            out.connection = None;
        }
        was
    }

    /// End the connection as if it broke.
    pub fn break_connection(&self) {
        if let Some(connection) = self.connection() {
            connection.break_off();
        }
    }

    /// A gateway may have lost something.
    pub fn check_losses(&self) {
        let out = &mut *self.out();
        if out.connection.as_ref().is_some_and(|connection| connection.is_shared()) {
            self.resume(out, false);
        }
    }

    /// The peer reports that something is missing, and that it has received the question with this
    /// number.
    pub(super) fn resend_missing(&self, number: u64) {
        let out = &mut *self.out();
        if out.questions <= number {
            self.resume(out, false); // otherwise what follows the last question is under way
        }
    }

    /// Ask what has arrived, and hold frames back until the answer.
    fn resume(&self, out: &mut Outgoing<W>, again: bool) {
        let Some(connection) = &out.connection else { return };
        connection.withdraw(self.uid);
        out.held = !out.unacked.is_empty();
        out.questions += 1;
        self.put(out, FrameKind::Hello, again, out.questions, self.identity.address.as_bytes());
    }

    /// The peer answers a question: send again everything that had not arrived, after the last
    /// question.
    pub(super) fn welcomed(&self, number: u64) {
        let out = &mut *self.out();
        if number <= out.answered {
            return;
        }
        out.answered = out.questions;
        if !std::mem::replace(&mut out.held, false) {
            return;
        }
        if let Some(connection) = &out.connection {
            for sent in &mut out.unacked {
                (sent.at, sent.delivered) = (now(), out.window.delivered);
                connection.put(sent.frame.clone());
            }
        }
        self.core().ring();
    }
}
