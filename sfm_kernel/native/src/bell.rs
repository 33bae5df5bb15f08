//! The doorbell: how a process sleeps until another has something for it.
//!
//! One 64-bit word in shared memory: the upper half counts rings, the lower half sleepers. Both
//! change in single read-modify-write steps, whose order all processes agree on:
//!
//! ```text
//! sleeper                                   ringer
//!   (seen, _) = word += one sleeper  (S)      publish the news
//! check for news; found? leave              (_, sleepers) = word += one ring  (R)
//!   sleep unless rings != seen                sleepers > 0 ? wake all
//! ```
//!
//! If S comes before R, the ringer sees the sleeper and wakes it. If R comes before S, then S, an
//! acquire, reads what R, a release, wrote: the sleeper sees the news. Model-checked in tests/loom.

#[cfg(not(loom))]
use crate::cores;
#[cfg(not(loom))]
use crate::sync::AtomicU32;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

const RING: u64 = 1 << 32;
/// The index of the half that counts rings.
#[cfg(not(loom))]
const UPPER: usize = if cfg!(target_endian = "little") { 1 } else { 0 };

#[derive(Default)]
#[repr(C)]
pub struct Bell {
    word: AtomicU64,
    /// The core of the latest ringer. A hint, which nothing is ordered by.
    #[cfg(not(loom))]
    core: AtomicU32,
    #[cfg(loom)]
    model: loom_futex::Futex,
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Rung, or there was news before it slept.
    Rung,
    Timeout,
    /// A signal arrived in this thread.
    Signal,
}

impl Bell {
    /// Wake all sleepers; they see everything that was published before.
    pub fn ring(&self) {
        #[cfg(not(loom))]
        self.core.store(cores::current(), Ordering::Relaxed);
        // SYNC POINT bell: R, with S in `sleep`.
        let before = self.word.fetch_add(RING, Ordering::AcqRel);
        if before as u32 > 0 {
            self.wake();
        }
    }

    /// Whether the latest ringer ran on the core that this thread runs on now.
    #[cfg(not(loom))]
    pub fn was_rung_here(&self) -> bool {
        self.core.load(Ordering::Relaxed) == cores::current()
    }

    /// Ring a bell in a file that others may have cut: the kernel does all of it, in one step, and
    /// does nothing if the memory is lost. Always a system call.
    #[cfg(all(not(loom), target_os = "linux"))]
    pub fn ring_from_outside(bell: *const Bell) {
        const ADD_ONE: u32 = (libc::FUTEX_OP_ADD as u32) << 28 | 1 << 12;
        let rings = bell.cast::<u32>().wrapping_add(UPPER);
        let (all, none) = (i32::MAX, 0usize);
        // SYNC POINT bell: R, with S in `sleep`.
        // SAFETY: the kernel checks the address, and changes nothing but the count of rings.
        unsafe {
            libc::syscall(libc::SYS_futex, rings, libc::FUTEX_WAKE_OP, all, none, rings, ADD_ONE)
        };
    }

    /// Sleep until rung, for at most `limit`, unless `news()` says that there is no need.
    ///
    /// A process that is killed in its sleep is counted for ever: later rings then make a system
    /// call each, and nothing else.
    pub fn sleep(&self, limit: Duration, news: impl Fn() -> bool) -> Woken {
        // SYNC POINT bell: S, with R in `ring`.
        let before = self.word.fetch_add(1, Ordering::AcqRel);
        let seen = (before >> 32) as u32;
        let woken = if news() { Woken::Rung } else { self.wait(seen, limit) };
        self.word.fetch_sub(1, Ordering::AcqRel);
        woken
    }

    /// The half that the kernel compares.
    #[cfg(not(loom))]
    fn rings(&self) -> *const u32 {
        // SAFETY: both halves lie inside of the word, which lives as long as `self`.
        unsafe { (&self.word as *const AtomicU64).cast::<u32>().add(UPPER) }
    }

    #[cfg(all(not(loom), target_os = "linux"))]
    fn wait(&self, seen: u32, limit: Duration) -> Woken {
        let limit = libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: limit.subsec_nanos() as libc::c_long,
        };
        // SAFETY: the word lives as long as self; FUTEX_WAIT (not PRIVATE: other processes ring)
        // only reads it.
        let result = unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.rings(),
                libc::FUTEX_WAIT,
                seen,
                &limit as *const libc::timespec,
            )
        };
        if result == 0 {
            return Woken::Rung;
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::ETIMEDOUT) => Woken::Timeout,
            Some(libc::EINTR) => Woken::Signal,
            _ => Woken::Rung, // EAGAIN: the word has changed since `seen`
        }
    }

    #[cfg(all(not(loom), target_os = "linux"))]
    fn wake(&self) {
        // SAFETY: as in `wait`; waking sleepers of an address cannot harm.
        unsafe { libc::syscall(libc::SYS_futex, self.rings(), libc::FUTEX_WAKE, i32::MAX) };
    }

    #[cfg(loom)]
    fn wait(&self, seen: u32, _limit: Duration) -> Woken {
        self.model.wait(|| (self.word.load(Ordering::Acquire) >> 32) as u32 == seen);
        Woken::Rung
    }

    #[cfg(loom)]
    fn wake(&self) {
        self.model.wake();
    }
}

/// The kernel's promise about futexes, for the model: comparing the word and going to sleep are one
/// step with respect to wakes.
#[cfg(loom)]
mod loom_futex {
    use loom::sync::{Condvar, Mutex};

    #[derive(Default)]
    pub struct Futex {
        queue: Mutex<()>,
        wake: Condvar,
    }
    impl Futex {
        pub fn wait(&self, unchanged: impl Fn() -> bool) {
            let guard = self.queue.lock().unwrap();
            if unchanged() {
                drop(self.wake.wait(guard).unwrap());
            }
        }
        pub fn wake(&self) {
            let _guard = self.queue.lock().unwrap();
            self.wake.notify_all();
        }
    }
}
