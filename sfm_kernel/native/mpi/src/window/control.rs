//! A window's file in shared memory: for each process its locks, and where the window's memory is
//! ours to choose, that memory.
//!
//! One process makes the file, with its pages reserved, and removes its name when all have mapped it:
//! what a killed process leaves is memory that the kernel frees with the last of them. One that is
//! killed before leaves a file in the world's folder, named as others that go with that.

use std::path::Path;

use sfm_native::bell::Bell;
use sfm_native::segment::SLOTS;
use sfm_native::shm::{Mapping, ShmError};

use super::lock::Lock;

/// Begins the file; the processes' parts follow.
#[repr(C)]
struct Front {
    parts: [Part; 0],
}

/// What others do to one process's memory goes by this.
#[repr(C, align(64))]
pub struct Part {
    /// What MPI_Win_lock takes.
    pub lock: Lock,
    /// Held while elements are combined, so that each is combined as a whole.
    pub combining: Lock,
    /// Rung when something has come for the thread that serves the memory (`service`).
    pub bell: Bell,
}

/// Processes that a window may have.
pub const MOST: usize = SLOTS;
const PAGE: usize = 4096;

pub struct Control {
    mapping: Mapping<Front>,
    processes: usize,
}

/// Where the memory of each process begins in the file: one behind the other, or on pages of their
/// own; and the bytes of the file.
pub fn places(sizes: &[usize], contiguous: bool) -> Option<(Vec<usize>, usize)> {
    let mut end = (sizes.len() * size_of::<Part>()).next_multiple_of(PAGE);
    let mut places = Vec::with_capacity(sizes.len());
    for size in sizes {
        places.push(end);
        end = end.checked_add(*size).filter(|end| *end <= isize::MAX as usize - PAGE)?;
        if !contiguous {
            end = end.next_multiple_of(PAGE);
        }
    }
    Some((places, end.max(PAGE)))
}

impl Control {
    pub fn create(path: &Path, processes: usize, bytes: usize) -> Result<Control, ShmError> {
        // Zero is a lock that is free, and a bell that nobody has rung.
        let mapping: Mapping<Front> = Mapping::create(path, bytes, 0, |_| ())?;
        Ok(Control { mapping: mapping.unlock(), processes })
    }

    pub fn open(path: &Path, processes: usize, bytes: usize) -> Result<Control, ShmError> {
        let mapping: Mapping<Front> = Mapping::open(path, 0)?;
        if mapping.len() < bytes {
            return Err(ShmError::Invalid(format!("{} is too short", path.display())));
        }
        Ok(Control { mapping, processes })
    }

    pub fn part(&self, rank: usize) -> &Part {
        assert!(rank < self.processes);
        // SAFETY: the file has a part for each process (`places`), made of atomics.
        unsafe { &*self.mapping.as_ptr().cast::<Part>().add(rank) }
    }

    /// Where a place of the file is in this process.
    pub fn at(&self, place: usize) -> *mut u8 {
        self.mapping.as_ptr().wrapping_add(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_without_gaps_or_begins_at_pages() {
        let front = (3 * size_of::<Part>()).next_multiple_of(PAGE);
        let (places, end) = super::places(&[10, 0, 5000], true).unwrap();
        assert_eq!((places, end), (vec![front, front + 10, front + 10], front + 5010));
        let (places, end) = super::places(&[10, 0, 5000], false).unwrap();
        assert_eq!(places, [front, front + PAGE, front + PAGE]);
        assert_eq!(end, front + 3 * PAGE);
        assert_eq!(super::places(&[usize::MAX, 2], true), None);
    }
}
