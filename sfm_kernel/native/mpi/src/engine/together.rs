//! Large messages that both of their processes copy, chunk by chunk.
//!
//! The receiver can read all chunks from the sender's memory. But the kernel, which has to find
//! every page of the other process, takes four times as long as a copy. So a sender that is in an
//! MPI call sends chunks through the ring: it copies one in while the receiver copies another one
//! out, and those few chunks stay in their caches. Both claim the chunks one after the other
//! (sfm_native::claims), and neither depends on the other: a sender that is busy elsewhere, or has
//! lost its core, claims nothing; nor does it claim what the ring has no room for.
//!
//! A sender that is stopped in the middle of a chunk keeps it, maybe for ever. So nobody waits here:
//! what gets no further is left `unfinished`, and the calls of both processes go on with it as they
//! do with messages that wait for room.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use sfm_native::claims::{Claim, CLAIMS};
use sfm_native::core::Payload;
use sfm_native::packet::Envelope;
use sfm_native::ring_file::RingFile;

use super::control::{MessageKind, Note, Todo};
use super::offers::{bytes_of, check_valid, read, Fetch, VALID};
use super::peer::Sent;
use super::queue::{Waiting, SMALL};
use super::streaming::Streaming;
use super::{lock, Collective, Engine, Sending, CONTROL};
use crate::handles::*;

/// A chunk that one side claims. Larger ones keep both waiting at the end, and of smaller ones the
/// notifications cost too much.
const CHUNK: usize = 128 << 10;
/// Looks at the ring, of about 40 ns each, before a process copies a chunk through the kernel: while
/// the other one copies a chunk, if it may be about to, and if it was elsewhere lately.
const COPYING: u32 = 2048;
const PATIENCE: u32 = 512;
const SHORT: u32 = 32;
/// Looks after which a process that can do nothing leaves the rest for later.
const LEAVING: u32 = 4096;

/// The receiver fetches a message.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Accept {
    length: usize,
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

/// A message of another process that this process fetches.
pub(super) struct Fetching {
    fetch: Fetch,
    shared: Shared,
    /// The number of the claim's use, and the number of the chunks that come through the ring.
    number: u32,
    key: u32,
    /// Chunks that this process has copied, and whether it could.
    own: u32,
    is_fetched: bool,
}

/// A message of this process that its receiver fetches.
pub(super) struct Helping {
    sending: Arc<Sending>,
    rank: usize,
    accept: Accept,
    shared: Shared,
}

/// All of them.
pub(super) type Helped = Vec<Helping>;

/// Messages whose other process has to go on first.
#[derive(Default)]
pub(super) struct Unfinished {
    fetched: Vec<Fetching>,
    helped: Helped,
}

impl Engine {
    /// Fetch a message by chunks, which the sender may copy at the same time.
    pub(super) fn fetch_together(&self, fetch: Fetch, shared: Shared, helped: &mut Helped) {
        let (note, number) = (fetch.note(), shared.claim().begin());
        let streaming = Streaming::of_chunks(&fetch.receiving, fetch.to().clone(), shared.clone());
        let (length, nth, key) = (fetch.to().len(), shared.nth as u32, self.stream_to(streaming));
        let accept = Accept { length, key: key.into(), claim: nth, number };
        self.send_control(MessageKind::Accepted, note.rank, note.number, 0, bytes_of(&accept));
        let fetching = Fetching { fetch, shared, number, key, own: 0, is_fetched: true };
        self.go_on(fetching, helped, 0);
    }

