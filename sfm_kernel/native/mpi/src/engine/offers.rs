//! Large messages: the sender offers the address of the bytes, the receiver fetches them.
//!
//! If the kernel lets one process read another's memory, the bytes are copied once, directly from
//! the sender's user memory into the receiver's. The receiver needs no help; but a sender that is
//! waiting copies, too: both claim chunks of the message (sfm_native::claims). If the kernel does
//! not (seccomp in some containers, processes in separate namespaces), the sender streams the bytes
//! in fragments through the ring's arena, while the receiver copies the previous fragment.
//!
//! The first fetch from each peer finds out whether the kernel allows it: the peer's offer has the
//! address and value of a number of its own.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use sfm_native::core::Payload;
use sfm_native::packet::Envelope;

use super::control::{MessageKind, Note};
use super::landing::Landing;
use super::operation::Outcome;
use super::queue::SMALL;
use super::together::Helped;
use super::{limits, Engine, Receiving, Sending};
use crate::data::Data;
use crate::handles::*;

/// The word at `Offer::valid_at` while the bytes are at the offered address.
pub(super) const VALID: u64 = 1;

/// The first fetch from a process compares this word: 64 bits that no other process has at that
/// address.
static PROOF: AtomicU64 = AtomicU64::new(0);

/// The address and value with which a peer finds out whether it can read a process's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    pub pid: u64,
    at: usize,
    value: u64,
}

/// The location of the bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    pub length: usize,
    address: usize,
    from: Proof,
    /// The address of a word that becomes 0 when the bytes are no longer at `address`, but in a
    /// copy of the sender.
    valid_at: usize,
}

const _: () = assert!(size_of::<Offer>() <= SMALL);

/// Read a value that the other process's library has written.
pub(super) fn read<T: Copy>(payload: Payload<'_>) -> Option<T> {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the value has room for as many bytes, and any bytes are valid integers.
    unsafe {
        let copied = payload.copy(value.as_mut_ptr().cast(), size_of::<T>());
        (copied == size_of::<T>()).then(|| value.assume_init())
    }
}

pub(super) fn bytes_of<T>(value: &T) -> &[u8] {
    // SAFETY: the value consists of integers without gaps, so that all its bytes are initialized.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>()) }
}

impl Proof {
    pub fn of(engine: &Engine) -> Proof {
        let (pid, value) = (u64::from(std::process::id()), engine.core.shared().uid() as u64);
        Proof { pid, at: &raw const PROOF as usize, value }
    }

    /// True if the kernel lets us read the process's memory, and it is the expected process. After
    /// it was true, false means that the process has ended, even if its files are still locked.
    pub fn holds(&self) -> bool {
        word(self.pid, self.at) == Some(self.value)
    }
}

impl Offer {
    pub fn of(engine: &Engine, from: *const u8, length: usize, sending: &Sending) -> Offer {
        let (address, valid_at) = (from as usize, sending.valid_address());
        Offer { length, address, from: Proof::of(engine), valid_at }
    }

    pub fn bytes(&self) -> &[u8] {
        bytes_of(self)
    }

    pub fn read(payload: Payload<'_>) -> Option<Offer> {
        read(payload)
    }
}

/// Let the peers, which are processes of the same user, read this process's memory, if the kernel's
/// Yama module demands permission.
pub fn let_peers_read() {
    PROOF.store(super::engine().core.shared().uid() as u64, Ordering::Release);
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    if scope.is_ok_and(|scope| scope.trim() == "1") {
        const PR_SET_PTRACER: i32 = 0x5961_6d61;
        const ANY: libc::c_ulong = libc::c_ulong::MAX;
        // SAFETY: the call takes numbers only, and touches no memory.
        unsafe { libc::prctl(PR_SET_PTRACER, ANY, 0, 0, 0) };
    }
}

/// Copy between our memory and another process's; false if the kernel refuses.
///
/// # Safety
/// `length` bytes at `here` are ours to read or write.
pub unsafe fn copy(pid: u64, here: *mut u8, there: usize, length: usize, write: bool) -> bool {
    let mut done = 0;
    while done < length {
        let remaining = length - done;
        let local = libc::iovec { iov_base: here.wrapping_add(done).cast(), iov_len: remaining };
        let remote = libc::iovec { iov_base: (there + done) as *mut c_void, iov_len: remaining };
        let pid = pid as libc::pid_t;
        // The kernel checks the other side.
        let copied = match write {
            false => libc::process_vm_readv(pid, &local, 1, &remote, 1, 0),
            true => libc::process_vm_writev(pid, &local, 1, &remote, 1, 0),
        };
        if copied <= 0 {
            return false;
        }
        done += copied as usize;
    }
    true
}

/// A word of another process's memory; None if the kernel does not let us read it.
fn word(pid: u64, at: usize) -> Option<u64> {
    let mut found = 0u64;
    // SAFETY: the eight bytes of `found` are ours, and the kernel checks the other process's side.
    unsafe { copy(pid, (&raw mut found).cast(), at, 8, false) }.then_some(found)
}

