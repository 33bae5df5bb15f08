//! Sends to a peer: numbered frames, which are kept until they have arrived, and others.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, TryLockError};

use super::{Link, Outgoing, Unacked};
use crate::clock::monotonic as now;
use crate::frame::{Class, FrameKind, Header, Inner, HOPS};
use crate::packet::Gather;
use crate::wire::Wire;

/// Bytes of the length, which the first frame of a packet in fragments also holds.
const LENGTH: usize = 8;

impl<W: Wire> Link<W> {
    /// Send an unnumbered frame. Without a connection it is dropped: its content is repeated on the
    /// next connection.
    pub fn control(&self, kind: FrameKind, flag: bool, number: u64, body: &[u8]) {
        self.put(&mut self.out(), kind, flag, number, body);
    }

    /// Report how much of the peer's was received since the beginning, on an account.
    pub fn credit(&self, account: usize, total: u64) {
        self.control(FrameKind::Credit, account != 0, total, b"");
    }

    /// Ask the peer what it has received: this process waits for credit.
    pub fn ask(&self) {
        self.control(FrameKind::Ask, false, 0, b"");
    }

    /// Repeat the state that a lost connection may have held back from the peer.
    pub fn repeat_state(&self) {
        if let Some(&inbound) = self.inbound.get() {
            for (account, total) in self.core().taken(inbound).into_iter().enumerate() {
                self.credit(account, total);
            }
        }
        if let Some(first) = self.reassembly().refused() {
            self.control(FrameKind::Refused, false, first, b"");
        }
    }

    /// Send on this connection, even if the link uses another one: `Welcome` answers where `Hello`
    /// came.
    pub fn send_on(&self, kind: FrameKind, number: u64, on: &W) {
        let class = kind.class(number);
        let frame = self.seal(&mut self.out(), kind, false, number, class, 0, 0, |_| {});
        put(on, class, frame);
    }

    /// Send `Bye`, as the last frame.
    pub fn bye(&self) {
        let out = &mut *self.out();
        self.put(out, FrameKind::Bye, false, out.number, b"");
        out.closed = true;
    }

    /// Send a packet of at most `largest` bytes. `urgent`: the peer credits it at once.
    /// Returns false if the peer was lost before. (A peer that is lost afterwards may have received
    /// it.)
    pub fn send(&self, packet: &Gather<'_>, urgent: bool) -> bool {
        let out = &mut *self.out();
        self.numbered(out, FrameKind::Data, urgent, Class::Message, 0, packet.len(), |memory| {
            copy(packet, 0, memory)
        })
    }

    /// The right to send a packet in fragments, if no other thread of this process has it.
    pub fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether the window has room for the next fragment.
    pub fn has_room(&self) -> bool {
        let out = self.out();
        out.connection.is_some() && !out.held && out.under_way < out.window.size()
    }

    /// Send the next fragment of `packet`, of which `done` bytes are sent. Returns as `send`.
    pub fn send_fragment(&self, packet: &Gather<'_>, done: &mut usize, urgent: bool) -> bool {
        let out = &mut *self.out();
        let at = *done;
        let room = if at == 0 { self.largest - LENGTH } else { self.largest };
        let size = room.min(packet.len() - at);
        let ahead = packet.len() - at - size;
        *done += size;
        if at == 0 {
            out.first = out.number + 1;
            let length = (packet.len() as u64).to_le_bytes();
            self.numbered(
                out,
                FrameKind::First,
                urgent,
                Class::Bulk,
                ahead,
                LENGTH + size,
                |memory| {
                    memory[..LENGTH].copy_from_slice(&length);
                    copy(packet, 0, &mut memory[LENGTH..]);
                },
            )
        } else {
            self.numbered(out, FrameKind::Fragment, urgent, Class::Bulk, ahead, size, |memory| {
                copy(packet, at, memory)
            })
        }
    }

    /// Report that the packet that has begun will not be completed.
    pub fn abort(&self) {
        // Of the class of messages, so that it is withdrawn with them. Otherwise it would stay in
        // front of those that are sent again, and report that they are missing, without end.
        self.numbered(&mut self.out(), FrameKind::Abort, false, Class::Message, 0, 0, |_| {});
    }

    /// The peer has no memory for the packet whose first frame has this number.
    pub fn refused(&self, number: u64) {
        self.refused.store(number, Ordering::SeqCst);
        self.core().ring();
    }

    /// Whether the peer has no memory for the packet that is being sent in fragments.
    pub fn is_refused(&self) -> bool {
        let refused = self.refused.load(Ordering::SeqCst);
        refused != 0 && refused == self.out().first
    }

    #[expect(clippy::too_many_arguments, reason = "what a frame consists of")]
    fn numbered(
        &self,
        out: &mut Outgoing<W>,
        kind: FrameKind,
        flag: bool,
        class: Class,
        ahead: usize,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        if out.closed || self.lost().is_some() {
            return false;
        }
        out.number += 1;
        let number = out.number;
        let frame = self.seal(out, kind, flag, number, class, ahead, length, fill);
        let at = now();
        let alone = out.unacked.is_empty();
        if alone {
            out.progress = at;
        }
        out.under_way += frame.len();
        if let Some(connection) = out.connection.as_ref().filter(|_| !out.held) {
            connection.put(frame.clone());
            out.begun = true;
        }
        out.unacked.push_back(Unacked {
            number,
            frame,
            at,
            delivered: out.window.delivered,
            alone,
        });
        true
    }

    pub(super) fn put(
        &self,
        out: &mut Outgoing<W>,
        kind: FrameKind,
        flag: bool,
        number: u64,
        body: &[u8],
    ) {
        if out.closed || out.connection.is_none() {
            return;
        }
        let fill = |memory: &mut [u8]| memory.copy_from_slice(body);
        let class = kind.class(number);
        let frame = self.seal(out, kind, flag, number, class, 0, body.len(), fill);
        if let Some(connection) = &out.connection {
            put(connection.as_ref(), class, frame);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what a frame consists of")]
    fn seal(
        &self,
        out: &mut Outgoing<W>,
        kind: FrameKind,
        flag: bool,
        number: u64,
        class: Class,
        ahead: usize,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Arc<Vec<u8>> {
        let header = Header {
            length: 0,
            hops: HOPS,
            class,
            ahead: ahead.min(u32::MAX as usize) as u32,
            from_site: self.identity.site,
            to_site: self.site,
            clear: false,
            sender: self.identity.uid,
            receiver: self.uid,
            counter: 0,
        };
        self.unreported.store(0, Ordering::SeqCst);
        let inner = Inner { kind, flag, number, arrived: self.arrived.load(Ordering::SeqCst) };
        Arc::new(out.sealer.seal(&header, &inner, length, fill))
    }
}

fn put(on: &impl Wire, class: Class, frame: Arc<Vec<u8>>) {
    match class {
        Class::Status | Class::Resume => on.put_ahead(frame),
        _ => on.put(frame),
    }
}

fn copy(packet: &Gather<'_>, at: usize, to: &mut [u8]) {
    // SAFETY: writes all of `to` and nothing else.
    unsafe { packet.copy(at, to.as_mut_ptr(), to.len()) };
}
