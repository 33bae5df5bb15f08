//! Large messages that both of their processes copy, chunk by chunk.
//!
//! The receiver can read all chunks from the sender's memory. But the kernel, which has to find
//! every page of the other process, takes four times as long as a copy. So a sender that is in an
//! MPI call sends chunks through the ring: it copies one in while the receiver copies another one
//! out, and those few chunks stay in their caches. Both claim the chunks one after the other
//! (sfm_native::claims), and neither depends on the other: a sender that is busy elsewhere, or has
//! lost its core, claims nothing; if the receiver is slow, the sender writes into its memory.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use sfm_native::claims::{Claim, CLAIMS};
use sfm_native::core::Payload;
use sfm_native::packet::Envelope;
use sfm_native::ring_file::RingFile;

use super::control::{Kind, Note, Todo};
use super::offers::{bytes_of, check_valid, copy, read, Offer, VALID};
use super::peer::{Sent, SMALL};
use super::streaming::Streaming;
use super::{lock, Engine, Receiving, Sending, What, CONTROL};
use crate::data::Data;
use crate::handles::*;

/// A chunk that one side claims. Larger ones keep both waiting at the end, and of smaller ones the
/// notifications cost too much.
const CHUNK: usize = 128 << 10;
/// Looks at the ring, of about 40 ns each, before a process copies a chunk through the kernel: while
/// the other one copies a chunk, if it may be about to, and if it was elsewhere lately.
const COPYING: u32 = 2048;
const PATIENCE: u32 = 512;
const SHORT: u32 = 32;
/// Looks after which a process asks if the other one lives.
const DOUBT: u32 = 4096;

/// The destination of the bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Accept {
    length: usize,
    address: usize,
    pid: u64,
    /// The number under which the receiver knows the chunks that come through the ring.
    key: u64,
    /// The index of a claim in the ring from the receiver to the sender, and the number of its use.
    claim: u32,
    number: u32,
}

const _: () = assert!(size_of::<Accept>() <= SMALL);

impl Accept {
    pub fn read(payload: Payload<'_>) -> Option<Accept> {
        read(payload)
    }
}

/// The claim of one message, in the memory that both processes have mapped.
#[derive(Clone)]
pub(super) struct Shared {
    ring: Arc<RingFile>,
    nth: usize,
}

impl Shared {
    pub fn claim(&self) -> &Claim {
        self.ring.claim(self.nth).expect("checked when it was made")
    }
}

/// A message of this process that its receiver fetches.
pub(super) struct Helping {
    sending: Arc<Sending>,
    rank: usize,
    accept: Accept,
    shared: Shared,
    /// A chunk that is claimed, and for which the ring had no room.
    waiting: Option<u32>,
}

/// All of them.
pub(super) type Helped = Vec<Helping>;

impl Engine {
    /// Copy chunk by chunk, which the sender may do at the same time. Returns the word that tells
    /// whether the bytes were valid when they were read.
    ///
    /// # Safety
    /// `length` bytes at `to`, which is the receive's memory or `packed`, are ours to write.
    pub(super) unsafe fn fetch_together(
        &self,
        receiving: &Arc<Receiving>,
        envelope: &Envelope,
        offer: &Offer,
        (to, length): (*mut u8, usize),
        helped: &mut Helped,
    ) -> Result<u64, c_int> {
        let (note, pid) = (Note::of(envelope), offer.pid());
        let Some(shared) = self.free_claim(note.rank) else {
            return check_valid(offer, copy(pid, to, offer.address(), length, false));
        };
        let (claim, chunks) = (shared.claim(), length.div_ceil(CHUNK) as u32);
        let number = claim.begin();
        let data = Data::bytes(to, length);
        let key = self.stream_to(Streaming::of_chunks(receiving, data, shared.clone()));
        let (address, nth) = (to as usize, shared.nth as u32);
        let pid_here = u64::from(std::process::id());
        let accept = Accept { length, address, pid: pid_here, key: key.into(), claim: nth, number };
        self.send_control(Kind::Accepted, note.rank, note.number, 0, bytes_of(&accept));
        let (mut is_fetched, mut looks) = (true, 0u32);
        let (peer, mut own) = (self.peer(note.rank), 0);
        while !claim.is_done(chunks) {
            // The sender may itself fetch a message of ours. It gets chunks first, as far as there
            // is room, so that it need not wait for them at the end.
            if self.help(helped, looks) || self.take_in_chunks() {
                looks = 0;
                continue;
            }
            std::hint::spin_loop();
            looks = looks.wrapping_add(1);
            let patience = match claim.is_in_use() {
                true => COPYING,
                false if peer.helps.load(Ordering::Relaxed) => PATIENCE,
                false => SHORT,
            };
            if looks < patience {
                continue;
            }
            if let Some(chunk) = claim.claim(number, chunks) {
                let at = chunk as usize * CHUNK;
                let length = CHUNK.min(length - at);
                // Only this process has claimed this chunk of the receive's memory.
                own += 1;
                is_fetched =
                    is_fetched && copy(pid, to.add(at), offer.address() + at, length, false);
                claim.copied(); // also after a failure: the sender must not copy that chunk either
                continue;
            }
            // The sender has the last chunks.
            std::thread::yield_now();
            if looks.is_multiple_of(DOUBT) && self.has_lost(note.rank) {
                lock(&self.streamed).all.remove(&key);
                return Err(MPI_ERR_PROC_ABORTED); // its claim is never used again
            }
        }
        lock(&self.streamed).all.remove(&key);
        *lock(&self.peer(note.rank).claims) &= !(1 << shared.nth);
        peer.helps.store(own < chunks, Ordering::Relaxed);
        match own {
            0 => Ok(VALID), // the sender has copied all of them
            _ => check_valid(offer, is_fetched),
        }
    }

