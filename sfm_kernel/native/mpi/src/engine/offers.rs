//! Large messages: the sender says where the bytes are, the receiver fetches them.
//!
//! Where the kernel lets one process read another's memory, they are copied once, straight from the
//! user's memory into the user's memory. The receiver does that with no help; but a sender that is
//! waiting copies, too: both claim pieces of the message (sfm_native::claims). Where the kernel does
//! not (seccomp in some containers, processes in separate namespaces), the sender pours the bytes out
//! in pieces, through the ring's arena, while the receiver copies the piece before.
//!
//! Whether the kernel does is found out by the first fetch from each peer: its offer says where a
//! number of its own stands.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use sfm_native::claims::CLAIMS;
use sfm_native::core::Payload;
use sfm_native::packet::Envelope;
use sfm_native::ring_file::RingFile;

use super::control::{Kind, Note};
use super::operation::Outcome;
use super::peer::SMALL;
use super::{limits, lock, Engine, Receiving, Sending};
use crate::handles::*;

/// A piece that one side claims: a few hundred microseconds at most.
const PIECE: usize = 256 << 10;

/// What the first fetch from a process compares: 64 bits that another process does not have there.
static PROOF: AtomicU64 = AtomicU64::new(0);

/// What lets a peer find out whether it can read a process's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    pub pid: u64,
    at: usize,
    value: u64,
}

/// Where the bytes are.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    pub length: usize,
    address: usize,
    from: Proof,
    /// Where 0 stands once the bytes are not at `address` any more, but kept by the sender.
    stands_at: usize,
}

/// Where they go.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Accept {
    length: usize,
    address: usize,
    pid: u64,
    /// Which claim of the ring from the receiver to the sender, and which use of it.
    claim: u32,
    number: u32,
}

const _: () = assert!(size_of::<Offer>() <= SMALL && size_of::<Accept>() <= SMALL);

/// Read a value that the other side's library has written.
fn read<T: Copy>(payload: Payload<'_>) -> Option<T> {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: room for so many bytes; any bytes are integers.
    unsafe {
        let copied = payload.copy(value.as_mut_ptr().cast(), size_of::<T>());
        (copied == size_of::<T>()).then(|| value.assume_init())
    }
}

fn bytes_of<T>(value: &T) -> &[u8] {
    // SAFETY: integers without gaps between them.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>()) }
}

impl Proof {
    pub fn own(engine: &Engine) -> Proof {
        let (pid, value) = (u64::from(std::process::id()), engine.core.shared().uid() as u64);
        Proof { pid, at: &raw const PROOF as usize, value }
    }

    /// Whether the kernel lets us read the process's memory, and it is the one that was meant.
    fn holds(&self) -> bool {
        word(self.pid, self.at) == Some(self.value)
    }
}

impl Offer {
    pub fn of(engine: &Engine, from: *const u8, length: usize, sending: &Sending) -> Offer {
        let (address, stands_at) = (from as usize, sending.stands_at());
        Offer { length, address, from: Proof::own(engine), stands_at }
    }

    pub fn bytes(&self) -> &[u8] {
        bytes_of(self)
    }

    pub fn read(payload: Payload<'_>) -> Option<Offer> {
        read(payload)
    }
}

impl Accept {
    pub fn read(payload: Payload<'_>) -> Option<Accept> {
        read(payload)
    }
}

/// Let the peers, which are processes of the same user, read this process's memory, where the kernel
/// asks for it (Yama).
pub fn let_peers_read() {
    PROOF.store(super::engine().core.shared().uid() as u64, Ordering::Release);
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    if scope.is_ok_and(|scope| scope.trim() == "1") {
        const PR_SET_PTRACER: i32 = 0x5961_6d61;
        const ANY: libc::c_ulong = libc::c_ulong::MAX;
        // SAFETY: no memory is involved.
        unsafe { libc::prctl(PR_SET_PTRACER, ANY, 0, 0, 0) };
    }
}

/// Copy between our memory and a process's; false where the kernel does not.
///
/// # Safety
/// `length` bytes at `here` are ours to read or write.
pub unsafe fn copy(pid: u64, here: *mut u8, there: usize, length: usize, write: bool) -> bool {
    let mut done = 0;
    while done < length {
        let left = length - done;
        let own = libc::iovec { iov_base: here.wrapping_add(done).cast(), iov_len: left };
        let its = libc::iovec { iov_base: (there + done) as *mut c_void, iov_len: left };
        let pid = pid as libc::pid_t;
        // SAFETY: as the caller promises; the kernel checks the other side.
        let copied = unsafe {
            match write {
                false => libc::process_vm_readv(pid, &own, 1, &its, 1, 0),
                true => libc::process_vm_writev(pid, &own, 1, &its, 1, 0),
            }
        };
        if copied <= 0 {
            return false;
        }
        done += copied as usize;
    }
    true
}

