//! A window's file in shared memory: the locks of each process, and the window's memory if this
//! library allocates it.
//!
//! One process creates the file, with its pages reserved, and unlinks it when all have mapped it:
//! after a process is killed, the kernel frees the memory together with the last process. A process
//! that is killed before that leaves a file in the world's folder, under a name that the folder's
//! cleanup covers.

use std::path::Path;

use sfm_native::bell::Bell;
use sfm_native::segment::SLOTS;
use sfm_native::shm::{Mapping, ShmError};

use super::lock::Lock;

/// The beginning of the file; the processes' blocks follow.
#[repr(C)]
struct Front {
    blocks: [Block; 0],
}

/// The control block of one process's memory, used by all others.
#[repr(C, align(64))]
pub struct Block {
    /// The lock of MPI_Win_lock.
    pub lock: Lock,
    /// Held while elements are combined, so that each is combined atomically.
    pub combining: Lock,
    /// Rung when a message has arrived for the thread that serves the memory (`service`).
    pub bell: Bell,
}

/// The largest number of processes of a window.
pub const MOST: usize = SLOTS;
const PAGE: usize = 4096;

pub struct Control {
    mapping: Mapping<Front>,
    processes: usize,
}

/// The offset of each process's memory in the file, contiguous or each from a page boundary on; and
/// the bytes of the file.
pub fn file_offsets(sizes: &[usize], contiguous: bool) -> Option<(Vec<usize>, usize)> {
    let mut end = (sizes.len() * size_of::<Block>()).next_multiple_of(PAGE);
    let mut offsets = Vec::with_capacity(sizes.len());
    for size in sizes {
        offsets.push(end);
        end = end.checked_add(*size).filter(|end| *end <= isize::MAX as usize - PAGE)?;
        if !contiguous {
            end = end.next_multiple_of(PAGE);
        }
    }
    Some((offsets, end.max(PAGE)))
}

impl Control {
    pub fn create(path: &Path, processes: usize, bytes: usize) -> Result<Control, ShmError> {
        // Zero is a free lock, and a bell that was not rung.
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

    pub fn block(&self, rank: usize) -> &Block {
        assert!(rank < self.processes);
        // SAFETY: the file has a block for each process (`file_offsets`), made of atomics.
        unsafe { &*self.mapping.as_ptr().cast::<Block>().add(rank) }
    }

    /// The address of an offset of the file in this process.
    pub fn at(&self, offset: usize) -> *mut u8 {
        self.mapping.as_ptr().wrapping_add(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_without_gaps_or_begins_at_pages() {
        let front = (3 * size_of::<Block>()).next_multiple_of(PAGE);
        let (offsets, end) = file_offsets(&[10, 0, 5000], true).unwrap();
        assert_eq!((offsets, end), (vec![front, front + 10, front + 10], front + 5010));
        let (offsets, end) = file_offsets(&[10, 0, 5000], false).unwrap();
        assert_eq!(offsets, [front, front + PAGE, front + PAGE]);
        assert_eq!(end, front + 3 * PAGE);
        assert_eq!(file_offsets(&[usize::MAX, 2], true), None);
    }
}
