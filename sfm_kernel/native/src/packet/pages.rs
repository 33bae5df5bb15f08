//! Memory for large packets, some of which is kept for the next one.
//!
//! A page that is touched for the first time costs the kernel more than filling it: 16 MB of fresh
//! memory take some four times as long as 16 MB that were written before. malloc gives memory of
//! this size back whenever it can, and so every large packet would pay again.

use std::ptr::NonNull;
use std::sync::Mutex;

/// Packets from so many bytes on have pages of their own.
pub const LARGE: usize = 1 << 20;

/// So many bytes are kept at most, of one process.
const KEPT: usize = 32 << 20;

const PAGE: usize = 4096;

/// Whole pages, not shared with anything, with unspecified contents.
pub struct Pages {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is owned.
unsafe impl Send for Pages {}

/// What was given back and is kept. A thread that does not get the lock at once does without: in a
/// forked child it may be held for ever.
static SPARE: Mutex<Vec<Pages>> = Mutex::new(Vec::new());

impl Pages {
    /// Room for `len` bytes; None if there is none.
    pub fn new(len: usize) -> Option<Pages> {
        let len = len.checked_next_multiple_of(PAGE)?;
        Pages::spare(len).or_else(|| Pages::fresh(len)).or_else(|| {
            give_all_back();
            Pages::fresh(len)
        })
    }

    /// Kept pages that are not much too many.
    fn spare(len: usize) -> Option<Pages> {
        let mut spare = SPARE.try_lock().ok()?;
        let fits = |pages: &Pages| pages.len >= len && pages.len / 2 <= len;
        let nth = spare.iter().rposition(fits)?;
        Some(spare.remove(nth))
    }

    fn fresh(len: usize) -> Option<Pages> {
        // SAFETY: new memory, at a place that the kernel chooses.
        let at = unsafe {
            let (how, what) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), len, how, what, -1, 0)
        };
        (at != libc::MAP_FAILED)
            .then(|| Pages { at: NonNull::new(at.cast()).expect("mapped"), len })
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.at.as_ptr()
    }

    /// Keep it, if that is not too much. The kernel may take kept pages when it needs memory.
    fn keep(&self) -> bool {
        let Ok(mut spare) = SPARE.try_lock() else { return false };
        if self.len + spare.iter().map(|pages| pages.len).sum::<usize>() > KEPT {
            return false;
        }
        // SAFETY: memory of ours whose contents nobody needs any more.
        if unsafe { libc::madvise(self.at.as_ptr().cast(), self.len, libc::MADV_FREE) } != 0 {
            return false;
        }
        spare.push(Pages { at: self.at, len: self.len });
        true
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if !self.keep() {
            unmap(self.at, self.len);
        }
    }
}

fn unmap(at: NonNull<u8>, len: usize) {
    // SAFETY: mapped by `fresh` with this length; nobody uses it any more.
    unsafe { libc::munmap(at.as_ptr().cast(), len) };
}

/// For whoever finds no memory.
fn give_all_back() {
    let Ok(mut spare) = SPARE.try_lock() else { return };
    for pages in spare.drain(..) {
        unmap(pages.at, pages.len);
        std::mem::forget(pages); // it is gone: not to be kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_memory_is_used_again_and_what_is_kept_is_bounded() {
        // Tests beside this one may take what was kept.
        let is_used_again = || {
            let first = Pages::new(3 * LARGE + 1).expect("memory");
            assert!(first.len > 3 * LARGE && (first.as_ptr() as usize).is_multiple_of(PAGE));
            // SAFETY: all of it is ours.
            unsafe { first.as_ptr().write_bytes(7, first.len) };
            let at = first.as_ptr();
            drop(first);
            Pages::new(3 * LARGE).expect("memory").as_ptr() == at
        };
        assert!((0..100).any(|_| is_used_again()));
        let some: Vec<Pages> = (0..9).map(|_| Pages::new(KEPT / 4).expect("memory")).collect();
        drop(some);
        let kept: usize = SPARE.lock().expect("healthy").iter().map(|pages| pages.len).sum();
        assert!(kept <= KEPT);
        give_all_back();
    }

    #[test]
    fn more_than_there_can_be_is_none() {
        assert!(Pages::new(usize::MAX).is_none() && Pages::new(usize::MAX / 2).is_none());
    }
}
