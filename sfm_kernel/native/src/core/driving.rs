//! Receiving in the waiting thread itself, without another thread in between.
//!
//! Normally a network thread takes in what arrives through sockets, and then wakes the thread that
//! waits for it: on an idle machine that doubles the latency. A thread that is about to sleep may
//! instead sleep on the sockets themselves and take in what arrives (it *drives*). Senders that
//! ring the bell cannot wake it then; they see in the segment that it drives, and ring for the
//! endpoint's own thread (`serve`), which takes their messages in and pokes the driver.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Core;
use crate::bell::Woken;

/// Time that a receive drives before it shows itself as blocked: what arrives sooner is not shown
/// to observers, and costs nothing but its transport.
pub(super) const AT_ONCE: Duration = Duration::from_millis(1);

/// A transport with its own sockets, as waiting threads use it.
pub trait Driver: Send + Sync {
    /// Take in what has arrived, unless another thread is doing that; whether there was anything.
    fn catch_up(&self) -> bool;

    /// Take in what arrives until `news()`, for at most `limit`. None if that would not pay off, or
    /// if another thread drives. While the thread sleeps, `asleep` is true.
    fn drive(
        &self,
        limit: Duration,
        news: &dyn Fn() -> bool,
        asleep: &dyn Fn(bool),
    ) -> Option<Woken>;

    /// End the sleep of the thread that drives.
    fn poke(&self);
}

impl Core {
    /// Let waiting threads use `driver` from now on. Only the first call has an effect.
    pub fn set_driver(&self, driver: Weak<dyn Driver>) {
        let _ = self.driver.set(driver);
    }

    fn driver(&self) -> Option<Arc<dyn Driver>> {
        self.driver.get()?.upgrade()
    }

    pub(super) fn catch_up(&self) -> bool {
        self.driver().is_some_and(|driver| driver.catch_up())
    }

    fn drive(&self, limit: Duration, news: &dyn Fn() -> bool) -> Option<Woken> {
        let shared = self.shared();
        if shared.callbacks.load(Ordering::SeqCst) != 0 {
            return None; // the endpoint's own thread decides on every message
        }
        let asleep = |asleep| {
            // SYNC POINT core/driving: set before the last check for news; `announce_arrival` and
            // `ring` publish the news before they read it.
            shared.driving.store(u32::from(asleep), Ordering::SeqCst);
        };
        self.driver()?.drive(limit, news, &asleep)
    }

    /// `drive` for a message, if it will probably come through the driver.
    pub(super) fn drive_for_message(
        &self,
        limit: Duration,
        news: &dyn Fn() -> bool,
    ) -> Option<Woken> {
        self.remote.load(Ordering::Relaxed).then(|| self.drive(limit, news))?
    }

    /// `wait_as_sender`, for what may come through sockets.
    pub fn drive_or_sleep(&self, limit: Duration, news: impl Fn() -> bool) -> Woken {
        self.take_in();
        self.pass_work_on();
        let news = || news() || self.shared().has_arrivals();
        match self.drive(limit, &news) {
            Some(woken) => woken,
            None => self.spin_then_sleep(limit, news),
        }
    }

    /// Sleep until `news()`, for at most `limit`; for a call that sends through shared memory.
    ///
    /// It takes in what arrives. Otherwise the network thread does; but that may be the thread
    /// which waits here, if a callback sends, and two such threads that wait for each other's room
    /// would wait for ever.
    pub fn wait_as_sender(&self, limit: Duration, news: impl Fn() -> bool) -> Woken {
        self.take_in();
        self.pass_work_on();
        self.spin_then_sleep(limit, || news() || self.shared().has_arrivals())
    }

    /// Wake every thread of this process that waits on this endpoint.
    pub fn ring(&self) {
        self.shared().bell.0.ring();
        self.poke_driver();
    }

    /// A process has ended, as a connection or the directory tells: who waits for it looks at once.
    pub fn note_loss(&self) {
        self.losses.fetch_add(1, Ordering::SeqCst);
        self.ring();
    }

    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::SeqCst)
    }

    /// Wake the thread that drives, if one sleeps; after its news was published.
    pub(super) fn poke_driver(&self) {
        // SYNC POINT core/driving: with the flag's owner, which checks for news after it has set
        // the flag.
        if self.shared().driving.load(Ordering::SeqCst) != 0 {
            if let Some(driver) = self.driver() {
                driver.poke();
            }
        }
    }
}
