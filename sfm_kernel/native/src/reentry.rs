//! A thread that is interrupted while it sends must not wait for itself.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The thread that holds a lock and may run other Python code meanwhile, such as a signal handler
/// or a finalizer. 0 for none.
#[derive(Default)]
pub struct Holder(AtomicUsize);

impl Holder {
    /// The calling thread, which has the lock, is the holder while the result lives.
    pub fn enter(&self) -> impl Drop + '_ {
        self.0.store(this_thread(), Ordering::Relaxed);
        Held(self)
    }

    /// Whether the calling thread would wait for itself.
    pub fn is_this_thread(&self) -> bool {
        self.0.load(Ordering::Relaxed) == this_thread()
    }
}

struct Held<'a>(&'a Holder);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0 .0.store(0, Ordering::Relaxed);
    }
}

/// Differs from 0 and between living threads.
fn this_thread() -> usize {
    thread_local!(static MARKER: u8 = const { 0 });
    MARKER.with(|marker| std::ptr::from_ref(marker) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_holder_and_only_while_it_holds() {
        let holder = Holder::default();
        assert!(!holder.is_this_thread());
        let held = holder.enter();
        assert!(holder.is_this_thread());
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!holder.is_this_thread()));
        });
        drop(held);
        assert!(!holder.is_this_thread());
    }
}
