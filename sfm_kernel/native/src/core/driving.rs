//! Receiving in the thread that waits, without another thread in between.
//!
//! What comes through sockets is normally taken in by a network thread, which then wakes whoever
//! waits for it: on an idle machine that doubles the latency. A thread that is about to sleep may
//! instead sleep on the sockets themselves and take in what comes (it *drives*). Senders that ring
//! the bell cannot wake it then, so that they see in the segment that it drives, and ring for the
//! endpoint's own thread (`serve`), which takes their news in and pokes the driver.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Core;
use crate::bell::Woken;

/// How long a receive drives before it says that it is blocked: what comes sooner is not shown to
/// observers, and costs nothing but its way.
pub(super) const AT_ONCE: Duration = Duration::from_millis(1);

/// What a transport with sockets of its own offers to threads that wait.
pub trait Driver: Send + Sync {
    /// Take in what has come, if that is nobody's task just now; whether anything had.
    fn catch_up(&self) -> bool;

    /// Take in what comes until `news()`, for at most `limit`. None if that would not pay off, or
    /// if another thread does it. While it sleeps, `asleep` is true.
    fn drive(
        &self,
        limit: Duration,
        news: &dyn Fn() -> bool,
        asleep: &dyn Fn(bool),
    ) -> Option<Woken>;

    /// End the sleep of a thread that drives.
    fn poke(&self);
}

impl Core {
    /// From now on threads that wait may use `driver`. Only the first has an effect.
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
            return None; // the endpoint's own thread decides over every message
        }
        let asleep = |asleep| {
            // SYNC POINT core/driving: set before the last look for news; `announce_arrival` and
            // `ring` publish the news before they look at it.
            shared.driving.store(u32::from(asleep), Ordering::SeqCst);
        };
        self.driver()?.drive(limit, news, &asleep)
    }

    /// `drive` for a message, if one is likely to come that way.
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
        let news = || news() || self.shared().has_arrivals();
        match self.drive(limit, &news) {
            Some(woken) => woken,
            None => self.spin_then_sleep(limit, news),
        }
    }

    /// Sleep until `news()`, for at most `limit`; for a call that sends through shared memory.
    ///
    /// It takes in what arrives. Else the network thread does; but when that is the one who waits
    /// here, because a callback sends, two such threads that wait for each other's room would wait
    /// for ever.
    pub fn wait_as_sender(&self, limit: Duration, news: impl Fn() -> bool) -> Woken {
        self.take_in();
        self.spin_then_sleep(limit, || news() || self.shared().has_arrivals())
    }

    /// Wake every thread of this process that waits for something here.
    pub fn ring(&self) {
        let shared = self.shared();
        shared.bell.0.ring();
        self.poke_driver();
    }

    /// Wake the thread that drives, if one sleeps; after what it is to see was published.
    pub(super) fn poke_driver(&self) {
        // SYNC POINT core/driving: with the flag's owner, who looks for news after it set it.
        if self.shared().driving.load(Ordering::SeqCst) != 0 {
            if let Some(driver) = self.driver() {
                driver.poke();
            }
        }
    }
}
