//! One other process: its path, and the sends that wait for room.

use std::collections::VecDeque;
use std::sync::atomic::{fence, AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use sfm_native::packet::{account, Envelope};

use super::control::{Kind, Note};
use super::operation::Outcome;
use super::path::Path;
use super::{limits, lock, Engine, Sending, What, CONTROL};
use crate::handles::*;
use crate::home::Found;

/// Bytes of a large message that are streamed at a time.
const FRAGMENT: usize = 32 << 10;

pub struct Peer {
    /// Its number (`process`).
    pub rank: usize,
    path: OnceLock<Path>,
    making: Mutex<()>,
    /// The waiting messages: the program's, the collectives', and control messages. No queue waits
    /// for another.
    queues: [Queue; 3],
    lost: AtomicBool,
    /// The claims in use of the ring to the peer, as bits.
    pub(super) claims: Mutex<u32>,
    /// True if the peer has copied chunks of the last large message that it has sent.
    pub(super) helps: AtomicBool,
    /// True if the peer's memory can be read; set by the first attempt.
    pub(super) readable: OnceLock<bool>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<VecDeque<Waiting>>,
    /// The number of messages, including those being sent, which no other may overtake.
    length: AtomicUsize,
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

/// The largest size of an offer and similar messages.
pub const SMALL: usize = 64;

/// The result of an attempt to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    Gone,
    /// There is no room or no credit for it now, or the peer has not joined yet.
    Full,
    /// The peer has died or left.
    Lost,
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
        let note = Note { kind: Kind::Streamed, what: What::Message, rank: 0, number: 0 }.word();
        let envelope = Envelope { context: CONTROL, source: 0, tag: key, note };
        Waiting { envelope, bytes: Bytes::Streamed(sending, 0) }
    }
}

/// The index of the queue for messages of this context.
fn queue_of(context: u64) -> usize {
    if context == CONTROL {
        2
    } else {
        account(context)
    }
}

impl Peer {
    pub fn new(rank: usize) -> Peer {
        let queues = Default::default();
        let (path, lost, claims) = (OnceLock::new(), AtomicBool::new(false), Mutex::new(0));
        let (making, helps, readable) = (Mutex::new(()), AtomicBool::new(true), OnceLock::new());
        Peer { rank, path, making, queues, lost, claims, helps, readable }
    }

    fn has_queued(&self) -> bool {
        self.queues.iter().any(|queue| queue.length.load(Ordering::Relaxed) > 0)
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

impl Engine {
    pub(super) fn peer(&self, rank: usize) -> &Peer {
        self.peers.get(rank)
    }

    /// The path to a peer, made on first use. Err if the peer has died, or has not joined yet.
    pub(super) fn path<'a>(&self, peer: &'a Peer) -> Result<&'a Path, Sent> {
        if let Some(path) = peer.path.get() {
            return Ok(path);
        }
        let _making = lock(&peer.making);
        if let Some(path) = peer.path.get() {
            return Ok(path);
        }
        match self.endpoint.channel(peer.rank) {
            Found::Channel(channel) => Ok(peer.path.get_or_init(|| Path(channel))),
            Found::NotYet => Err(Sent::Full),
            Found::Lost => {
                peer.lost.store(true, Ordering::Release);
                Err(Sent::Lost)
            }
        }
    }

    /// Send a message now, if its queue is empty and there is room.
    ///
    /// # Safety
    /// `length` bytes at `from` are valid.
    pub(super) unsafe fn try_send(
        &self,
        rank: usize,
        envelope: &Envelope,
        from: *const u8,
        length: usize,
    ) -> Sent {
        let peer = self.peer(rank);
        if peer.queues[queue_of(envelope.context)].length.load(Ordering::Acquire) > 0 {
            return Sent::Full;
        }
        self.send_past(peer, envelope, from, length)
    }

    /// Send a message now if there is room, without regard to the queue.
    pub(super) unsafe fn send_past(
        &self,
        peer: &Peer,
        envelope: &Envelope,
        from: *const u8,
        length: usize,
    ) -> Sent {
        let front = envelope.front(length);
        let packet = front.with(from, length);
        let path = match self.path(peer) {
            Ok(path) => path,
            Err(sent) => return sent,
        };
        let limit = match Note::of(envelope).kind {
            Kind::Streamed => limits::POURING.get() as u64,
            _ if envelope.context == CONTROL => u64::MAX,
            _ => match limits::BUFFERING.get() {
                0 => limits::ROOM as u64,
                bytes => bytes as u64,
            },
        };
        let sent = path.send(&packet, limit);
        if sent == Sent::Lost {
            peer.lost.store(true, Ordering::Release);
        }
        sent
    }

    /// Send a message as soon as there is room, behind the others of its queue.
    pub(super) fn put(&self, rank: usize, waiting: Waiting) {
        let peer = self.peer(rank);
        let queue = &peer.queues[queue_of(waiting.envelope.context)];
        let mut all = lock(&queue.waiting);
        all.push_back(waiting);
        queue.length.fetch_add(1, Ordering::Release);
        self.queued.fetch_add(1, Ordering::Release);
        // Under the same lock: whoever held it in between might only look at the queue.
        self.send_first(peer, queue, &mut all);
    }

    /// Send waiting messages, as far as there is room.
    pub(super) fn flush(&self) {
        if self.queued.load(Ordering::Acquire) == 0 {
            return;
        }
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
        // SYNC POINT engine/later: `queued` has grown before. Either this sees that the network thread
        // has stopped, or that sees the message.
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
        let before = self.queued.load(Ordering::Relaxed);
        self.flush();
        if self.queued.load(Ordering::Relaxed) < before {
            self.core.ring(); // a thread may wait for the end of such a send
        }
        if self.queued.load(Ordering::Relaxed) > 0 {
            return true;
        }
        // SYNC POINT engine/later.
        self.is_sent_later.store(false, Ordering::SeqCst);
        let is_left = self.queued.load(Ordering::SeqCst) > 0;
        if is_left {
            self.is_sent_later.store(true, Ordering::SeqCst);
        }
        is_left
    }

    /// Send the messages of a queue, from its first on, until there is no room for the next.
    fn send_first(&self, peer: &Peer, queue: &Queue, all: &mut VecDeque<Waiting>) {
        while let Some(first) = all.front_mut() {
            match self.send_waiting(peer, first) {
                Sent::Full => return,
                Sent::Gone => {}
                Sent::Lost => {
                    if let Bytes::Of(sending) | Bytes::Streamed(sending, _) = &first.bytes {
                        sending.end.set(Outcome::failed(MPI_ERR_PROC_ABORTED));
                    }
                }
            }
            all.pop_front();
            queue.length.fetch_sub(1, Ordering::Release);
            self.queued.fetch_sub(1, Ordering::Release);
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
        self.queued.fetch_sub(1, Ordering::Release);
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
                            let length = FRAGMENT.min(length - *done);
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
        if self.queued.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let blocked = self.peers.all().filter(|peer| peer.has_queued());
        let paths = blocked.filter_map(|peer| peer.path.get());
        paths.map(|path| (path, path.announce_wait())).collect()
    }

    /// True if a peer has died or left.
    pub fn has_lost(&self, rank: usize) -> bool {
        let peer = self.peer(rank);
        if rank != self.rank && !peer.is_lost() && self.endpoint.has_lost(rank) {
            peer.lost.store(true, Ordering::Release);
        }
        peer.is_lost()
    }
}
