//! Life signs: a sender sees at once that its peer has died, for the price of one load.
//!
//! The network thread of each process keeps a word in the process's segment on its list of robust
//! futexes as long as the endpoint is open. When the thread ends without removing it, that is when
//! the process dies, however it dies, the kernel sets FUTEX_OWNER_DIED in the word (futex(2),
//! "Robust futexes"; set_robust_list(2)). Nobody ever waits for it: the others only read that bit.
//!
//! The list is in private memory, and only the word is shared: a futex lies at a fixed distance
//! from its entry of the list, and that may be any. (A robust mutex of the C library would have the
//! entry beside the word, with pointers that the library follows, and others could write them.) So
//! the thread has this list and no other: a callback that locks a robust mutex of the C library
//! gets one that the kernel does not mark if the process dies with it.
//!
//! The bit proves a death, and that only if nobody has damaged the segment. The segment's lock
//! decides: the kernel also gives up on the list if its memory is lost already, as when the machine
//! runs out of memory.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

/// In the kernel's word of a robust futex: its owner has died.
const OWNER_DIED: u32 = 0x4000_0000;

#[repr(C)]
pub struct Life(AtomicU32);

/// The kernel's `robust_list_head`.
#[repr(C)]
struct Head {
    first: *const Entry,
    /// Bytes from an entry to its futex.
    distance: libc::c_long,
    pending: *const Entry,
}

/// The kernel's `robust_list`: the last one leads back to the head.
#[repr(C)]
struct Entry {
    next: *const Head,
}

struct List {
    head: Head,
    entry: Entry,
}

impl Life {
    /// Held until this same thread drops the guard, or ends. Once at a time, and not with others in
    /// the same thread.
    pub fn hold(&self) -> Held<'_> {
        let none = Head { first: std::ptr::null(), distance: 0, pending: std::ptr::null() };
        let list =
            Box::into_raw(Box::new(List { head: none, entry: Entry { next: std::ptr::null() } }));
        let (mut before, mut length) = (std::ptr::null::<Head>(), 0usize);
        // SAFETY: `list` is ours, and stays where it is while the kernel knows it.
        unsafe {
            let entry = &raw const (*list).entry;
            (*list).entry.next = &raw const (*list).head;
            (*list).head.first = entry;
            (*list).head.distance = (self.0.as_ptr() as isize).wrapping_sub(entry as isize) as _;
            let this_thread = 0;
            let known = libc::syscall(
                libc::SYS_get_robust_list,
                this_thread,
                &raw mut before,
                &raw mut length,
            );
            // Without such lists, the segment's lock has to do.
            if known == 0 && length == SIZE {
                libc::syscall(libc::SYS_set_robust_list, &raw const (*list).head, SIZE);
                self.0.store(libc::syscall(libc::SYS_gettid) as u32, Ordering::SeqCst);
            } else {
                before = std::ptr::null();
            }
        }
        Held { life: self, list, before, by_this_thread: PhantomData }
    }

    /// Whether its holder is surely dead.
    pub fn has_ended(&self) -> bool {
        self.0.load(Ordering::Relaxed) & OWNER_DIED != 0
    }
}

const SIZE: usize = std::mem::size_of::<Head>();

/// The mark that the process is alive.
pub struct Held<'a> {
    life: &'a Life,
    list: *mut List,
    /// The thread's former list, the C library's.
    before: *const Head,
    by_this_thread: PhantomData<*const ()>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.before.is_null() {
            self.life.0.store(0, Ordering::SeqCst);
            // SAFETY: what was registered before, for this thread.
            unsafe { libc::syscall(libc::SYS_set_robust_list, self.before, SIZE) };
        }
        // SAFETY: from `Box::into_raw`; the kernel does not know it any more.
        drop(unsafe { Box::from_raw(self.list) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> &'static Life {
        // SAFETY: fresh shared memory; zero is a word that nobody holds.
        unsafe {
            let size = std::mem::size_of::<Life>();
            let (kind, access) =
                (libc::MAP_SHARED | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
            &*libc::mmap(std::ptr::null_mut(), size, access, kind, -1, 0).cast::<Life>()
        }
    }

    /// Run `body` in a child, which is then killed.
    fn killed(body: impl FnOnce()) {
        // SAFETY: the child calls only what is allowed after a fork of many threads.
        let child = unsafe { libc::fork() };
        if child == 0 {
            body();
            // SAFETY: ends the child as a kill from outside does.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        let mut status = 0;
        // SAFETY: it waits for a child of this process, and writes into a variable of this test.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(libc::WTERMSIG(status), libc::SIGKILL);
    }

    #[test]
    fn the_end_of_a_process_is_seen_and_a_release_is_no_end() {
        let life = shared();
        drop(life.hold());
        assert!(!life.has_ended());
        killed(|| drop(life.hold()));
        assert!(!life.has_ended());
        killed(|| std::mem::forget(life.hold()));
        assert!(life.has_ended());
    }

    #[test]
    fn foreign_writes_into_the_word_are_harmless() {
        for nonsense in [u32::MAX, 0, 1, 0x1234_5678] {
            let life = shared();
            killed(|| {
                std::mem::forget(life.hold());
                life.0.store(nonsense, Ordering::SeqCst);
            });
            assert_eq!(life.0.load(Ordering::SeqCst), nonsense);
        }
    }
}