/// A word of a process's memory; None where the kernel does not let us read it.
fn word(pid: u64, at: usize) -> Option<u64> {
    let mut found = 0u64;
    // SAFETY: eight bytes of ours.
    unsafe { copy(pid, (&raw mut found).cast(), at, 8, false) }.then_some(found)
}

/// The offered bytes, and then the word that tells whether they still stand there: as a rule in one
/// call of the kernel, which copies in this order.
///
/// # Safety
/// `length` bytes at `to` are ours to write.
unsafe fn fetch_with_word(offer: &Offer, to: *mut u8, length: usize) -> Result<u64, c_int> {
    let mut found = 0u64;
    let local = [
        libc::iovec { iov_base: to.cast(), iov_len: length },
        libc::iovec { iov_base: (&raw mut found).cast(), iov_len: 8 },
    ];
    let remote = [
        libc::iovec { iov_base: offer.address as *mut c_void, iov_len: length },
        libc::iovec { iov_base: offer.stands_at as *mut c_void, iov_len: 8 },
    ];
    // SAFETY: as the caller promises; the kernel checks the other side.
    let copied = unsafe {
        let pid = offer.from.pid as libc::pid_t;
        libc::process_vm_readv(pid, local.as_ptr(), 2, remote.as_ptr(), 2, 0)
    };
    if copied == (length + 8) as isize {
        return Ok(found);
    }
    // SAFETY: as the caller promises.
    let is_whole = unsafe { copy(offer.from.pid, to, offer.address, length, false) };
    still(offer, is_whole)
}

/// The word after a fetch, which may have failed if it says that the bytes do not stand there any
/// more. Else: an error, of a process that is gone, or of a program that has freed the memory.
fn still(offer: &Offer, is_fetched: bool) -> Result<u64, c_int> {
    match word(offer.from.pid, offer.stands_at) {
        None => Err(MPI_ERR_PROC_ABORTED),
        Some(stands) if stands != 0 && !is_fetched => Err(MPI_ERR_BUFFER),
        Some(stands) => Ok(stands),
    }
}

impl Engine {
    /// The message of a receive is an offer: fetch it.
    pub(super) fn fetch(&self, receiving: &Arc<Receiving>, envelope: &Envelope, offer: &Offer) {
        let note = Note::of(envelope);
        let peer = self.peer(note.rank);
        if !*peer.readable.get_or_init(|| offer.from.holds()) {
            return self.pull(receiving, envelope, offer);
        }
        let length = offer.length.min(receiving.data.len());
        let mut packed = Vec::new();
        let to = receiving.data.contiguous().unwrap_or_else(|| {
            packed.reserve_exact(length);
            packed.as_mut_ptr()
        });
        // SYNC POINT offer: the bytes before the word.
        // SAFETY: the memory is the receive's, and at least `length` bytes.
        let stands = unsafe {
            match length >= limits::HELP_FROM.get() {
                true => still(offer, self.fetch_together(&note, offer, to, length)),
                false => fetch_with_word(offer, to, length),
            }
        };
        match stands {
            Err(code) => return receiving.end.set(Outcome::failed(code)),
            Ok(0) => return self.pull(receiving, envelope, offer),
            Ok(_) => {}
        }
        if receiving.data.contiguous().is_none() {
            // SAFETY: just read.
            unsafe {
                packed.set_len(length);
                receiving.data.fill(Payload(&packed, &[]));
            }
        }
        self.say(Kind::Received, note.rank, note.number, 0, &[]);
        receiving.finish(envelope, offer.length);
    }

    /// Whether the kernel lets us read and write a peer's memory.
    pub fn can_reach(&self, rank: usize, proof: &Proof) -> bool {
        let mut value = proof.value;
        let here = (&raw mut value).cast();
        *self.peer(rank).readable.get_or_init(|| proof.holds())
            // SAFETY: eight bytes of ours, which are the same there.
            && unsafe { copy(proof.pid, here, proof.at, 8, true) }
    }

    /// Copy piece by piece, as the sender may, too.
    unsafe fn fetch_together(
        &self,
        note: &Note,
        offer: &Offer,
        to: *mut u8,
        length: usize,
    ) -> bool {
        let Some((ring, nth)) = self.free_claim(note.rank) else {
            // SAFETY: as the caller promises.
            return unsafe { copy(offer.from.pid, to, offer.address, length, false) };
        };
        let claim = ring.claim(nth).expect("one of them");
        let number = claim.begin();
        let (pid, pieces) = (u64::from(std::process::id()), length.div_ceil(PIECE) as u32);
        let accept = Accept { length, address: to as usize, pid, claim: nth as u32, number };
        self.say(Kind::Accepted, note.rank, note.number, 0, bytes_of(&accept));
        let mut is_fetched = true;
        while let Some(piece) = claim.claim(number, pieces) {
            let at = piece as usize * PIECE;
            let part = PIECE.min(length - at);
            // SAFETY: a part of the receive's memory that nobody else has claimed.
            is_fetched = is_fetched
                && unsafe { copy(offer.from.pid, to.add(at), offer.address + at, part, false) };
            claim.copied(); // also if not: the sender is to leave that part alone, too
        }
        let mut turns = 0u32;
        while !claim.is_done(pieces) {
            std::thread::yield_now();
            turns += 1;
            if turns.is_multiple_of(4096) && self.has_lost(note.rank) {
                return false; // its claim is never used again
            }
        }
        *lock(&self.peer(note.rank).claims) &= !(1 << nth);
        is_fetched
    }

