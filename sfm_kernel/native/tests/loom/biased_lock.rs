//! The lock that its owner takes without a locked instruction: two threads take it in turn, and never
//! at a time, from before one of them owns it until after that has ended.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use sfm_native::biased_lock::BiasedLock;

use super::check;

struct Shared {
    lock: BiasedLock,
    number: UnsafeCell<u32>,
}

// SAFETY: the number is used under the lock; loom checks that.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

/// Take the lock as this thread, if it is free; whether it was.
fn take(shared: &Shared, thread: u64) -> u32 {
    let Some(_guard) = shared.lock.try_lock_as(thread) else { return 0 };
    // SAFETY: under the lock.
    shared.number.with_mut(|number| unsafe { *number += 1 });
    1
}

#[test]
fn a_biased_lock_is_taken_by_one_thread_at_a_time() {
    check(|| {
        let shared = Arc::new(Shared { lock: BiasedLock::default(), number: UnsafeCell::new(0) });
        let other = thread::spawn({
            let shared = shared.clone();
            move || (0..2).map(|_| take(&shared, 8)).sum::<u32>()
        });
        let took = (0..2).map(|_| take(&shared, 4)).sum::<u32>() + other.join().unwrap();
        // SAFETY: the other thread has ended.
        assert_eq!(shared.number.with(|number| unsafe { *number }), took);
        assert_eq!(take(&shared, 8) + take(&shared, 4), 2, "it is free");
    });
}

/// A third thread comes while another one ends the ownership.
#[test]
fn a_biased_lock_is_taken_by_one_of_three_threads() {
    check(|| {
        let shared = Arc::new(Shared { lock: BiasedLock::default(), number: UnsafeCell::new(0) });
        assert_eq!(take(&shared, 4), 1);
        let others = [8, 12].map(|number| {
            let shared = shared.clone();
            thread::spawn(move || take(&shared, number))
        });
        let took = take(&shared, 4) + others.map(|other| other.join().unwrap()).iter().sum::<u32>();
        // SAFETY: the other threads have ended.
        assert_eq!(shared.number.with(|number| unsafe { *number }), 1 + took);
    });
}
