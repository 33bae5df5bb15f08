//! The messages that wait for room, or for their receiver to join.

use std::collections::VecDeque;
use std::sync::atomic::{fence, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sfm_native::packet::{account, Envelope};

use super::control::{MessageKind, Note};
use super::operation::Outcome;
use super::path::Path;
use super::peer::{Peer, Sent};
use super::{lock, Collective, Engine, Sending, CONTROL};
use crate::handles::*;

/// Bytes of a large message that are streamed at a time.
const FRAGMENT: usize = 32 << 10;

/// The largest size of an offer and similar messages.
pub const SMALL: usize = 64;

#[derive(Default)]
pub struct Queue {
    waiting: Mutex<VecDeque<Waiting>>,
    /// The number of messages, including those being sent, which no other may overtake.
    pub(super) length: AtomicUsize,
}

/// A message that waits.
pub struct Waiting {
    envelope: Envelope,
    bytes: Bytes,
}

enum Bytes {
    /// Those of the send itself, which ends when they are sent.
    Of(Arc<Sending>),
    /// A few bytes of our own.
    Few([u8; SMALL], usize),
    /// Many bytes of our own.
    Many(Vec<u8>),
    /// Those of a large message from this offset on.
    Streamed(Arc<Sending>, usize),
}

impl Waiting {
    pub fn control(envelope: Envelope, bytes: &[u8]) -> Waiting {
        let mut few = [0; SMALL];
        few[..bytes.len()].copy_from_slice(bytes);
        Waiting { envelope, bytes: Bytes::Few(few, bytes.len()) }
    }

    /// A message with bytes of our own, of any number.
    pub fn many(envelope: Envelope, bytes: Vec<u8>) -> Waiting {
        Waiting { envelope, bytes: Bytes::Many(bytes) }
    }

    /// A message with a send's bytes; sending them ends the send.
    pub fn send(sending: Arc<Sending>) -> Waiting {
        Waiting { envelope: sending.envelope, bytes: Bytes::Of(sending) }
    }

    /// All bytes of a send, for the receive that the peer knows under `key`.
    pub fn stream(sending: Arc<Sending>, key: i64) -> Waiting {
        let note =
            Note { kind: MessageKind::Streamed, what: Collective::Message, rank: 0, number: 0 }
                .word();
        let envelope = Envelope { context: CONTROL, source: 0, tag: key, note };
        Waiting { envelope, bytes: Bytes::Streamed(sending, 0) }
    }
}

/// The index of the queue for messages of this context.
pub fn queue_of(context: u64) -> usize {
    if context == CONTROL {
        2
    } else {
        account(context)
    }
}

impl Engine {
    /// Send a message as soon as there is room, behind the others of its queue.
    pub(super) fn put(&self, rank: usize, waiting: Waiting) {
        let peer = self.peer(rank);
        let queue = &peer.queues[queue_of(waiting.envelope.context)];
        let mut all = lock(&queue.waiting);
        all.push_back(waiting);
        queue.length.fetch_add(1, Ordering::Release);
        self.held_back.fetch_add(1, Ordering::Release);
        // Under the same lock: whoever held it in between might only look at the queue.
        self.send_first(peer, queue, &mut all);
    }

    /// Send waiting messages, as far as there is room, and go on with large ones.
    pub(super) fn flush(&self) {
        if self.held_back.load(Ordering::Acquire) == 0 {
            return;
        }
        self.go_on_with_unfinished();
        for peer in self.peers.all().filter(|peer| peer.has_queued()) {
            for queue in &peer.queues {
                // Only one thread at a time, to keep the order.
                if let Ok(mut all) = queue.waiting.try_lock() {
                    self.send_first(peer, queue, &mut all);
                }
            }
        }
    }

    /// Have the network thread send what waits, until nothing does.
    #[cold]
    pub(super) fn send_later(&self) {
        // SYNC POINT engine/later: `held_back` has grown before. Either this sees that the network
        // thread has stopped, or that sees the message.
        fence(Ordering::SeqCst);
        if !self.is_sent_later.swap(true, Ordering::SeqCst) {
            self.core.send_later();
        }
    }

    /// Send waiting messages in the network thread, as far as there is room; whether some are left.
    pub(super) fn send_for_the_program(&self) -> bool {
        if !self.is_sent_later.load(Ordering::Relaxed) {
            return false;
        }
        self.flush();
        if self.held_back.load(Ordering::Relaxed) > 0 {
            return true;
        }
        // SYNC POINT engine/later.
        self.is_sent_later.store(false, Ordering::SeqCst);
        let is_left = self.held_back.load(Ordering::SeqCst) > 0;
        if is_left {
            self.is_sent_later.store(true, Ordering::SeqCst);
        }
        is_left
    }

    /// Send the messages of a queue, from its first on, until there is no room for the next.
    fn send_first(&self, peer: &Peer, queue: &Queue, all: &mut VecDeque<Waiting>) {
        let before = all.len();
        while let Some(first) = all.front_mut() {
            match self.send_waiting(peer, first) {
                Sent::Full => break,
                Sent::Gone => {}
                Sent::Lost => {
                    if let Bytes::Of(sending) | Bytes::Streamed(sending, _) = &first.bytes {
                        sending.end.set(Outcome::failed(MPI_ERR_PROC_ABORTED));
                    }
                }
            }
            all.pop_front();
            queue.length.fetch_sub(1, Ordering::Release);
            self.held_back.fetch_sub(1, Ordering::Release);
        }
        if all.len() < before {
            self.wake_resting();
        }
    }

    /// The number of the program's messages to a peer that wait for room or credit.
    pub fn waiting_for(&self, rank: usize) -> usize {
        self.peer(rank).queues[queue_of(0)].length.load(Ordering::Relaxed)
    }

    /// Remove a send from its queue; false if it is already sent.
    pub(super) fn drop_waiting(&self, sending: &Arc<Sending>) -> bool {
        let queue = &self.peer(sending.dest).queues[queue_of(sending.envelope.context)];
        let mut all = lock(&queue.waiting);
        let is_it = |waiting: &Waiting| match &waiting.bytes {
            Bytes::Of(queued) => Arc::ptr_eq(queued, sending),
            // An offer, which the number in its note identifies.
            Bytes::Few(..) => waiting.envelope == sending.envelope,
            Bytes::Many(_) | Bytes::Streamed(..) => false,
        };
        let Some(nth) = all.iter().position(is_it) else { return false };
        all.remove(nth);
        queue.length.fetch_sub(1, Ordering::Release);
        self.held_back.fetch_sub(1, Ordering::Release);
        true
    }

    fn send_waiting(&self, peer: &Peer, waiting: &mut Waiting) -> Sent {
        let Waiting { envelope, bytes } = waiting;
        // SAFETY: a send's bytes are valid until it ends; the other bytes are here.
        unsafe {
            match bytes {
                Bytes::Few(few, length) => self.send_past(peer, envelope, few.as_ptr(), *length),
                Bytes::Many(many) => self.send_past(peer, envelope, many.as_ptr(), many.len()),
                Bytes::Of(sending) => {
                    let sent = sending
                        .with_bytes(|from, length| self.send_past(peer, envelope, from, length));
                    if sent == Sent::Gone {
                        sending.gone();
                    }
                    sent
                }
                Bytes::Streamed(sending, done) => {
                    let sent = sending.with_bytes(|from, length| {
                        while *done < length {
                            envelope.source = *done as i64;
                            let most = FRAGMENT.min(self.longest(peer.rank));
                            let length = most.min(length - *done);
                            let sent = self.send_past(peer, envelope, from.add(*done), length);
                            if sent != Sent::Gone {
                                return sent;
                            }
                            *done += length;
                        }
                        Sent::Gone
                    });
                    if sent == Sent::Gone {
                        sending.end.set(Outcome::of_send());
                    }
                    sent
                }
            }
        }
    }

    /// A message of the program that waits for room.
    pub(super) fn first_waiting(&self) -> Option<Arc<Sending>> {
        let queues = self.peers.all().map(|peer| &peer.queues[queue_of(0)]);
        queues.into_iter().find_map(|queue| match &lock(&queue.waiting).front()?.bytes {
            Bytes::Of(sending) => Some(sending.clone()),
            Bytes::Few(..) | Bytes::Many(_) | Bytes::Streamed(..) => None,
        })
    }

    /// The peers for which a message of this context waits for room.
    pub(super) fn receivers_waited_for_in(&self, context: u64) -> Vec<usize> {
        let has_waiting = |peer: &&Peer| {
            let queue = &peer.queues[queue_of(context)];
            let is_it = |message: &Waiting| message.envelope.context == context;
            queue.length.load(Ordering::Acquire) > 0 && lock(&queue.waiting).iter().any(is_it)
        };
        self.peers.all().filter(has_waiting).map(|peer| peer.rank).collect()
    }

    /// The paths with waiting messages, each with the value that changes when there may be room.
    pub(super) fn announce_waits(&self) -> Vec<(&Path, u64)> {
        if self.held_back.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let slow = self.slow_receivers();
        let is_blocked = |peer: &&Peer| peer.has_queued() || slow.contains(&peer.rank);
        let paths = self.peers.all().filter(is_blocked).filter_map(|peer| peer.path.get());
        paths.map(|path| (path, path.announce_wait())).collect()
    }
}
