//! Claims: how two processes share the copying of one large message.
//!
//! If the kernel lets processes reach each other's memory (process_vm_readv), the receiver of a
//! large message can copy it alone; but its sender waits all that time, and has a core. So the
//! message is cut into chunks, which both claim one after the other, the receiver reading, the
//! sender sending or writing. Neither depends on the other: a sender that is busy elsewhere claims nothing.
//!
//! A claim's words lie in the ring on which the receiver answers the sender, so that both have them
//! mapped. A number distinguishes one use of them from the next: a late thread finds nothing to
//! claim.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Messages from one process to another that may be copied in this way at one time.
pub const CLAIMS: usize = 16;

#[derive(Default)]
#[repr(C)]
pub struct Claim {
    /// The number of its present use, and in the lower half the next unclaimed chunk.
    next: AtomicU64,
    /// Chunks that are copied.
    done: AtomicU32,
}

impl Claim {
    /// Begin another use, and return its number. The receiver does, once nobody copies for the last
    /// one any more.
    pub fn begin(&self) -> u32 {
        let number = (self.next.load(Ordering::Relaxed) >> 32) as u32;
        let number = number.wrapping_add(1);
        self.done.store(0, Ordering::Relaxed);
        self.next.store(u64::from(number) << 32, Ordering::Release);
        number
    }

    /// The next of `chunks` chunks, to be copied by the caller; None if all are claimed.
    pub fn claim(&self, number: u32, chunks: u32) -> Option<u32> {
        let mut next = self.next.load(Ordering::Acquire);
        loop {
            let chunk = next as u32;
            if (next >> 32) as u32 != number || chunk >= chunks {
                return None;
            }
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match self.next.compare_exchange_weak(next, next + 1, success, failure) {
                Ok(_) => return Some(chunk),
                Err(now) => next = now,
            }
        }
    }

    /// A chunk that the caller had claimed is copied.
    pub fn copied(&self) {
        // SYNC POINT claims/done: Release with Acquire in `is_done`: the bytes before the count.
        self.done.fetch_add(1, Ordering::Release);
    }

    /// Whether a chunk is claimed and not copied yet.
    pub fn is_in_use(&self) -> bool {
        self.next.load(Ordering::Relaxed) as u32 > self.done.load(Ordering::Relaxed)
    }

    /// Whether this many chunks are copied.
    pub fn is_done(&self, chunks: u32) -> bool {
        self.done.load(Ordering::Acquire) == chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chunk_is_claimed_once_and_none_of_another_use() {
        let claim = Claim::default();
        for chunks in [0, 1, 7, 500] {
            let number = claim.begin();
            let counts: Vec<AtomicU32> = (0..chunks).map(|_| AtomicU32::new(0)).collect();
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        assert_eq!(claim.claim(number.wrapping_sub(1), chunks), None);
                        while let Some(chunk) = claim.claim(number, chunks) {
                            counts[chunk as usize].fetch_add(1, Ordering::Relaxed);
                            claim.copied();
                        }
                    });
                }
            });
            assert!(claim.is_done(chunks) && !claim.is_in_use());
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }
}
