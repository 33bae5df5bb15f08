//! One other process: the way to it, and the sends that wait for room there.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use sfm_native::packet::{account, Envelope};

use super::control::{Kind, Note};
use super::operation::Outcome;
use super::path::Path;
use super::{limits, lock, Engine, Sending, What, CONTROL};
use crate::handles::*;
use crate::home::Found;

/// Bytes of a large message that are poured at a time.
const PIECE: usize = 32 << 10;

pub struct Peer {
    /// Its number (`process`).
    pub rank: usize,
    channel: OnceLock<Path>,
    making: Mutex<()>,
    /// What waits: the program's messages, the collectives', and what libraries say to each other.
    /// None of them waits for another queue's.
    queues: [Queue; 3],
    lost: AtomicBool,
    /// Claims of the ring to it that are in use, as bits.
    pub(super) claims: Mutex<u32>,
    /// Whether its memory can be read, once that was tried.
    pub(super) readable: OnceLock<bool>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<VecDeque<Waiting>>,
    /// How many; no message goes past those that are being sent.
    length: AtomicUsize,
}

/// A message that waits.
pub struct Waiting {
    envelope: Envelope,
    bytes: Bytes,
}

enum Bytes {
    /// Of the send itself, which ends when they have gone.
    Of(Arc<Sending>),
    /// A few of our own.
    Own([u8; SMALL], usize),
    /// Many of our own.
    Kept(Vec<u8>),
    /// Those of a large message from this place on.
    Poured(Arc<Sending>, usize),
}

/// What an offer and the like take, at most.
pub const SMALL: usize = 64;

/// How far a send got.
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
        let mut own = [0; SMALL];
        own[..bytes.len()].copy_from_slice(bytes);
        Waiting { envelope, bytes: Bytes::Own(own, bytes.len()) }
    }

    /// Bytes of our own, as many as there are.
    pub fn kept(envelope: Envelope, bytes: Vec<u8>) -> Waiting {
        Waiting { envelope, bytes: Bytes::Kept(bytes) }
    }

    /// A send's bytes, which end it.
    pub fn send(sending: Arc<Sending>) -> Waiting {
        Waiting { envelope: sending.envelope, bytes: Bytes::Of(sending) }
    }

    /// All bytes of a send, for the receive that the peer knows under `key`.
    pub fn pour(sending: Arc<Sending>, key: i64) -> Waiting {
        let note = Note { kind: Kind::Poured, what: What::Message, rank: 0, number: 0 }.word();
        let envelope = Envelope { context: CONTROL, source: 0, tag: key, note };
        Waiting { envelope, bytes: Bytes::Poured(sending, 0) }
    }
}

