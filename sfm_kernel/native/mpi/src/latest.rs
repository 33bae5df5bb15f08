//! The object that a thread has looked up last, which it finds again without a lock and without a
//! locked instruction: most programs make most of their calls with one communicator.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::LocalKey;

use crate::handles::Handle;

/// An object in use by this thread. The outer count is the thread's own, and changes without a
/// locked instruction.
#[allow(clippy::redundant_allocation)] // see above
pub struct Used<T>(Rc<Arc<T>>);

impl<T> Used<T> {
    pub fn new(object: Arc<T>) -> Used<T> {
        Used(Rc::new(object))
    }
}

impl<T> Clone for Used<T> {
    fn clone(&self) -> Used<T> {
        Used(self.0.clone())
    }
}

impl<T> Deref for Used<T> {
    type Target = Arc<T>;

    fn deref(&self) -> &Arc<T> {
        &self.0
    }
}

/// How often handles of a kind have been freed or have got another object.
pub struct Changes(AtomicU64);

impl Changes {
    pub const fn new() -> Changes {
        Changes(AtomicU64::new(0))
    }

    fn note(&self) {
        // SYNC POINT mpi/latest: a thread that has learned of the change from this one, by whatever
        // it synchronizes with it, sees this, too.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A thread's latest object. It stays alive until the thread looks up another.
pub struct Latest<T>(RefCell<Option<Entry<T>>>);

struct Entry<T> {
    handle: Handle,
    changes: u64,
    object: Used<T>,
}

impl<T> Latest<T> {
    pub const fn new() -> Latest<T> {
        Latest(RefCell::new(None))
    }

    fn get(
        &self,
        handle: Handle,
        changes: &Changes,
        find: impl FnOnce() -> Option<Arc<T>>,
    ) -> Option<Used<T>> {
        let now = changes.0.load(Ordering::Relaxed);
        // In a signal handler the interrupted code may be changing it.
        if let Some(latest) = self.0.try_borrow().ok().as_deref().and_then(Option::as_ref) {
            if (latest.handle, latest.changes) == (handle, now) {
                return Some(latest.object.clone());
            }
        }
        let object = Used::new(find()?);
        self.set(Some(Entry { handle, changes: now, object: object.clone() }));
        Some(object)
    }

    fn set(&self, entry: Option<Entry<T>>) {
        // What is dropped may look up others: not under the borrow.
        let _former =
            self.0.try_borrow_mut().map(|mut latest| std::mem::replace(&mut *latest, entry));
    }
}

/// The object of a handle, which `find` looks up if it is another than this thread's latest.
#[inline]
pub fn get<T>(
    latest: &'static LocalKey<Latest<T>>,
    handle: Handle,
    changes: &Changes,
    find: impl Fn() -> Option<Arc<T>>,
) -> Option<Used<T>> {
    let found = latest.try_with(|latest| latest.get(handle, changes, &find));
    // The program may call MPI when its exit has destroyed the thread's variables: from `atexit`.
    found.unwrap_or_else(|_| find().map(Used::new))
}

/// Call after a handle was freed or has got another object. This thread's latest may be freed.
pub fn note_change<T>(latest: &'static LocalKey<Latest<T>>, changes: &Changes) {
    changes.note();
    let _ = latest.try_with(|latest| latest.set(None));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_has_changed_is_looked_up_again() {
        thread_local!(static LATEST: Latest<u8> = const { Latest::new() });
        let changes = Changes::new();
        let get =
            |object: Option<u8>| get(&LATEST, 7, &changes, || object.map(Arc::new)).map(|o| **o);
        assert_eq!((get(Some(1)), get(Some(2)), get(None)), (Some(1), Some(1), Some(1)));
        changes.note();
        assert_eq!((get(None), get(Some(3)), get(None)), (None, Some(3), Some(3)));
        LATEST.with(|latest| latest.set(None));
        assert_eq!((get(None), get(Some(4))), (None, Some(4)));
        note_change(&LATEST, &changes);
        assert_eq!(get(None), None);
    }
}
