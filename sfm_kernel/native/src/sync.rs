//! Atomics, from the standard library or from loom; and locks.
//!
//! Everything lock-free in this crate takes its atomics from here, so that `make loom` runs the
//! very code that ships through every interleaving that the memory model allows.

use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(not(loom))]
pub use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

#[cfg(loom)]
pub use loom::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

/// `fence(SeqCst)`, which neither loads nor stores pass. On x86-64 the compiler makes it `mfence`,
/// which takes four times as long there as a locked instruction, and does no more for memory like
/// ours. Source: crossbeam-epoch (`internal.rs`, `pin`).
pub fn full_fence() {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: changes nothing; no part of the stack is lost, since nothing is pushed. Without
    // `nomem`, so that the compiler moves no access across it either.
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp], 0", options(nostack));
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    fence(Ordering::SeqCst);
}

/// A value alone on its cache lines (two: the neighbour line is prefetched), so that what one
/// process writes does not take from the other's cache what it reads. Source: crossbeam's reason.
#[derive(Default)]
#[repr(C, align(128))]
pub struct Padded<T>(pub T);

/// The lock of a mutex, also after a panic under it: what it protects is still usable.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
