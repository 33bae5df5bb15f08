//! The memory that the processes of a communicator share, if they do: a tree for meetings, with
//! cells for posts (`collective::agreement`).

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use sfm_native::biased_lock::{BiasedLock, Guard};
use sfm_native::combining_tree::CombiningTree;
use sfm_native::segment::Segment;

use super::history::LARGEST;
use crate::errors::{fail, Answer};
use crate::handles::*;

/// A communicator's tree, which one call at a time uses. A program without MPI_THREAD_MULTIPLE has
/// promised that; one that does not keep its promise gets an error.
#[derive(Default)]
pub struct Meetings {
    lock: BiasedLock,
    state: UnsafeCell<SharedTree>,
}

// SAFETY: the state is reached through `Turn` alone, of which there is one at a time.
unsafe impl Sync for Meetings {}

/// The use of a communicator's tree by one call.
pub struct Turn<'a> {
    meetings: &'a Meetings,
    _guard: Guard<'a>,
}

pub enum SharedTree {
    /// The last tree was refused, maybe before all had looked for it: then its file is held here.
    None(#[allow(dead_code)] Option<Refused>),
    At(OpenTree),
}

impl Default for SharedTree {
    fn default() -> SharedTree {
        SharedTree::None(None)
    }
}

/// The file of a tree that is kept for those who have not seen yet that it is refused.
pub struct Refused(pub PathBuf);

impl Drop for Refused {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub struct OpenTree {
    pub tree: CombiningTree,
    pub others: Vec<Segment>,
    /// The number of the call in which it was agreed, and the epoch of all numbers then.
    pub first: u64,
    pub epoch: u64,
}

impl Meetings {
    pub fn take_turn(&self) -> Answer<Turn<'_>> {
        let mut state = self.turn().ok_or_else(|| {
            let text = "another thread, or code that a signal handler has interrupted, is in a \
                collective call of this communicator, which allows one at a time";
            fail(MPI_ERR_OTHER, text)
        })?;
        // Calls have other numbers now, for all processes.
        if matches!(&*state, SharedTree::At(open) if open.epoch != super::epoch()) {
            *state = SharedTree::default();
        }
        Ok(state)
    }

    /// None while another call has it.
    pub fn turn(&self) -> Option<Turn<'_>> {
        // The locked instruction of a usual lock costs a small broadcast a tenth of its time.
        Some(Turn { meetings: self, _guard: self.lock.try_lock()? })
    }
}

impl Deref for Turn<'_> {
    type Target = SharedTree;

    fn deref(&self) -> &SharedTree {
        // SAFETY: there is one turn at a time, and this is it, so nobody writes meanwhile.
        unsafe { &*self.meetings.state.get() }
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut SharedTree {
        // SAFETY: there is one turn at a time, and this is it, so nobody else has a reference.
        unsafe { &mut *self.meetings.state.get() }
    }
}

impl OpenTree {
    /// The number of a call, counted from the one in which the tree was agreed.
    pub fn nth_of(&self, number: u64) -> u64 {
        number.wrapping_sub(self.first) & u64::from(LARGEST)
    }

    pub fn wake_others(&self) {
        self.wake(None);
    }

    /// Wake the process with this rank, or all others.
    pub fn wake(&self, rank: Option<usize>) {
        match rank {
            None => self.others.iter().for_each(|other| other.wake()),
            // This process is not among them.
            Some(rank) => self.others[rank - usize::from(rank > self.tree.rank())].wake(),
        }
    }
}