/// A message that this process fetches.
pub(super) struct Fetch {
    pub receiving: Arc<Receiving>,
    pub offer: Offer,
    landing: Landing,
    envelope: Envelope,
}

impl Fetch {
    fn new(receiving: &Arc<Receiving>, envelope: Envelope, offer: Offer) -> Fetch {
        let landing = Landing::of(receiving, offer.length);
        Fetch { receiving: receiving.clone(), offer, landing, envelope }
    }

    /// The destination, contiguous.
    pub fn to(&self) -> &Data {
        &self.landing.to
    }

    pub fn note(&self) -> Note {
        Note::of(&self.envelope)
    }

    /// Copy a range of the bytes; false if the kernel refuses. Nothing is copied to memory that is
    /// released.
    pub fn copy(&self, range: Range<usize>) -> bool {
        let (at, from) =
            (self.landing.start().wrapping_add(range.start), self.offer.address + range.start);
        // SAFETY: the range is a part of the destination, which the receive owns until it has
        // ended.
        let copy = || unsafe { copy(self.offer.from.pid, at, from, range.len(), false) };
        self.receiving.write(copy).unwrap_or(true)
    }

    /// Copy all bytes, then the word that tells whether they were still at that address. Usually
    /// that takes one system call, which copies in this order.
    fn copy_with_word(&self) -> Result<u64, c_int> {
        let (mut found, length) = (0u64, self.to().len());
        let local = [
            libc::iovec { iov_base: self.landing.start().cast(), iov_len: length },
            libc::iovec { iov_base: (&raw mut found).cast(), iov_len: 8 },
        ];
        let remote = [
            libc::iovec { iov_base: self.offer.address as *mut c_void, iov_len: length },
            libc::iovec { iov_base: self.offer.valid_at as *mut c_void, iov_len: 8 },
        ];
        let pid = self.offer.from.pid as libc::pid_t;
        // SAFETY: the destination, and eight bytes of ours.
        let read =
            || unsafe { libc::process_vm_readv(pid, local.as_ptr(), 2, remote.as_ptr(), 2, 0) };
        match self.receiving.write(read) {
            None => Ok(VALID),
            Some(copied) if copied == (length + 8) as isize => Ok(found),
            Some(_) => check_valid(&self.offer, self.copy(0..length)),
        }
    }
}

/// The word after a fetch. The fetch may have failed if the word says that the bytes have moved.
/// Otherwise a failed fetch is an error: the process is gone, or the program has freed the memory.
pub(super) fn check_valid(offer: &Offer, is_fetched: bool) -> Result<u64, c_int> {
    match word(offer.from.pid, offer.valid_at) {
        None => Err(MPI_ERR_PROC_ABORTED),
        Some(valid) if valid != 0 && !is_fetched => Err(MPI_ERR_BUFFER),
        Some(valid) => Ok(valid),
    }
}

impl Engine {
    /// Fetch the offer that a receive has matched, or leave it `unfinished`.
    pub(super) fn fetch(
        &self,
        receiving: &Arc<Receiving>,
        envelope: Envelope,
        offer: Offer,
        helped: &mut Helped,
    ) {
        let rank = Note::of(&envelope).rank;
        if !*self.peer(rank).readable.get_or_init(|| offer.from.holds()) {
            return self.pull(receiving, &envelope, &offer);
        }
        let fetch = Fetch::new(receiving, envelope, offer);
        let is_shared = fetch.to().len() >= limits::HELP_FROM.get();
        match is_shared.then(|| self.free_claim(rank)).flatten() {
            Some(claim) => self.fetch_together(fetch, claim, helped),
            None => {
                let valid = fetch.copy_with_word();
                self.end_fetch(fetch, valid);
            }
        }
    }

    /// All bytes of a message were copied; `valid`: the word that was read after them.
    pub(super) fn end_fetch(&self, mut fetch: Fetch, valid: Result<u64, c_int>) {
        let receiving = &fetch.receiving;
        // SYNC POINT offer: the bytes before the word.
        match valid {
            Err(code) => {
                receiving.end.set(Outcome::failed(code));
                return self.wake_resting();
            }
            Ok(0) => return self.pull(receiving, &fetch.envelope, &fetch.offer),
            Ok(_) => {}
        }
        fetch.landing.finish(receiving);
        let note = fetch.note();
        self.send_control(MessageKind::Received, note.rank, note.number, 0, &[]);
        receiving.finish(&fetch.envelope, fetch.offer.length);
        self.wake_resting();
    }

    /// True if the kernel lets us read and write a peer's memory.
    pub fn can_reach(&self, rank: usize, proof: &Proof) -> bool {
        let mut value = proof.value;
        let here = (&raw mut value).cast();
        *self.peer(rank).readable.get_or_init(|| proof.holds())
            // SAFETY: eight bytes of ours, equal to those that are there.
            && unsafe { copy(proof.pid, here, proof.at, 8, true) }
    }
}
