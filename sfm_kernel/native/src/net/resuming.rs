//! The way to a peer, and what is sent again when it has broken, or a gateway has lost something.

use std::sync::Arc;

use super::connection::Connection;
use super::frame::Kind;
use super::link::{Link, Outgoing};
use super::now;

impl Link {
    /// Send on this connection from now on. `again`: one before it broke.
    pub fn take_way(&self, way: Arc<Connection>, again: bool) {
        let out = &mut *self.out();
        if out.closed {
            return;
        }
        out.way = Some(way.clone());
        if out.begun {
            self.resume(out, again);
        } else {
            self.put(out, Kind::Hello, again, 0, self.identity.address.as_bytes());
            for one in &out.kept {
                way.put(one.frame.clone());
            }
            out.begun = !out.kept.is_empty();
        }
        self.core().ring(); // a large packet may be waiting for it
    }

    /// The connection on which messages go now.
    pub fn way(&self) -> Option<Arc<Connection>> {
        self.out().way.clone()
    }

    /// This connection has ended; whether messages went on it.
    pub fn lose_way(&self, id: u64) -> bool {
        let out = &mut *self.out();
        let was = out.way.as_ref().is_some_and(|way| way.id == id);
        if was {
            out.way = None;
        }
        was
    }

    /// End the connection, as if it broke.
    pub fn break_way(&self) {
        if let Some(way) = self.way() {
            way.socket.break_off();
        }
    }

    /// A gateway may have lost something.
    pub fn may_have_lost(&self) {
        let out = &mut *self.out();
        if out.way.as_ref().is_some_and(|way| way.shared) {
            self.resume(out, false);
        }
    }

    /// Something is missing, says the peer, and that our question with this number has come.
    pub fn has_lost(&self, number: u64) {
        let out = &mut *self.out();
        if out.questions <= number {
            self.resume(out, false); // else what follows the last question is on its way
        }
    }

    /// Ask how far everything has come, and hold what is sent until that is answered.
    fn resume(&self, out: &mut Outgoing, again: bool) {
        let Some(way) = &out.way else { return };
        way.withdraw(self.uid);
        out.held = !out.kept.is_empty();
        out.questions += 1;
        self.put(out, Kind::Hello, again, out.questions, self.identity.address.as_bytes());
    }

    /// The peer answers a question: all that had not arrived by then is sent again, after the last one.
    pub fn welcomed(&self, number: u64) {
        let out = &mut *self.out();
        if number <= out.answered {
            return;
        }
        out.answered = out.questions;
        if !std::mem::replace(&mut out.held, false) {
            return;
        }
        if let Some(way) = &out.way {
            for one in &mut out.kept {
                (one.at, one.delivered) = (now(), out.window.delivered);
                way.put(one.frame.clone());
            }
        }
        self.core().ring();
    }
}
