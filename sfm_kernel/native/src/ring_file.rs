//! A ring in its own file: control words, the ring's data, and behind them the arena.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use crate::arena::{Flag, BLOCKS};
use crate::claims::{Claim, CLAIMS};
use crate::packet::Tail;
use crate::ring::{Control, Memory};
use crate::shm::{Mapping, ShmError};

/// Data begins behind the control words, on a page of its own.
const DATA: usize = 8192;
const _: () = assert!(std::mem::size_of::<Front>() <= DATA);

/// The words in front of the data.
#[repr(C)]
struct Front {
    control: Control,
    capacity: AtomicU64,
    /// Bytes of the arena that the sender has mapped.
    arena: AtomicU64,
    /// 1 once the receiver has mapped it, too.
    ready: AtomicU32,
    flags: [Flag; BLOCKS],
    /// For large messages in the other direction, which both sides copy.
    claims: [Claim; CLAIMS],
}

/// A mapped ring. The protocol decides which side writes what (`ring`, `arena`).
pub struct RingFile {
    mapping: Mapping<Front>,
    capacity: u64,
    arena: u64,
    /// The receiver's blocks: (offset, length) by index; length 0 if it has none.
    leases: Box<[(AtomicU64, AtomicU64)]>,
    /// The offset up to which the receiver has mapped the arena's pages.
    seen: AtomicU64,
    /// This is a forked child, and the blocks are its parent's.
    orphaned: AtomicBool,
}

impl RingFile {
    /// Make a ring of `capacity` bytes (a power of two), and an arena of at most `arena` bytes,
    /// none of which takes memory yet. Called by the sender.
    pub fn create(path: &Path, capacity: usize, arena: usize) -> Result<RingFile, ShmError> {
        assert!(capacity.is_power_of_two() && capacity >= 4096, "ring of {capacity} bytes");
        let least = DATA + capacity;
        let mapping = Mapping::create(path, least, arena, |mapping: &Mapping<Front>| {
            mapping.capacity.store(capacity as u64, Ordering::Relaxed);
            mapping.arena.store((mapping.len() - least) as u64, Ordering::Relaxed);
        })?;
        // A descriptor for each peer would be too many, and nobody asks whether a ring's owner
        // lives.
        let mapping = mapping.unlock();
        let arena = (mapping.len() - least) as u64;
        Ok(RingFile::of(mapping, capacity as u64, arena, 0))
    }

    /// Map a ring that a sender made. Called by the receiver.
    pub fn open(path: &Path) -> Result<Arc<RingFile>, ShmError> {
        let invalid = || ShmError::Invalid(format!("{} is no ring", path.display()));
        let about: Mapping<Front> = Mapping::open(path, DATA)?;
        let capacity = about.capacity.load(Ordering::Relaxed);
        let arena = about.arena.load(Ordering::Relaxed);
        let least = capacity.saturating_add(DATA as u64);
        let total = least.checked_add(arena);
        if !capacity.is_power_of_two() || capacity < 4096 || total.is_none() {
            return Err(invalid());
        }
        let mapping: Mapping<Front> = if about.len() as u64 == least + arena {
            about
        } else {
            drop(about);
            Mapping::open(path, least as usize)?
        };
        let arena = match mapping.len() as u64 {
            len if len == least + arena => arena,
            len if len >= least => 0,
            _ => return Err(invalid()),
        };
        let ring = Arc::new(RingFile::of(mapping, capacity, arena, BLOCKS));
        if arena > 0 {
            forks::register(&ring);
            ring.mapping.ready.store(1, Ordering::Release);
        }
        Ok(ring)
    }

    fn of(mapping: Mapping<Front>, capacity: u64, arena: u64, leases: usize) -> RingFile {
        RingFile {
            mapping,
            capacity,
            arena,
            leases: (0..leases).map(|_| Default::default()).collect(),
            seen: AtomicU64::new(0),
            orphaned: AtomicBool::new(false),
        }
    }

    /// Bytes of the arena; 0 before the receiver has it.
    pub fn arena(&self) -> u64 {
        match self.mapping.ready.load(Ordering::Acquire) {
            0 => 0,
            _ => self.arena,
        }
    }

    pub fn flag(&self, block: usize) -> &Flag {
        &self.mapping.flags[block]
    }

    /// None if there is no such claim.
    pub fn claim(&self, nth: usize) -> Option<&Claim> {
        self.mapping.claims.get(nth)
    }

    /// Reserve pages of the arena; whether there was room.
    pub fn populate(&self, from: u64, to: u64) -> bool {
        self.mapping.populate(self.file_offset(from), self.file_offset(to))
    }

    /// Give pages of the arena back.
    pub fn discard(&self, from: u64, to: u64) {
        self.mapping.discard(self.file_offset(from), self.file_offset(to));
    }

    /// The address of an offset in the arena.
    pub fn arena_memory(&self, offset: u64) -> *mut u8 {
        assert!(offset <= self.arena);
        // SAFETY: `file_offset` stays inside of the file, all of which is mapped.
        unsafe { self.mapping.as_ptr().add(self.file_offset(offset) as usize) }
    }

    fn file_offset(&self, offset: u64) -> u64 {
        DATA as u64 + self.capacity + offset
    }

