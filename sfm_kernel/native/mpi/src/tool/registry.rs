//! Handles for tools. Each is a number of its own, used once: a freed one stays invalid.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use sfm_native::sync;

/// Neither null nor MPI_T_PVAR_ALL_HANDLES.
static NEXT: AtomicUsize = AtomicUsize::new(16);

pub struct Registry<T>(Mutex<BTreeMap<usize, Arc<T>>>);

impl<T> Registry<T> {
    pub const fn new() -> Registry<T> {
        Registry(Mutex::new(BTreeMap::new()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<T>>> {
        sync::lock(&self.0)
    }

    pub fn insert(&self, object: T) -> *mut c_void {
        let number = NEXT.fetch_add(16, Ordering::Relaxed);
        self.lock().insert(number, Arc::new(object));
        number as *mut c_void
    }

    pub fn get(&self, handle: *const c_void) -> Option<Arc<T>> {
        self.lock().get(&(handle as usize)).cloned()
    }

    pub fn remove(&self, handle: *const c_void) -> Option<Arc<T>> {
        self.lock().remove(&(handle as usize))
    }

    /// All objects with their handles, in the order of their creation.
    pub fn all(&self) -> Vec<(usize, Arc<T>)> {
        self.lock().iter().map(|(number, object)| (*number, object.clone())).collect()
    }

    pub fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all); // not under the lock
    }
}
