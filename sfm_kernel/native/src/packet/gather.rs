//! A packet whose bytes are still in the user's memory.

use smallvec::SmallVec;

use super::{Body, Packet, ALIGN};

/// Most packets have one buffer or none.
type Chunks = SmallVec<[(usize, *const u8, usize); 1]>;

/// A packet to be sent: its head, and the addresses of its buffers. The sender copies from there
/// straight into the ring, the arena or a network's buffer: once.
pub struct Gather<'a> {
    head: &'a [u8],
    /// (offset in the packet, source, length), in order; the gaps between them are zero.
    chunks: Chunks,
    total: usize,
}

// SAFETY: it only reads, and its maker promises that the sources stay (`new`).
unsafe impl Send for Gather<'_> {}
// SAFETY: as for Send, and a shared reference only reads.
unsafe impl Sync for Gather<'_> {}

impl<'a> Gather<'a> {
    /// # Safety
    /// The sources must be valid as long as the value is used. Chunks are in order, without
    /// overlap, behind the head and inside `total`, with gaps below ALIGN.
    pub unsafe fn new(head: &'a [u8], chunks: impl Into<Chunks>, total: usize) -> Gather<'a> {
        Gather { head, chunks: chunks.into(), total }
    }

    /// A packet that is contiguous.
    pub fn of(bytes: &'a [u8]) -> Gather<'a> {
        Gather { head: bytes, chunks: SmallVec::new(), total: bytes.len() }
    }

    /// Bytes of the whole packet.
    pub fn len(&self) -> usize {
        self.total
    }
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The bytes in front of the buffers; all of them if there are none.
    pub fn head(&self) -> &'a [u8] {
        self.head
    }

    /// Show the bytes `at..at + length` in order, in as many slices as it takes.
    pub fn each(&self, at: usize, length: usize, mut show: impl FnMut(&[u8])) {
        const ZEROS: [u8; ALIGN] = [0; ALIGN];
        let end = at + length;
        let mut at = at;
        if at < self.head.len() {
            let stop = end.min(self.head.len());
            show(&self.head[at..stop]);
            at = stop;
        }
        for &(offset, from, len) in &self.chunks {
            if at >= end {
                return;
            }
            if at < offset {
                let stop = end.min(offset);
                show(&ZEROS[..stop - at]);
                at = stop;
            }
            let stop = end.min(offset + len);
            if at >= offset && at < stop {
                // SAFETY: inside the chunk, which the maker of the value keeps valid.
                show(unsafe { std::slice::from_raw_parts(from.add(at - offset), stop - at) });
                at = stop;
            }
        }
    }

    /// Copy the bytes `at..at + length`.
    ///
    /// # Safety
    /// `to` has room for `length` bytes.
    pub unsafe fn copy(&self, at: usize, to: *mut u8, length: usize) {
        let mut done = 0;
        self.each(at, length, |bytes| {
            // SAFETY: `each` shows `length` bytes in all, for which the caller promises room.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(done), bytes.len()) };
            done += bytes.len();
        });
    }

    /// The packet copied into fresh memory; None if there is none.
    pub fn to_packet(&self) -> Option<Packet> {
        let body = Body::try_new(self.total)?;
        // SAFETY: the fresh memory has the packet's length, and nobody else knows it.
        unsafe { self.copy(0, body.as_ptr(), self.total) };
        Some(Packet::of(body, None))
    }
}
