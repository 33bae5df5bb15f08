//! The memory of a packet.

use std::alloc::{alloc, dealloc, handle_alloc_error, Layout};
use std::any::Any;

use super::pages::{self, Pages};
use super::ALIGN;

/// Memory for one packet, aligned to 64 bytes, not zeroed, never moved.
pub struct Body {
    data: *mut u8,
    len: usize,
    memory: Memory,
}

enum Memory {
    /// The allocation; the body begins at its first aligned byte.
    Block(*mut u8),
    /// Dropping it gives it back.
    Large { _pages: Pages },
}

/// Malloc's own alignment. More costs it a search, although a small block is at hand.
const CHEAP: usize = 16;

// SAFETY: the memory is owned; `Packet` says who writes to it.
unsafe impl Send for Body {}
// SAFETY: as for Send; a shared reference reads only what `Packet` says nobody writes to now.
unsafe impl Sync for Body {}

impl Body {
    /// None for more than any machine can have.
    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.checked_add(ALIGN - CHEAP)?, CHEAP).ok()
    }

    /// Memory of `len` bytes with unspecified contents, or None if there is none.
    pub fn try_new(len: usize) -> Option<Body> {
        if len >= pages::LARGE {
            let pages = Pages::new(len)?;
            return Some(Body {
                data: pages.as_ptr(),
                len,
                memory: Memory::Large { _pages: pages },
            });
        }
        // SAFETY: the layout's size is not zero, as `alloc` demands.
        let start = unsafe { alloc(Body::layout(len)?) };
        if start.is_null() {
            return None;
        }
        // SAFETY: a multiple of CHEAP, so that at most ALIGN - CHEAP bytes are passed over.
        let data = unsafe { start.add(start.align_offset(ALIGN)) };
        Some(Body { data, len, memory: Memory::Block(start) })
    }

    pub fn try_copy_of(bytes: &[u8]) -> Option<Body> {
        let body = Body::try_new(bytes.len())?;
        // SAFETY: fresh memory of the same length cannot overlap `bytes`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), body.data, bytes.len()) };
        Some(body)
    }

    /// For small bodies: without memory the process ends.
    pub fn copy_of(bytes: &[u8]) -> Body {
        Body::try_copy_of(bytes).unwrap_or_else(|| handle_alloc_error(Layout::for_value(bytes)))
    }

    /// All bytes, which must be written; see `Packet` on who else may write to them.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the memory has `len` initialized bytes, which live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
    pub fn as_ptr(&self) -> *mut u8 {
        self.data
    }
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Memory::Block(start) = self.memory {
            // SAFETY: allocated in try_new with the same layout.
            unsafe { dealloc(start, Body::layout(self.len).expect("as in try_new")) }
        }
    }
}

/// A packet's buffers in foreign memory, such as a sender's arena.
pub struct Tail {
    data: *mut u8,
    len: usize,
    /// Gives the memory back when dropped.
    _lease: Box<dyn Any + Send + Sync>,
}

// SAFETY: the lease makes the memory ours alone; `Packet` says who writes to it.
unsafe impl Send for Tail {}
// SAFETY: as for Send; a shared reference reads only what `Packet` says nobody writes to now.
unsafe impl Sync for Tail {}

impl Tail {
    /// # Safety
    /// `len` bytes at `data` are valid, written, and nobody else's, as long as `lease` lives.
    pub unsafe fn new(data: *mut u8, len: usize, lease: Box<dyn Any + Send + Sync>) -> Tail {
        Tail { data, len, _lease: lease }
    }
    pub fn as_ptr(&self) -> *mut u8 {
        self.data
    }
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
