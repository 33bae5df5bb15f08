//! Lists of what a forked child has to treat, under a lock that can be held over a fork: only the
//! holder of a guard can release a mutex of the standard library.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

pub struct ForkList<T> {
    busy: AtomicBool,
    list: UnsafeCell<Vec<Weak<T>>>,
}

// SAFETY: the thread that has set `busy` has the list alone.
unsafe impl<T: Send + Sync> Sync for ForkList<T> {}

impl<T> ForkList<T> {
    #[expect(clippy::new_without_default, reason = "only for statics")]
    pub const fn new() -> ForkList<T> {
        ForkList { busy: AtomicBool::new(false), list: UnsafeCell::new(Vec::new()) }
    }

    /// Before a fork: the child finds the list consistent.
    pub fn lock(&self) {
        // SYNC POINT fork: held for a few instructions, or over a fork.
        while self.busy.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    /// After a fork, in the parent.
    pub fn unlock(&self) {
        self.busy.store(false, Ordering::Release);
    }

    /// After a fork, in the child: treat all objects that live, and forget them.
    pub fn empty(&self, treat: impl Fn(Arc<T>)) {
        // SAFETY: this thread has had the lock since before the fork.
        unsafe { &mut *self.list.get() }
            .drain(..)
            .filter_map(|object| object.upgrade())
            .for_each(treat);
        self.unlock();
    }

    pub fn add(&self, object: Weak<T>) {
        self.lock();
        // SAFETY: the caller has the lock, so nobody else uses the list.
        let list = unsafe { &mut *self.list.get() };
        list.retain(|object| object.strong_count() > 0);
        list.push(object);
        self.unlock();
    }
}