/// Which of a peer's queues a message of this context waits in.
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
        let (channel, lost, claims) = (OnceLock::new(), AtomicBool::new(false), Mutex::new(0));
        Peer {
            rank,
            channel,
            making: Mutex::new(()),
            queues,
            lost,
            claims,
            readable: OnceLock::new(),
        }
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

    /// The way to a peer, made on first use. Err where it has died, or has not joined yet.
    pub(super) fn channel<'a>(&self, peer: &'a Peer) -> Result<&'a Path, Sent> {
        if let Some(channel) = peer.channel.get() {
            return Ok(channel);
        }
        let _making = lock(&peer.making);
        if let Some(channel) = peer.channel.get() {
            return Ok(channel);
        }
        match self.endpoint.channel(peer.rank) {
            Found::Channel(channel) => Ok(peer.channel.get_or_init(|| Path(channel))),
            Found::NotYet => Err(Sent::Full),
            Found::Lost => {
                peer.lost.store(true, Ordering::Release);
                Err(Sent::Lost)
            }
        }
    }

    /// Send a message now, if nothing of its kind waits, and if there is room.
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
        // SAFETY: as the caller promises.
        unsafe { self.send_past(peer, envelope, from, length) }
    }

    /// The same, whatever waits.
    unsafe fn send_past(
        &self,
        peer: &Peer,
        envelope: &Envelope,
        from: *const u8,
        length: usize,
    ) -> Sent {
        let front = envelope.front(length);
        // SAFETY: as the caller promises.
        let packet = unsafe { front.with(from, length) };
        let channel = match self.channel(peer) {
            Ok(channel) => channel,
            Err(sent) => return sent,
        };
        let limit = match Note::of(envelope).kind {
            Kind::Poured => limits::POURING.get() as u64,
            _ if envelope.context == CONTROL => u64::MAX,
            _ => match limits::BUFFERING.get() {
                0 => limits::ROOM as u64,
                bytes => bytes as u64,
            },
        };
        let sent = channel.send(&packet, limit);
        if sent == Sent::Lost {
            peer.lost.store(true, Ordering::Release);
        }
        sent
    }

    /// Send a message as soon as there is room, behind those of its kind.
    pub(super) fn put(&self, rank: usize, waiting: Waiting) {
        let peer = self.peer(rank);
        let queue = &peer.queues[queue_of(waiting.envelope.context)];
        {
            let mut all = lock(&queue.waiting);
            all.push_back(waiting);
            queue.length.fetch_add(1, Ordering::Release);
            self.queued.fetch_add(1, Ordering::Release);
        }
        self.flush_queue(peer, queue);
    }

    /// Send what waits, as far as there is room.
    pub(super) fn flush(&self) {
        if self.queued.load(Ordering::Acquire) == 0 {
            return;
        }
        for peer in self.peers.all().filter(|peer| peer.has_queued()) {
            for queue in &peer.queues {
                self.flush_queue(peer, queue);
            }
        }
    }

    fn flush_queue(&self, peer: &Peer, queue: &Queue) {
        // One at a time, or order would be lost; whoever has the lock sends what comes meanwhile.
        let Ok(mut all) = queue.waiting.try_lock() else { return };
        while let Some(first) = all.front_mut() {
            match self.send_waiting(peer, first) {
                Sent::Full => return,
                Sent::Gone => {}
                Sent::Lost => {
                    if let Bytes::Of(sending) | Bytes::Poured(sending, _) = &first.bytes {
                        sending.end.set(Outcome::failed(MPI_ERR_PROC_ABORTED));
                    }
                }
            }
            all.pop_front();
            queue.length.fetch_sub(1, Ordering::Release);
            self.queued.fetch_sub(1, Ordering::Release);
        }
    }

    /// The program's messages to a peer that wait for room or credit.
    pub fn waiting_for(&self, rank: usize) -> usize {
        self.peer(rank).queues[queue_of(0)].length.load(Ordering::Relaxed)
    }

    /// Take a send out of its queue; false if it has gone.
    pub(super) fn drop_waiting(&self, sending: &Arc<Sending>) -> bool {
        let queue = &self.peer(sending.dest).queues[queue_of(sending.envelope.context)];
        let mut all = lock(&queue.waiting);
        let is_it = |one: &Waiting| match &one.bytes {
            Bytes::Of(own) => Arc::ptr_eq(own, sending),
            // An offer: the number of its note is its own.
            Bytes::Own(..) => one.envelope == sending.envelope,
            Bytes::Kept(_) | Bytes::Poured(..) => false,
        };
        let Some(nth) = all.iter().position(is_it) else { return false };
        all.remove(nth);
        queue.length.fetch_sub(1, Ordering::Release);
        self.queued.fetch_sub(1, Ordering::Release);
        true
    }

    fn send_waiting(&self, peer: &Peer, one: &mut Waiting) -> Sent {
        let Waiting { envelope, bytes } = one;
        // SAFETY: a send's bytes are there until it ends; `own` is here.
        unsafe {
            match bytes {
                Bytes::Own(own, length) => self.send_past(peer, envelope, own.as_ptr(), *length),
                Bytes::Kept(kept) => self.send_past(peer, envelope, kept.as_ptr(), kept.len()),
                Bytes::Of(sending) => {
                    let sent = sending
                        .with_bytes(|from, length| self.send_past(peer, envelope, from, length));
                    if sent == Sent::Gone {
                        sending.gone();
                    }
                    sent
                }
                Bytes::Poured(sending, done) => {
                    let sent = sending.with_bytes(|from, length| {
                        while *done < length {
                            envelope.source = *done as i64;
                            let piece = PIECE.min(length - *done);
                            let sent = self.send_past(peer, envelope, from.add(*done), piece);
                            if sent != Sent::Gone {
                                return sent;
                            }
                            *done += piece;
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

    /// A message of the program's that waits for room.
    pub(super) fn first_waiting(&self) -> Option<Arc<Sending>> {
        let queues = self.peers.all().map(|peer| &peer.queues[queue_of(0)]);
        queues.into_iter().find_map(|queue| match &lock(&queue.waiting).front()?.bytes {
            Bytes::Of(sending) => Some(sending.clone()),
            Bytes::Own(..) | Bytes::Kept(_) | Bytes::Poured(..) => None,
        })
    }

    /// Whether a message of this context waits for room.
    pub(super) fn has_waiting_in(&self, context: u64) -> bool {
        let queues = self.peers.all().map(|peer| &peer.queues[queue_of(context)]);
        let mut queues = queues.filter(|queue| queue.length.load(Ordering::Acquire) > 0);
        queues.any(|queue| lock(&queue.waiting).iter().any(|one| one.envelope.context == context))
    }

    /// The peers for which something waits, each with what changes when there may be room.
    pub(super) fn announce_waits(&self) -> Vec<(&Path, u64)> {
        if self.queued.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let blocked = self.peers.all().filter(|peer| peer.has_queued());
        let ways = blocked.filter_map(|peer| peer.channel.get());
        ways.map(|channel| (channel, channel.announce_wait())).collect()
    }

    /// Whether a peer has died or left.
    pub(super) fn has_lost(&self, rank: usize) -> bool {
        let peer = self.peer(rank);
        if rank != self.rank && !peer.is_lost() && self.endpoint.has_lost(rank) {
            peer.lost.store(true, Ordering::Release);
        }
        peer.is_lost()
    }
}
