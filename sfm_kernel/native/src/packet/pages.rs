//! Memory for large packets, some of which is reused for the next one.
//!
//! A page that is touched for the first time costs the kernel more than filling it: 16 MB of fresh
//! memory take some four times as long as 16 MB that were written before. malloc gives memory of
//! this size back whenever it can, and so every large packet would pay again.

use std::ptr::NonNull;
use std::sync::Mutex;

/// Bytes from which on a packet has its own pages.
pub const LARGE: usize = 1 << 20;

/// Most spare bytes that one process keeps.
const MAX_SPARE: usize = 32 << 20;

const PAGE: usize = 4096;

/// Whole pages, not shared with anything, with unspecified contents.
pub struct Pages {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to the value alone, whichever thread has it.
unsafe impl Send for Pages {}

/// Pages that are kept for reuse. A thread that does not get the lock at once does without: in a
/// forked child it may be held for ever.
static SPARE: Mutex<Vec<Pages>> = Mutex::new(Vec::new());

impl Pages {
    /// Room for `len` bytes; None if there is none.
    pub fn new(len: usize) -> Option<Pages> {
        let len = len.checked_next_multiple_of(PAGE)?;
        Pages::spare(len).or_else(|| Pages::fresh(len)).or_else(|| {
            unmap_spare();
            Pages::fresh(len)
        })
    }

    /// Spare pages that are not much too many.
    fn spare(len: usize) -> Option<Pages> {
        let mut spare = SPARE.try_lock().ok()?;
        let fits = |pages: &Pages| pages.len >= len && pages.len / 2 <= len;
        let nth = spare.iter().rposition(fits)?;
        Some(spare.remove(nth))
    }

    fn fresh(len: usize) -> Option<Pages> {
        // SAFETY: new memory, at a place that the kernel chooses.
        let start = unsafe {
            let (access, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0)
        };
        (start != libc::MAP_FAILED)
            .then(|| Pages { start: NonNull::new(start.cast()).expect("mapped"), len })
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Keep it for reuse, if that is not too much. The kernel may take spare pages when it needs
    /// memory.
    fn retain(&self) -> bool {
        let Ok(mut spare) = SPARE.try_lock() else { return false };
        if self.len + spare.iter().map(|pages| pages.len).sum::<usize>() > MAX_SPARE {
            return false;
        }
        // SAFETY: memory of ours whose contents nobody needs any more.
        if unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, libc::MADV_FREE) } != 0 {
            return false;
        }
        spare.push(Pages { start: self.start, len: self.len });
        true
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if !self.retain() {
            unmap(self.start, self.len);
        }
    }
}

fn unmap(start: NonNull<u8>, len: usize) {
    // SAFETY: mapped by `fresh` with this length; nobody uses it any more.
    unsafe { libc::munmap(start.as_ptr().cast(), len) };
}

/// For a caller that finds no memory.
fn unmap_spare() {
    let Ok(mut spare) = SPARE.try_lock() else { return };
    for pages in spare.drain(..) {
        unmap(pages.start, pages.len);
        std::mem::forget(pages); // unmapped: not to be retained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_memory_is_reused_and_the_spare_is_bounded() {
        // Tests that run at the same time may take the spare pages.
        let is_used_again = || {
            let first = Pages::new(3 * LARGE + 1).expect("memory");
            assert!(first.len > 3 * LARGE && (first.as_ptr() as usize).is_multiple_of(PAGE));
            // SAFETY: the pages have `len` bytes, and all of them are ours.
            unsafe { first.as_ptr().write_bytes(7, first.len) };
            let start = first.as_ptr();
            drop(first);
            Pages::new(3 * LARGE).expect("memory").as_ptr() == start
        };
        assert!((0..100).any(|_| is_used_again()));
        let some: Vec<Pages> = (0..9).map(|_| Pages::new(MAX_SPARE / 4).expect("memory")).collect();
        drop(some);
        let spare: usize = SPARE.lock().expect("healthy").iter().map(|pages| pages.len).sum();
        assert!(spare <= MAX_SPARE);
        unmap_spare();
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(Pages::new(usize::MAX).is_none() && Pages::new(usize::MAX / 2).is_none());
    }
}
