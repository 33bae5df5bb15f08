//! The epochs of a window, under a lock that the usual operations need not take.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use sfm_native::sync::lock;

use super::epoch::Epochs;
use crate::errors::Answer;

/// The epochs of a window. Operations in the epoch of MPI_Win_lock_all need no lock.
#[derive(Default)]
pub struct Guarded {
    epochs: Mutex<Epochs>,
    /// True in that epoch. A program's threads change it in an order that the program decides.
    are_all_locked: AtomicBool,
}

pub struct Guard<'a>(MutexGuard<'a, Epochs>, &'a AtomicBool);

impl Guarded {
    pub fn lock(&self) -> Guard<'_> {
        Guard(lock(&self.epochs), &self.are_all_locked)
    }

    /// Begin an operation on this rank.
    #[inline]
    pub fn access(&self, rank: usize) -> Answer {
        match self.are_all_locked.load(Relaxed) {
            true => Ok(()),
            false => self.lock().access(rank),
        }
    }

    /// Err if operations on this rank (None: on any) cannot be waited for.
    #[inline]
    pub fn flush(&self, rank: Option<usize>) -> Answer {
        match self.are_all_locked.load(Relaxed) {
            true => Ok(()),
            false => self.lock().flush(rank),
        }
    }
}

impl Deref for Guard<'_> {
    type Target = Epochs;

    fn deref(&self) -> &Epochs {
        &self.0
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Epochs {
        &mut self.0
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.1.store(self.0.are_all_locked(), Relaxed);
    }
}
