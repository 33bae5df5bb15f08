//! How a sender sees at once that its peer has died, for the price of one load.
//!
//! The network thread of each process holds a robust mutex in the process's segment as long as the
//! endpoint is open. When the thread ends without giving it back, that is when the process dies,
//! however it dies, the kernel sets FUTEX_OWNER_DIED in the mutex's word (futex(2), "Robust
//! futexes"). Nobody else ever locks it: the others only look at that bit.
//!
//! It says no more than "dead for sure". Where the bit is not set the segment's lock decides: the
//! kernel gives up on the list of held mutexes where the memory it lies in is gone already, as
//! when the machine runs out of memory.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};

/// In the kernel's word of a robust futex: its owner has died.
const OWNER_DIED: u32 = 0x4000_0000;
/// Which 32-bit word of a pthread_mutex_t the kernel's is.
const WORD: usize = if cfg!(target_env = "musl") { 1 } else { 0 };

#[repr(C)]
pub struct Life(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the mutex is locked and unlocked by its owner alone; others load one word atomically.
unsafe impl Sync for Life {}
// SAFETY: it is plain memory.
unsafe impl Send for Life {}

impl Life {
    /// Held until the guard is dropped by this same thread, or the thread is no more. Once at a
    /// time.
    pub fn hold(&self) -> Held<'_> {
        let mutex = self.0.get();
        // SAFETY: the mutex's memory outlives the guard, and only this thread uses it; `kind` is
        // initialized before it is used and destroyed after.
        unsafe {
            let mut kind = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut kind);
            libc::pthread_mutexattr_setpshared(&mut kind, libc::PTHREAD_PROCESS_SHARED);
            libc::pthread_mutexattr_setrobust(&mut kind, libc::PTHREAD_MUTEX_ROBUST);
            libc::pthread_mutex_init(mutex, &kind);
            libc::pthread_mutexattr_destroy(&mut kind);
            libc::pthread_mutex_lock(mutex);
        }
        Held(self)
    }

    /// Whether its holder is dead for sure.
    pub fn has_ended(&self) -> bool {
        // SAFETY: inside the mutex, and aligned as it is; the kernel and the owner's pthread
        // functions access this word atomically as well.
        let word = unsafe { &*self.0.get().cast::<AtomicU32>().add(WORD) };
        word.load(Ordering::Relaxed) & OWNER_DIED != 0
    }
}

/// The right to be called alive.
pub struct Held<'a>(&'a Life);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: locked in `hold`, by this thread.
        unsafe { libc::pthread_mutex_unlock(self.0 .0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_seen_and_giving_back_is_no_end() {
        // SAFETY: fresh shared memory; zero is a mutex that nobody holds.
        let life = unsafe {
            let size = std::mem::size_of::<Life>();
            let (kind, access) =
                (libc::MAP_SHARED | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
            &*libc::mmap(std::ptr::null_mut(), size, access, kind, -1, 0).cast::<Life>()
        };
        drop(life.hold());
        assert!(!life.has_ended());
        // SAFETY: the child calls only what is allowed after a fork of many threads.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let _held = life.hold();
            // SAFETY: ends the child as a kill from outside does.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert!(life.has_ended());
    }
}