    /// Take in what has come through the rings; false if that was nothing.
    pub(super) fn take_in_chunks(&self) -> bool {
        let has_arrivals = self.core.shared().has_arrivals();
        if has_arrivals {
            self.core.take_in();
        }
        has_arrivals
    }

    /// An unused claim in the ring to a peer.
    fn free_claim(&self, rank: usize) -> Option<Shared> {
        let peer = self.peer(rank);
        let ring = self.path(peer).ok()?.ring()?;
        let mut claims = lock(&peer.claims);
        let nth = (0..CLAIMS).find(|nth| *claims & 1 << nth == 0)?;
        *claims |= 1 << nth;
        Some(Shared { ring, nth })
    }

    /// The receiver fetches what this process has offered.
    pub(super) fn accepted(&self, note: &Note, accept: Accept) -> Option<Helping> {
        let sending = lock(&self.answered).all.get(&note.number).cloned()?;
        let ring = self.core.ring_from(self.endpoint.uid(note.rank))?;
        let nth = accept.claim as usize;
        ring.claim(nth)?;
        let shared = Shared { ring, nth };
        Some(Helping { sending, rank: note.rank, accept, shared, waiting: None })
    }

    /// A message that its receiver has begun to fetch; before other work that is queued.
    fn next_accepted(&self) -> Option<(Note, Accept)> {
        if !self.has_todo.load(Ordering::Acquire) {
            return None;
        }
        let mut todo = lock(&self.todo);
        let nth = todo.iter().position(|todo| matches!(todo, Todo::Accepted(..)))?;
        let Some(Todo::Accepted(note, accept)) = todo.remove(nth) else { return None };
        Some((note, accept))
    }

    /// Copy a chunk of each message that is fetched from this process, also of those whose fetching
    /// has only just begun. False if there was nothing to copy, or no room. `looks`: how often the
    /// caller has found nothing to do.
    pub(super) fn help(&self, helped: &mut Helped, looks: u32) -> bool {
        while let Some((note, accept)) = self.next_accepted() {
            helped.extend(self.accepted(&note, accept));
        }
        let mut has_copied = false;
        helped.retain_mut(|helping| {
            let step = self.help_with(helping, looks >= PATIENCE);
            has_copied |= step == Step::Copied;
            step != Step::Over
        });
        has_copied
    }

    /// `is_slow`: the receiver makes no room.
    fn help_with(&self, helping: &mut Helping, is_slow: bool) -> Step {
        let Helping { sending, rank, accept, shared, waiting } = helping;
        let claim = shared.claim();
        sending.with_bytes(|from, length| {
            let length = length.min(accept.length);
            let next = || claim.claim(accept.number, length.div_ceil(CHUNK) as u32);
            let Some(chunk) = waiting.take().or_else(next) else { return Step::Over };
            let at = chunk as usize * CHUNK;
            let (length, here) = (CHUNK.min(length.saturating_sub(at)), from.wrapping_add(at));
            // SAFETY: a chunk of the send's bytes: as long as it is claimed and not copied, the
            // receiver does not answer, and the send does not end.
            match unsafe { self.send_chunk(*rank, accept.key, at, here, length) } {
                Sent::Gone => return Step::Copied,
                Sent::Full if !is_slow => {
                    *waiting = Some(chunk);
                    return Step::Waits;
                }
                Sent::Full | Sent::Lost => {}
            }
            // SAFETY: as above; the kernel checks the receiver's memory.
            if unsafe { copy(accept.pid, here.cast_mut(), accept.address + at, length, true) } {
                claim.copied();
                return Step::Copied;
            }
            if self.has_lost(*rank) {
                return Step::Over;
            }
            *waiting = Some(chunk); // the receiver counts on it
            Step::Waits
        })
    }

    /// # Safety
    /// `length` bytes at `from` are valid.
    unsafe fn send_chunk(
        &self,
        rank: usize,
        key: u64,
        at: usize,
        from: *const u8,
        length: usize,
    ) -> Sent {
        let (context, tag) = (CONTROL, key as i64);
        let note = Note { kind: Kind::Streamed, what: What::Message, rank: 0, number: 0 }.word();
        let envelope = Envelope { context, source: at as i64, tag, note };
        self.send_past(self.peer(rank), &envelope, from, length)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Copied,
    /// For room in the ring.
    Waits,
    Over,
}