    /// The receiver takes over a block that the sender has announced: `length` bytes of it.
    pub fn lease(self: &Arc<Self>, block: u64, offset: u64, length: u64) -> Result<Tail, String> {
        let end = offset.checked_add(length).filter(|end| *end <= self.arena);
        let (Some(end), true, 0) = (end, block < BLOCKS as u64, offset % 4096) else {
            return Err(format!("block {block} of {length} bytes at {offset} is no block"));
        };
        let index = block as usize;
        let seen = self.seen.load(Ordering::Relaxed);
        if end > seen {
            // Map the pages at once rather than by a fault for each.
            let end = end.next_multiple_of(4096).min(self.arena);
            self.populate(offset.max(seen) & !4095, end);
            self.seen.store(end, Ordering::Relaxed);
        }
        let (at, held) = &self.leases[index];
        at.store(offset, Ordering::Relaxed);
        held.store(length, Ordering::Relaxed);
        let lease = Lease { ring: self.clone(), index };
        // SAFETY: inside the mapping, which the lease keeps; the sender has written it and will
        // not touch it before the lease gives it back.
        Ok(unsafe { Tail::new(self.arena_memory(offset), length as usize, Box::new(lease)) })
    }

    /// In a forked child: make the blocks that this process had private to it, as the rest of its
    /// memory is. Without this, parent and child would write into the same arrays, and the child
    /// would give back what the parent still uses.
    fn detach(&self) {
        self.orphaned.store(true, Ordering::Relaxed);
        for (at, length) in &self.leases {
            let length = length.load(Ordering::Relaxed) as usize;
            if length > 0 {
                let start = self.arena_memory(at.load(Ordering::Relaxed));
                // SAFETY: whole pages of a live block of ours. Where there is no memory for a
                // copy it stays shared.
                unsafe { forks::make_private(start, length.next_multiple_of(4096)) };
            }
        }
    }

    fn data(&self, at: u64) -> *mut u8 {
        // SAFETY: callers stay below capacity, which lies inside the mapping.
        unsafe { self.mapping.as_ptr().add(DATA + at as usize) }
    }
}

/// The receiver's right to a block.
struct Lease {
    ring: Arc<RingFile>,
    index: usize,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.ring.orphaned.load(Ordering::Relaxed) {
            self.ring.leases[self.index].1.store(0, Ordering::Relaxed);
            self.ring.flag(self.index).give_back();
        }
    }
}

// SAFETY: the mapping stays where it is as long as self lives.
unsafe impl Memory for Arc<RingFile> {
    fn control(&self) -> &Control {
        &self.mapping.control
    }
    fn capacity(&self) -> u64 {
        self.capacity
    }
    fn put(&self, at: u64, bytes: &[u8]) {
        debug_assert!(at + bytes.len() as u64 <= self.capacity);
        // SAFETY: inside the data; the protocol gives this range to the producer alone.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.data(at), bytes.len()) };
    }
    unsafe fn get(&self, at: u64, to: *mut u8, length: usize) {
        debug_assert!(at + length as u64 <= self.capacity);
        // SAFETY: inside the data, which the protocol gives to the consumer alone; `to` has room.
        unsafe { std::ptr::copy_nonoverlapping(self.data(at), to, length) };
    }
    fn address(&self, at: u64) -> Option<*const u8> {
        Some(self.data(at))
    }
    fn expect(&self, at: u64) {
        // The head and as many cache lines as a small message has: they come from the other side's
        // core all at once rather than one after the other.
        #[cfg(target_arch = "x86_64")]
        // SAFETY: hints; they read nothing, wherever they point.
        unsafe {
            use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            _mm_prefetch::<_MM_HINT_T0>((&raw const self.mapping.control.head).cast());
            for line in 0..4 {
                _mm_prefetch::<_MM_HINT_T0>(self.data(at).wrapping_add(line * 64).cast());
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }
}

/// What a fork does to this process's blocks.
mod forks {
    use super::{Arc, RingFile};
    use crate::fork_list::ForkList;
    use std::sync::Once;

    /// The rings that this process receives from.
    static RINGS: ForkList<RingFile> = ForkList::new();

    extern "C" fn before() {
        RINGS.lock();
    }
    extern "C" fn parent() {
        RINGS.unlock();
    }
    extern "C" fn child() {
        RINGS.empty(|ring| ring.detach());
    }

    pub fn register(ring: &Arc<RingFile>) {
        static HANDLERS: Once = Once::new();
        // SAFETY: the handlers live for ever, and touch nothing but RINGS.
        HANDLERS.call_once(|| unsafe {
            libc::pthread_atfork(Some(before), Some(parent), Some(child));
        });
        RINGS.add(Arc::downgrade(ring));
    }

    /// Replace shared pages by private ones with the same contents, at the same address.
    ///
    /// # Safety
    /// `length` bytes at `start` are whole mapped pages, and nobody else in this process uses them
    /// meanwhile.
    pub unsafe fn make_private(start: *mut u8, length: usize) {
        // SAFETY: a fresh mapping, filled and then moved over the old one in one step.
        unsafe {
            let (access, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let fresh = libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0);
            if fresh == libc::MAP_FAILED {
                return;
            }
            std::ptr::copy_nonoverlapping(start, fresh.cast(), length);
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            if libc::mremap(fresh, length, length, flags, start) == libc::MAP_FAILED {
                libc::munmap(fresh, length);
            }
        }
    }
}

#[cfg(test)]
mod tests;