    /// Copy until all chunks have come, or until only those are missing that the sender keeps.
    /// `looks`: how often the caller has found nothing to do.
    fn go_on(&self, mut fetching: Fetching, helped: &mut Helped, mut looks: u32) {
        let (shared, peer) = (fetching.shared.clone(), self.peer(fetching.fetch.note().rank));
        let (claim, chunks) = (shared.claim(), fetching.chunks());
        while !claim.is_done(chunks) {
            // The sender may itself fetch a message of ours. It gets chunks first, as far as there
            // is room, so that it need not wait for them at the end.
            if self.help(helped) || self.take_in_chunks() {
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
            if let Some(chunk) = claim.claim(fetching.number, chunks) {
                fetching.copy(chunk);
                continue;
            }
            // The sender has the last chunks.
            if looks < LEAVING {
                std::thread::yield_now();
                continue;
            }
            if !self.has_lost(peer.rank) {
                return self.leave(vec![fetching], vec![]);
            }
            lock(&self.streamed).all.remove(&fetching.key);
            // The claim is never used again.
            return self.end_fetch(fetching.fetch, Err(MPI_ERR_PROC_ABORTED));
        }
        lock(&self.streamed).all.remove(&fetching.key);
        *lock(&peer.claims) &= !(1 << shared.nth);
        peer.helps.store(fetching.own < chunks, Ordering::Relaxed);
        let valid = match fetching.own {
            0 => Ok(VALID), // the sender has copied all of them
            _ => check_valid(&fetching.fetch.offer, fetching.is_fetched),
        };
        self.end_fetch(fetching.fetch, valid);
    }

    /// Keep messages that wait for their other process.
    pub(super) fn leave(&self, fetched: Vec<Fetching>, helped: Helped) {
        let mut unfinished = lock(&self.unfinished);
        self.held_back.fetch_add(fetched.len() + helped.len(), Ordering::Release);
        unfinished.fetched.extend(fetched);
        unfinished.helped.extend(helped);
    }

    /// Go on with what was left.
    pub(super) fn go_on_with_unfinished(&self) {
        let mut unfinished = lock(&self.unfinished);
        let Unfinished { fetched, mut helped } = std::mem::take(&mut *unfinished);
        self.held_back.fetch_sub(fetched.len() + helped.len(), Ordering::Release);
        drop(unfinished);
        for fetching in fetched {
            self.go_on(fetching, &mut helped, LEAVING);
        }
        if !helped.is_empty() {
            self.catch_up_and_help(helped, COPYING);
        }
    }

    /// The processes that have not received what this process could send them of such messages.
    pub(super) fn slow_receivers(&self) -> Vec<usize> {
        lock(&self.unfinished).helped.iter().map(|helping| helping.rank).collect()
    }

    /// Do the queued work, and help those who fetch from this process.
    pub(super) fn catch_up_and_help(&self, mut helped: Helped, mut looks: u32) {
        loop {
            while let Some(todo) = self.next_todo() {
                self.carry_out(todo, &mut helped);
            }
            let has_copied = self.help(&mut helped);
            if helped.is_empty() {
                return;
            }
            if has_copied || self.take_in_chunks() {
                looks = 0;
            } else if looks < COPYING {
                looks += 1;
            } else {
                return self.leave(vec![], helped);
            }
        }
    }

    /// Take in what has come through the rings; false if that was nothing.
    fn take_in_chunks(&self) -> bool {
        let has_arrivals = self.core.shared().has_arrivals();
        if has_arrivals {
            self.core.take_in();
        }
        has_arrivals
    }

    /// An unused claim in the ring to a peer.
    pub(super) fn free_claim(&self, rank: usize) -> Option<Shared> {
        let peer = self.peer(rank);
        let ring = self.path(peer).ok()?.ring()?;
        let mut claims = lock(&peer.claims);
        let nth = (0..CLAIMS).find(|nth| *claims & 1 << nth == 0)?;
        *claims |= 1 << nth;
        Some(Shared { ring, nth })
    }

    /// The receiver fetches what this process has offered. None if this one cannot help.
    pub(super) fn accepted(&self, note: &Note, accept: Accept) -> Option<Helping> {
        if CHUNK.min(accept.length) > self.longest(note.rank) {
            return None; // the ring would never have room
        }
        let sending = lock(&self.answered).all.get(&note.number).cloned()?;
        let ring = self.core.ring_from(self.endpoint.uid(note.rank))?;
        let nth = accept.claim as usize;
        ring.claim(nth)?;
        let shared = Shared { ring, nth };
        Some(Helping { sending, rank: note.rank, accept, shared })
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
    /// has only just begun. False if there was nothing to copy, or no room.
    fn help(&self, helped: &mut Helped) -> bool {
        while let Some((note, accept)) = self.next_accepted() {
            helped.extend(self.accepted(&note, accept));
        }
        let mut has_copied = false;
        helped.retain(|helping| {
            let step = self.help_with(helping);
            has_copied |= step == Step::Copied;
            step != Step::Over
        });
        has_copied
    }

    fn help_with(&self, helping: &Helping) -> Step {
        let Helping { sending, rank, accept, shared } = helping;
        let peer = self.peer(*rank);
        let (context, tag) = (CONTROL, accept.key as i64);
        let note =
            Note { kind: MessageKind::Streamed, what: Collective::Message, rank: 0, number: 0 }
                .word();
        let envelope = Envelope { context, source: 0, tag, note };
        let step = sending.with_bytes(|from, length| {
            let length = length.min(accept.length);
            // A chunk that is claimed goes on its way at once: the receiver counts on it.
            match self.room(peer, &envelope, CHUNK.min(length)) {
                Sent::Gone => {}
                Sent::Full => return Ok(Step::Waits),
                Sent::Lost => return Ok(Step::Over),
            }
            let chunks = length.div_ceil(CHUNK) as u32;
            let Some(chunk) = shared.claim().claim(accept.number, chunks) else {
                return Ok(Step::Over);
            };
            let at = chunk as usize * CHUNK;
            let (length, here) = (CHUNK.min(length - at), from.wrapping_add(at));
            let envelope = Envelope { source: at as i64, ..envelope };
            // SAFETY: a chunk of the send's bytes: as long as it is claimed and has not come, the
            // receiver does not answer, and the send does not end.
            unsafe {
                match self.send_past(peer, &envelope, here, length) {
                    Sent::Gone | Sent::Lost => Ok(Step::Copied),
                    // Another thread has taken the room.
                    Sent::Full => {
                        Err((envelope, std::slice::from_raw_parts(here, length).to_vec()))
                    }
                }
            }
        });
        step.unwrap_or_else(|(envelope, copy)| {
            self.put(*rank, Waiting::many(envelope, copy));
            Step::Copied
        })
    }
}

impl Fetching {
    fn chunks(&self) -> u32 {
        self.fetch.to().len().div_ceil(CHUNK) as u32
    }

    /// Copy a chunk that this process has claimed.
    fn copy(&mut self, chunk: u32) {
        let at = chunk as usize * CHUNK;
        self.own += 1;
        self.is_fetched &= self.fetch.copy(at..self.fetch.to().len().min(at + CHUNK));
        // Also after a failure: the sender must not copy that chunk either.
        self.shared.claim().copied();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Copied,
    /// For room in the ring.
    Waits,
    Over,
}
