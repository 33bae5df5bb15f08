//! Claims: how two processes share the copying of one large message.
//!
//! Where the kernel lets processes reach each other's memory (process_vm_readv), the receiver of a
//! large message copies it with no help; but its sender waits all that time, and has a core. So the
//! message is cut into pieces, which both claim one after the other, the receiver reading, the sender
//! writing. Neither depends on the other: a sender that is busy elsewhere claims nothing.
//!
//! A claim's words lie in the ring on which the receiver answers the sender, so that both have them
//! mapped. A number tells one use of them from the next: who comes late finds nothing to claim.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Messages that may be under way so at one time, from one process to another.
pub const CLAIMS: usize = 16;

#[derive(Default)]
#[repr(C)]
pub struct Claim {
    /// Which use of it this is, and in the lower half the next piece that nobody has claimed.
    next: AtomicU64,
    /// Pieces that are copied.
    done: AtomicU32,
}

impl Claim {
    /// Begin another use; the receiver does, when nobody copies for the last one any more. Its number.
    pub fn begin(&self) -> u32 {
        let number = (self.next.load(Ordering::Relaxed) >> 32) as u32;
        let number = number.wrapping_add(1);
        self.done.store(0, Ordering::Relaxed);
        self.next.store(u64::from(number) << 32, Ordering::Release);
        number
    }

    /// The next piece of `pieces`, to be copied by the caller; None where none is left.
    pub fn claim(&self, number: u32, pieces: u32) -> Option<u32> {
        let mut next = self.next.load(Ordering::Acquire);
        loop {
            let piece = next as u32;
            if (next >> 32) as u32 != number || piece >= pieces {
                return None;
            }
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match self.next.compare_exchange_weak(next, next + 1, success, failure) {
                Ok(_) => return Some(piece),
                Err(now) => next = now,
            }
        }
    }

    /// A piece that the caller had claimed is copied.
    pub fn copied(&self) {
        // SYNC POINT claims/done: Release with Acquire in `is_done`: the bytes before the count.
        self.done.fetch_add(1, Ordering::Release);
    }

    /// Whether so many pieces are copied.
    pub fn is_done(&self, pieces: u32) -> bool {
        self.done.load(Ordering::Acquire) == pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_claimed_once_and_none_of_another_use() {
        let claim = Claim::default();
        for pieces in [0, 1, 7, 500] {
            let number = claim.begin();
            let counts: Vec<AtomicU32> = (0..pieces).map(|_| AtomicU32::new(0)).collect();
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        assert_eq!(claim.claim(number.wrapping_sub(1), pieces), None);
                        while let Some(piece) = claim.claim(number, pieces) {
                            counts[piece as usize].fetch_add(1, Ordering::Relaxed);
                            claim.copied();
                        }
                    });
                }
            });
            assert!(claim.is_done(pieces));
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }
}
