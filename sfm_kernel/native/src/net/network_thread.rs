//! The thread that receives: one that waits for a message, or the network thread.
//!
//! A waiting thread takes the receiver's role over while it sleeps (it *drives*), so an incoming
//! message has one thread fewer to wake. When its wait ends, the role stays unattended for a
//! moment, since the thread will probably wait again; until then a poll that finds the queue empty
//! also receives. If the thread does not return, the network thread, which checks every `GRACE`
//! while a thread drives, takes the role over.

use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::{Arc, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::closing::Closing;
use super::dialing::Dialing;
use super::exchange::Exchange;
use super::{elapsed, now};
use crate::bell::Woken;
use crate::core::Driver;
use crate::signals::Unsignalled;

/// Nanoseconds for which the role may stay unattended: longer than the pause in a conversation, too
/// short for a sender that waits for credit to notice.
const GRACE: u64 = 5_000_000;
/// Nanoseconds since the last frame within which a waiting thread drives.
const RECENTLY: u64 = 100_000_000;
/// Nanoseconds within which the receiver acknowledges.
const ACK_WITHIN: u64 = 20_000_000;

impl Driver for Exchange {
    fn catch_up(&self) -> bool {
        if self.driving.load(Ordering::SeqCst) || !self.driven_lately() {
            return false;
        }
        let Ok(mut role) = self.role.try_lock() else { return false };
        self.wake_network_thread();
        let before = self.received_at.load(Ordering::Relaxed);
        if let Ok(count) = self.wait(&mut role, 0) {
            self.receive(&mut role, count);
        }
        self.driven_at.store(now(), Ordering::SeqCst);
        self.received_at.load(Ordering::Relaxed) != before
    }

    fn drive(
        &self,
        limit: Duration,
        news: &dyn Fn() -> bool,
        asleep: &dyn Fn(bool),
    ) -> Option<Woken> {
        if elapsed(self.received_at.load(Ordering::Relaxed)) > RECENTLY {
            return None;
        }
        let mut role = match self.role.try_lock() {
            Ok(role) => role,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.driving.store(true, Ordering::SeqCst);
        self.wake_network_thread();
        let deadline = Instant::now() + limit;
        let woken = loop {
            asleep(true);
            let remaining = deadline.saturating_duration_since(Instant::now());
            let waited = if news() { Ok(0) } else { self.wait(&mut role, milliseconds(remaining)) };
            asleep(false);
            let count = *waited.as_ref().unwrap_or(&0);
            self.receive(&mut role, count);
            if news() {
                break Woken::Rung;
            }
            match waited {
                Ok(0) => break Woken::Timeout,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => break Woken::Signal,
                Err(_) => break Woken::Timeout,
            }
        };
        self.driven_at.store(now(), Ordering::SeqCst);
        self.driving.store(false, Ordering::SeqCst);
        Some(woken)
    }

    fn poke(&self) {
        self.alarm.ring();
    }
}

/// Rounded up: otherwise the last millisecond would be a busy loop.
fn milliseconds(limit: Duration) -> i32 {
    limit.as_micros().div_ceil(1000).min(60_000) as i32
}

impl Exchange {
    /// Called with the role taken over, while the network thread may sleep until sockets wake it.
    /// Once awake, it checks every `GRACE`.
    fn wake_network_thread(&self) {
        if self.attending.load(Ordering::Relaxed) {
            self.core.poke();
        }
    }

    fn driven_lately(&self) -> bool {
        elapsed(self.driven_at.load(Ordering::SeqCst)) < GRACE
    }

    /// Start the network thread.
    pub fn start(self: Arc<Exchange>, name: &str) -> std::io::Result<JoinHandle<()>> {
        let name: String = name.chars().filter(|c| *c != '\0').collect();
        let _unsignalled = Unsignalled::enter();
        std::thread::Builder::new().name(name).spawn(move || {
            // stderr has the panic. Nobody waits for what this thread would have done.
            if catch_unwind(AssertUnwindSafe(|| self.run())).is_err() {
                for link in self.links() {
                    link.close("(this process's network thread has failed: see stderr)");
                }
            }
        })
    }

    /// Let the network thread end when everything has arrived, or a peer does not answer.
    pub fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.core.ring(); // a driving thread may sleep
        self.core.poke();
    }

    /// The network thread's work, until the endpoint is closed and what was sent has arrived.
    pub(super) fn run(self: &Arc<Exchange>) {
        let mut dialing = Dialing::default();
        let mut closing: Option<Closing> = None;
        let mut ack_pending_since: Option<u64> = None;
        loop {
            self.credit();
            if self.acks_pending.swap(false, Ordering::Relaxed) {
                ack_pending_since.get_or_insert_with(now);
            }
            if ack_pending_since.take_if(|since| now() >= *since + ACK_WITHIN).is_some() {
                self.links().iter().for_each(|link| link.send_ack());
            }
            // `credit` first, because it consumes pokes; then what a poke may undo: see `drive`.
            let receives = self.receive_if_unattended();
            dialing.work(self);
            if self.closing.load(Ordering::SeqCst) {
                let closing = closing.get_or_insert_with(|| Closing::begin(self));
                if closing.advance(self) {
                    return;
                }
            }
            let due = [
                ack_pending_since.map(|since| since + ACK_WITHIN),
                dialing.due(),
                self.look_at_strangers(),
                closing.as_ref().map(Closing::due),
                (!receives).then(|| now() + GRACE),
            ];
            self.sleep(receives, due.into_iter().flatten().min());
        }
    }

    /// Receive if no thread drives; returns whether that is so.
    fn receive_if_unattended(&self) -> bool {
        let free = !self.driving.load(Ordering::SeqCst) && !self.driven_lately();
        let role = free.then(|| self.role.try_lock().ok()).flatten();
        // Set to true only with the role held: `drive` must see it.
        self.attending.store(role.is_some(), Ordering::Relaxed);
        let Some(mut role) = role else { return false };
        if let Ok(count) = self.wait(&mut role, 0) {
            self.receive(&mut role, count);
        }
        true
    }

    /// Sleep until `due`, a poke, or (with `receives`) an event of a socket.
    fn sleep(&self, receives: bool, due: Option<u64>) {
        if self.has_events() || self.acks_pending.load(Ordering::Relaxed) {
            return;
        }
        let wakeup = libc::pollfd { fd: self.core.event_fd(), events: libc::POLLIN, revents: 0 };
        let sockets = libc::pollfd { fd: self.epoll.as_raw_fd(), ..wakeup };
        let mut fds = [wakeup, sockets];
        let count = if receives { 2 } else { 1 };
        let remaining = due.map_or(60_000_000_000, |due| due.saturating_sub(now()));
        let limit = libc::timespec {
            tv_sec: (remaining / 1_000_000_000) as libc::time_t,
            tv_nsec: (remaining % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: two descriptors that stay open; no signal mask.
        unsafe { libc::ppoll(fds.as_mut_ptr(), count, &limit, std::ptr::null()) };
    }
}