    /// A claim in the ring to a peer that is not in use.
    fn free_claim(&self, rank: usize) -> Option<(Arc<RingFile>, usize)> {
        let peer = self.peer(rank);
        let ring = self.channel(peer).ok()?.ring()?;
        let mut claims = lock(&peer.claims);
        let nth = (0..CLAIMS).find(|nth| *claims & 1 << nth == 0)?;
        *claims |= 1 << nth;
        Some((ring, nth))
    }

    /// The receiver fetches what this process has offered: copy some of it.
    pub(super) fn help(&self, note: &Note, accept: &Accept) {
        let sending = lock(&self.answered).all.get(&note.number).cloned();
        let ring = self.core.ring_from(self.endpoint.uid(note.rank));
        let (Some(sending), Some(ring)) = (sending, ring) else { return };
        let Some(claim) = ring.claim(accept.claim as usize) else { return };
        let mut probe = 0u8;
        // SAFETY: a byte of ours.
        if !unsafe { copy(accept.pid, &mut probe, accept.address, 1, false) } {
            return;
        }
        sending.with_bytes(|from, length| {
            let length = length.min(accept.length);
            let pieces = length.div_ceil(PIECE) as u32;
            while let Some(piece) = claim.claim(accept.number, pieces) {
                let at = piece as usize * PIECE;
                let (part, here) = (PIECE.min(length - at), from.wrapping_add(at).cast_mut());
                // SAFETY: a part of the send's bytes.
                if !unsafe { copy(accept.pid, here, accept.address + at, part, true) } {
                    return; // the receiver is no more
                }
                claim.copied();
            }
        });
    }

    /// Have the sender pour the bytes out.
    fn pull(&self, receiving: &Arc<Receiving>, envelope: &Envelope, offer: &Offer) {
        let note = Note::of(envelope);
        let key = {
            let mut poured = lock(&self.poured);
            let key = poured.next();
            poured.all.insert(key, Pouring::new(receiving.clone(), *envelope, offer.length));
            key
        };
        self.say(Kind::Pull, note.rank, note.number, i64::from(key), &[]);
    }

    /// Some bytes of a large message have come.
    pub(super) fn take_poured(&self, envelope: &Envelope, payload: Payload<'_>) {
        let key = envelope.tag as u32;
        let mut poured = lock(&self.poured);
        let Some(one) = poured.all.get_mut(&key) else { return };
        one.take(envelope.source as usize, payload);
        if one.is_whole() {
            let one = poured.all.remove(&key).expect("just looked at");
            drop(poured);
            one.finish();
        }
    }
}

/// A large message that comes in pieces.
pub struct Pouring {
    receiving: Arc<Receiving>,
    envelope: Envelope,
    length: usize,
    come: usize,
    /// Where the pieces are kept until all have come, if they do not go into the user's memory.
    packed: Option<Vec<u8>>,
}

impl Pouring {
    fn new(receiving: Arc<Receiving>, envelope: Envelope, length: usize) -> Pouring {
        let room = length.min(receiving.data.len());
        let packed = receiving.data.contiguous().is_none().then(|| vec![0; room]);
        Pouring { receiving, envelope, length, come: 0, packed }
    }

    fn take(&mut self, at: usize, payload: Payload<'_>) {
        let room = self.length.min(self.receiving.data.len());
        let start = match (&mut self.packed, self.receiving.data.contiguous()) {
            (Some(packed), _) => packed.as_mut_ptr(),
            (None, start) => start.expect("contiguous"),
        };
        if at < room {
            // SAFETY: inside the message's memory.
            unsafe { payload.copy(start.add(at), room - at) };
        }
        self.come += payload.len();
    }

    pub(super) fn is_of(&self, receiving: &Arc<Receiving>) -> bool {
        Arc::ptr_eq(&self.receiving, receiving)
    }

    fn is_whole(&self) -> bool {
        self.come >= self.length
    }

    fn finish(self) {
        if let Some(packed) = &self.packed {
            // SAFETY: the memory is the receive's until it has ended.
            unsafe { self.receiving.data.fill(Payload(packed, &[])) };
        }
        self.receiving.finish(&self.envelope, self.length);
    }
}
