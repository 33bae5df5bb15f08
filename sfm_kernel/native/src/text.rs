//! Text in shared memory that one process writes and others read at any time: a sequence lock.

use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

/// The writer makes `version` odd while it writes. A writer that is killed meanwhile leaves it odd,
/// and readers give up instead of waiting for it.
#[repr(C)]
pub struct Text<const WORDS: usize> {
    version: AtomicU32,
    length: AtomicU32,
    // Words, not bytes: fewer atomic operations. Atomics, because a racing read must be defined.
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Text<WORDS> {
    /// Replace the text; text that does not fit is cut at a character. One writer at a time.
    pub fn write(&self, text: &str) {
        let mut length = text.len().min(WORDS * 8);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        let version = self.version.load(Ordering::Relaxed) | 1;
        self.version.store(version, Ordering::Relaxed);
        // SYNC POINT text: odd version before the words; the words before the even version.
        fence(Ordering::Release);
        self.length.store(length as u32, Ordering::Relaxed);
        for (word, chunk) in self.words.iter().zip(text.as_bytes()[..length].chunks(8)) {
            let mut bytes = [0u8; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
        self.version.store(version.wrapping_add(1), Ordering::Release);
    }

    /// The text, or None if the writer wrote all the time (or died while it wrote).
    pub fn read(&self) -> Option<String> {
        (0..1000).find_map(|_| {
            let text = self.read_between(self, self);
            if text.is_none() {
                std::thread::yield_now();
            }
            text
        })
    }

    /// The text of a copy that was made between two others; None if the writer wrote meanwhile.
    pub fn read_between(&self, before: &Self, after: &Self) -> Option<String> {
        let version = before.version();
        if version & 1 == 1 {
            return None;
        }
        let length = (self.length.load(Ordering::Relaxed) as usize).min(WORDS * 8);
        let mut bytes = Vec::with_capacity(length + 8);
        for word in &self.words[..length.div_ceil(8)] {
            bytes.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        // SYNC POINT text: the words before the second read of the version.
        fence(Ordering::Acquire);
        if after.version.load(Ordering::Relaxed) != version {
            return None;
        }
        bytes.truncate(length);
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Bytes from the start that a text of `length` bytes takes, cut at the capacity.
    pub fn used(length: usize) -> usize {
        std::mem::offset_of!(Self, words) + length.min(WORDS * 8)
    }

    /// The number of the current text: grows with each `write`.
    pub fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }
}
