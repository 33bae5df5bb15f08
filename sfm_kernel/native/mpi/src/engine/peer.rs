//! One other process, and the path to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use sfm_native::packet::Envelope;

use super::control::{MessageKind, Note};
use super::path::Path;
use super::queue::{queue_of, Queue};
use super::{limits, lock, Engine, CONTROL};
use crate::membership::Found;

pub struct Peer {
    /// Its number (`process`).
    pub rank: usize,
    pub(super) path: OnceLock<Path>,
    making: Mutex<()>,
    /// The waiting messages: the program's, the collectives', and control messages. No queue waits
    /// for another.
    pub(super) queues: [Queue; 3],
    lost: AtomicBool,
    /// The claims in use of the ring to the peer, as bits.
    pub(super) claims: Mutex<u32>,
    /// True if the peer has copied chunks of the last large message that it has sent.
    pub(super) helps: AtomicBool,
    /// True if the peer's memory can be read; set by the first attempt.
    pub(super) readable: OnceLock<bool>,
}

/// The result of an attempt to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    Gone,
    /// There is no room or no credit for it now, or the peer has not joined yet.
    Full,
    /// The peer has died or left.
    Lost,
}

/// How many bytes of such messages may be in transit.
fn limit(envelope: &Envelope) -> u64 {
    match Note::of(envelope).kind {
        MessageKind::Streamed => limits::POURING.get() as u64,
        _ if envelope.context == CONTROL => u64::MAX,
        _ => match limits::BUFFERING.get() {
            0 => limits::ROOM as u64,
            bytes => bytes as u64,
        },
    }
}

impl Peer {
    pub fn new(rank: usize) -> Peer {
        let queues = Default::default();
        let (path, lost, claims) = (OnceLock::new(), AtomicBool::new(false), Mutex::new(0));
        let (making, helps, readable) = (Mutex::new(()), AtomicBool::new(true), OnceLock::new());
        Peer { rank, path, making, queues, lost, claims, helps, readable }
    }

    pub fn has_queued(&self) -> bool {
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
            Found::Channel(channel) => Ok(peer.path.get_or_init(|| Path::new(channel))),
            Found::NotYet => Err(Sent::Full),
            Found::Lost => {
                peer.lost.store(true, Ordering::Release);
                Err(Sent::Lost)
            }
        }
    }

    /// The largest number of bytes in a message to a process; longer ones are offered, or go in
    /// fragments.
    pub fn longest(&self, rank: usize) -> usize {
        match self.path(self.peer(rank)) {
            Ok(path) => path.longest,
            Err(Sent::Full) => limits::ALWAYS_FITS, // its ring is not made yet
            Err(_) => usize::MAX,
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
        self.on_path(peer, |path| path.send(&packet, limit(envelope)))
    }

    /// Whether a message of this length would now be sent (`Gone`).
    pub(super) fn room(&self, peer: &Peer, envelope: &Envelope, length: usize) -> Sent {
        self.on_path(peer, |path| path.room(envelope, length, limit(envelope)))
    }

    #[inline]
    fn on_path(&self, peer: &Peer, work: impl FnOnce(&Path) -> Sent) -> Sent {
        let sent = match self.path(peer) {
            Ok(path) => work(path),
            Err(sent) => return sent,
        };
        if sent == Sent::Lost {
            peer.lost.store(true, Ordering::Release);
        }
        sent
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
