//! A lock in shared memory, exclusive or shared.
//!
//! A waiting process announces itself (`announce`), and checks again when the process that releases
//! the lock nudges it (`Lock::release` returns the ranks of the waiting processes); the engine
//! provides the sleep. Beside the deciding word are the ranks of the holders, for error texts and
//! observers: they are written after the lock is taken and removed before it is released, so they
//! may lag behind, and nothing depends on them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use sfm_native::segment::SLOTS;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Shared,
    Exclusive,
}

/// Ranks of a window, one bit each.
#[repr(C)]
#[derive(Default)]
pub struct Ranks([AtomicU64; SLOTS / 64]);

impl Ranks {
    fn add(&self, rank: usize) {
        self.0[rank / 64].fetch_or(1 << (rank % 64), SeqCst);
    }

    fn remove(&self, rank: usize) {
        self.0[rank / 64].fetch_and(!(1 << (rank % 64)), SeqCst);
    }

    fn all(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(nth, word)| {
            let mut bits = word.load(SeqCst);
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits.checked_sub(1)?;
                Some(nth * 64 + bit)
            })
        })
    }
}

/// In `word`: the lock is exclusive, and the other bits are the holder's rank.
const ALONE: u32 = 1 << 31;

#[repr(C)]
#[derive(Default)]
pub struct Lock {
    /// The number of processes that share it, or the exclusive holder; 0 if it is free.
    word: AtomicU32,
    sharing: Ranks,
    waiting: Ranks,
}

impl Lock {
    /// Take it if that is possible now.
    pub fn try_take(&self, rank: usize, mode: Mode) -> bool {
        if mode == Mode::Exclusive {
            let alone = ALONE | rank as u32;
            return self.word.compare_exchange(0, alone, SeqCst, Relaxed).is_ok();
        }
        let one_more = |word: u32| (word & ALONE == 0).then_some(word + 1);
        let is_taken = self.word.fetch_update(SeqCst, Relaxed, one_more).is_ok();
        if is_taken {
            self.sharing.add(rank);
        }
        is_taken
    }

    /// Release it; returns the ranks that wait for it.
    pub fn release(&self, rank: usize, mode: Mode) -> impl Iterator<Item = usize> + '_ {
        match mode {
            Mode::Exclusive => self.word.store(0, SeqCst),
            Mode::Shared => {
                self.sharing.remove(rank);
                self.word.fetch_sub(1, SeqCst);
            }
        }
        // SYNC POINT window/lock: with `announce`. Either this load sees the bit, or the check that
        // follows the bit sees the lock free.
        self.waiting.all()
    }

    /// From now on this process is nudged when the lock is released.
    pub fn announce(&self, rank: usize) {
        self.waiting.add(rank);
    }

    /// This process no longer waits.
    pub fn withdraw(&self, rank: usize) {
        self.waiting.remove(rank);
    }

    /// One of the current holders.
    pub fn holder(&self) -> Option<usize> {
        let word = self.word.load(SeqCst);
        match word & ALONE {
            0 => self.sharing.all().next(),
            _ => Some((word & !ALONE) as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mode::{Exclusive, Shared};
    use super::*;

    #[test]
    fn a_lock_is_shared_or_exclusive() {
        let lock = Lock::default();
        assert!(lock.try_take(3, Shared) && lock.try_take(70, Shared));
        assert!(!lock.try_take(5, Exclusive));
        assert_eq!(lock.holder(), Some(3));
        assert_eq!(lock.release(3, Shared).count(), 0);
        assert!(!lock.try_take(5, Exclusive), "the other one has it still");
        let _ = lock.release(70, Shared);
        assert!(lock.try_take(5, Exclusive) && lock.holder() == Some(5));
        assert!(!lock.try_take(3, Shared) && !lock.try_take(4, Exclusive));
        let _ = lock.release(5, Exclusive);
        assert_eq!(lock.holder(), None);
    }

    #[test]
    fn release_returns_the_waiting_ranks() {
        let lock = Lock::default();
        assert!(lock.try_take(0, Exclusive));
        for rank in [511, 64, 2] {
            lock.announce(rank);
        }
        lock.withdraw(64);
        assert_eq!(lock.release(0, Exclusive).collect::<Vec<_>>(), [2, 511]);
    }

    #[test]
    fn an_exclusive_holder_is_alone() {
        let (lock, inside) = (Lock::default(), AtomicU32::new(0));
        let round = |rank: usize, nth: usize| {
            let (mode, weight) =
                if (rank + nth).is_multiple_of(3) { (Exclusive, 1000) } else { (Shared, 1) };
            while !lock.try_take(rank, mode) {
                std::thread::yield_now();
            }
            let before = inside.fetch_add(weight, SeqCst);
            assert!(if mode == Exclusive { before == 0 } else { before < 1000 });
            inside.fetch_sub(weight, SeqCst);
            let _ = lock.release(rank, mode);
        };
        std::thread::scope(|scope| {
            for rank in 0..4 {
                scope.spawn(move || (0..2000).for_each(|nth| round(rank, nth)));
            }
        });
        assert_eq!(lock.holder(), None);
    }
}
