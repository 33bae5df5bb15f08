//! A lock that one thread takes again and again, without a locked instruction.
//!
//! The first thread that takes it is its owner: it sets a flag of its own, and then looks if it is
//! still the owner. Another thread that comes ends the ownership for good. Between its own store and
//! load it has the kernel run a barrier on all threads of the process (membarrier), so that it sees
//! the owner's flag, or the owner sees the end. From then on all threads take the lock as usual.
//!
//! Nobody waits: a thread that does not get the lock is told so.
//!
//! Source: D. Dice, M. Moir, W. Scherer, "Quickly Reacquirable Locks" (2003).

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Instead of an owner, which is a multiple of four.
const NOBODY: u64 = 0;
/// The ownership ends, but perhaps the owner does not know it.
const ENDING: u64 = 1;
const ENDED: u64 = 2;

#[derive(Default)]
pub struct BiasedLock {
    owner: AtomicU64,
    is_taken_by_owner: AtomicU32,
    is_taken: AtomicU32,
}

/// The lock is free again when it is dropped.
pub struct Guard<'a>(&'a AtomicU32);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SYNC POINT biased_lock/taken: Release, with the Acquire of the next thread.
        self.0.store(0, Ordering::Release);
    }
}

impl BiasedLock {
    /// None while it is taken, also by this thread.
    #[cfg(not(loom))]
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_>> {
        self.try_lock_as(this_thread())
    }

    #[inline]
    pub fn try_lock_as(&self, thread: u64) -> Option<Guard<'_>> {
        if self.owner.load(Ordering::Relaxed) == thread {
            if self.is_taken_by_owner.load(Ordering::Relaxed) != 0 {
                return None; // a signal handler has interrupted this thread
            }
            self.is_taken_by_owner.store(1, Ordering::Relaxed);
            // SYNC POINT biased_lock/owner: the flag before the look, with `end_ownership`.
            light_fence();
            if self.owner.load(Ordering::Relaxed) == thread {
                return Some(Guard(&self.is_taken_by_owner));
            }
            self.is_taken_by_owner.store(0, Ordering::Release);
        }
        self.try_lock_slowly(thread)
    }

    #[cold]
    fn try_lock_slowly(&self, thread: u64) -> Option<Guard<'_>> {
        let (relaxed, new) = (Ordering::Relaxed, if has_heavy_fence() { thread } else { ENDED });
        if self.owner.compare_exchange(NOBODY, new, relaxed, relaxed).is_ok() && new == thread {
            return self.try_lock_as(thread);
        }
        // SYNC POINT biased_lock/owner: Acquire, with the Release of the thread that has ended it.
        if self.owner.load(Ordering::Acquire) != ENDED {
            self.end_ownership();
        }
        // SYNC POINT biased_lock/taken: Acquire, with the Release in `Guard`; here and below.
        if self.is_taken_by_owner.load(Ordering::Acquire) != 0 {
            return None;
        }
        let taken = self.is_taken.compare_exchange(0, 1, Ordering::Acquire, relaxed);
        taken.is_ok().then(|| Guard(&self.is_taken))
    }

    fn end_ownership(&self) {
        self.owner.store(ENDING, Ordering::Relaxed);
        // SYNC POINT biased_lock/owner: with the light fence of the owner. Either the owner comes to
        // its look later and sees the store above, or its flag is seen from now on.
        heavy_fence();
        self.owner.store(ENDED, Ordering::Release);
    }
}

/// A number that no other living thread has: the address that the thread's variables are found by.
#[cfg(not(loom))]
#[inline]
fn this_thread() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let pointer: u64;
        // SAFETY: the word at this address is its own address (the psABI's thread pointer).
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(pure, readonly, nostack));
        }
        pointer
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the call takes no arguments, and cannot fail.
    unsafe {
        libc::pthread_self() as u64
    }
}

/// Keeps the order of stores and loads in the code; `heavy_fence` does the rest.
#[inline]
fn light_fence() {
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    crate::sync::full_fence();
}

#[cfg(not(loom))]
mod membarrier {
    use std::sync::OnceLock;

    const QUERY: i32 = 0;
    const PRIVATE_EXPEDITED: i32 = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;

    fn call(command: i32) -> i64 {
        // SAFETY: the call takes numbers only, and touches no memory of this process.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
    }

    /// Whether the kernel has it, and a sandbox allows it.
    pub fn is_there() -> bool {
        static IS_THERE: OnceLock<bool> = OnceLock::new();
        let both = i64::from(PRIVATE_EXPEDITED | REGISTER_PRIVATE_EXPEDITED);
        *IS_THERE.get_or_init(|| call(QUERY).max(0) & both == both)
    }

    /// A full barrier in all threads of this process.
    pub fn run() {
        let is_run = || call(PRIVATE_EXPEDITED) == 0;
        // Registering takes milliseconds, so only processes do that need it.
        let is_run = is_run() || call(REGISTER_PRIVATE_EXPEDITED) == 0 && is_run();
        assert!(is_run, "the kernel has said that there is membarrier");
    }
}

/// Whether there is a heavy fence; without it nobody owns a lock.
fn has_heavy_fence() -> bool {
    #[cfg(not(loom))]
    return membarrier::is_there();
    #[cfg(loom)]
    return true;
}

/// A full barrier in this thread, which makes the light fences of all others full barriers.
fn heavy_fence() {
    #[cfg(not(loom))]
    membarrier::run();
    #[cfg(loom)]
    crate::sync::full_fence();
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::UnsafeCell;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn it_is_taken_by_one_thread_at_a_time() {
        struct Shared(BiasedLock, UnsafeCell<usize>);
        // SAFETY: the number is used under the lock.
        unsafe impl Sync for Shared {}
        const TIMES: usize = 20_000;
        for _ in 0..50 {
            let (shared, taken) =
                (Shared(BiasedLock::default(), UnsafeCell::new(0)), AtomicUsize::new(0));
            let (shared, taken, start) = (&shared, &taken, &Barrier::new(2));
            std::thread::scope(|scope| {
                for nth in 0..2 {
                    scope.spawn(move || {
                        let mut took = 0;
                        for time in 0..TIMES {
                            // One has owned it for a while when the other comes.
                            if (time, nth) == (TIMES / 4, 0) || (time, nth) == (0, 1) {
                                start.wait();
                            }
                            if let Some(_guard) = shared.0.try_lock() {
                                // SAFETY: the thread has the lock, so no other one uses the number.
                                unsafe { *shared.1.get() += 1 };
                                took += 1;
                            }
                        }
                        taken.fetch_add(took, Ordering::Relaxed);
                    });
                }
            });
            // SAFETY: the threads have ended, so nobody writes any more.
            assert_eq!(unsafe { *shared.1.get() }, taken.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn a_thread_that_comes_later_gets_it_too() {
        let lock = BiasedLock::default();
        let in_another = |expected: bool| {
            std::thread::scope(|scope| {
                scope.spawn(|| assert_eq!(lock.try_lock().is_some(), expected));
            });
        };
        let first = lock.try_lock().expect("nobody has it");
        assert!(lock.try_lock().is_none(), "not twice");
        in_another(false);
        drop(first);
        in_another(true);
        let again = lock.try_lock().expect("the other has ended");
        in_another(false);
        assert!(lock.try_lock().is_none(), "not twice");
        drop(again);
        in_another(true);
    }
}
