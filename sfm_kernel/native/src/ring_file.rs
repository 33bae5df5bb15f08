//! A ring in a file of its own: control words, then the data.

use std::path::Path;

use crate::ring::{Control, Memory};
use crate::shm::{Mapping, ShmError};

/// Data begins behind the control words, on a page of its own.
const DATA: usize = 4096;
const _: () = assert!(std::mem::size_of::<Control>() <= DATA);

/// A mapped ring. Which side writes what is the protocol's business (`ring`).
pub struct RingFile {
    mapping: Mapping<Control>,
    capacity: u64,
}

impl RingFile {
    /// Make a ring of `capacity` bytes (a power of two). The sender does.
    pub fn create(path: &Path, capacity: usize) -> Result<RingFile, ShmError> {
        assert!(capacity.is_power_of_two() && capacity >= 4096, "ring of {capacity} bytes");
        // A descriptor for each peer would be too many, and nobody asks whether a ring lives.
        let mapping = Mapping::create(path, DATA + capacity, |_: &Control| ())?.unlock();
        Ok(RingFile { mapping, capacity: capacity as u64 })
    }

    /// Map a ring that a sender made. The receiver does.
    pub fn open(path: &Path) -> Result<RingFile, ShmError> {
        let mapping: Mapping<Control> = Mapping::open(path)?;
        let capacity = mapping.len().saturating_sub(DATA);
        if !capacity.is_power_of_two() || capacity < 4096 {
            return Err(ShmError::Invalid(format!("{} is no ring", path.display())));
        }
        Ok(RingFile { mapping, capacity: capacity as u64 })
    }

    fn data(&self, at: u64) -> *mut u8 {
        // SAFETY: callers stay below capacity, which lies inside the mapping.
        unsafe { self.mapping.as_ptr().add(DATA + at as usize) }
    }
}

// SAFETY: the mapping stays where it is as long as self lives.
unsafe impl Memory for RingFile {
    fn control(&self) -> &Control {
        &self.mapping
    }
    fn capacity(&self) -> u64 {
        self.capacity
    }
    fn put(&self, at: u64, bytes: &[u8]) {
        debug_assert!(at + bytes.len() as u64 <= self.capacity);
        // SAFETY: inside the data; the protocol gives this range to the producer alone.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.data(at), bytes.len()) };
    }
    unsafe fn get(&self, at: u64, to: *mut u8, length: usize) {
        debug_assert!(at + length as u64 <= self.capacity);
        // SAFETY: inside the data, which the protocol gives to the consumer alone; `to` has room.
        unsafe { std::ptr::copy_nonoverlapping(self.data(at), to, length) };
    }
}
