//! Who receives: a thread that waits for a message, or the network thread.
//!
//! A thread that waits takes the role of the receiver over while it sleeps (it *drives*): what
//! comes then needs one thread less to wake. After it has got what it waited for, the role stays
//! unattended for a moment, since it will probably be back; a look at the queue that finds nothing
//! then also takes in what has come. If it does not come back, the network thread, which looks in
//! once per `GRACE` as long as somebody drives, takes the role over.
//!
//! The network thread goes to Python now and then, to open and to judge connections. Where a function
//! in C holds the GIL it does not come back, and the endpoint's own thread stands in for it, once per
//! half a second: messages arrive, and observers see them.

use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::TryLockError;
use std::time::{Duration, Instant};

use super::exchange::{now, Exchange};
use crate::bell::Woken;
use crate::core::Driver;

/// How long the role may stay unattended: longer than the pause in a conversation, too short to
/// be noticed by a sender that waits for an acknowledgement.
const GRACE: Duration = Duration::from_millis(5);
/// What the network thread does in Python takes less, unless somebody holds the GIL.
const AWAY: Duration = Duration::from_millis(50);
/// A thread that waits drives only if something has come in the last so many nanoseconds.
const LATELY: u64 = 100_000_000;

impl Driver for Exchange {
    fn catch_up(&self) -> bool {
        if self.driving.load(Ordering::SeqCst) || !self.driven_lately() {
            return false;
        }
        let Ok(mut role) = self.role.try_lock() else { return false };
        self.wake_attendant();
        let before = self.heard_at.load(Ordering::Relaxed);
        self.receive(&mut role, &|| false);
        self.driven_at.store(now(), Ordering::SeqCst);
        self.heard_at.load(Ordering::Relaxed) != before
    }

    fn drive(
        &self,
        limit: Duration,
        news: &dyn Fn() -> bool,
        asleep: &dyn Fn(bool),
    ) -> Option<Woken> {
        if now() - self.heard_at.load(Ordering::Relaxed) > LATELY {
            return None;
        }
        let mut role = match self.role.try_lock() {
            Ok(role) => role,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let router = role.router.as_ref()?.fd;
        self.driving.store(true, Ordering::SeqCst);
        self.wake_attendant();
        let deadline = Instant::now() + limit;
        let woken = loop {
            if !role.drained && self.receive(&mut role, news) {
                if news() {
                    break Woken::Rung;
                }
                continue;
            }
            asleep(true);
            let left = deadline.saturating_duration_since(Instant::now());
            let woken = if news() { Woken::Rung } else { self.sleep(router, left) };
            asleep(false);
            role.drained = false;
            if woken != Woken::Rung || news() {
                break if news() { Woken::Rung } else { woken };
            }
        };
        self.driven_at.store(now(), Ordering::SeqCst);
        self.driving.store(false, Ordering::SeqCst);
        Some(woken)
    }

    fn poke(&self) {
        self.poke_driver();
    }

    fn stand_in(&self) {
        let left = self.left_at.load(Ordering::Relaxed);
        if left == 0 || now() - left < AWAY.as_nanos() as u64 {
            return;
        }
        if let Ok(mut role) = self.role.try_lock() {
            while self.receive(&mut role, &|| false) {}
        }
        self.acknowledge();
    }
}

impl Exchange {
    /// With the role taken over: the network thread may sleep until the socket wakes it. Who reads
    /// first takes that news from the other, and when this thread is gone nobody would be woken
    /// any more. Awake, it looks in once per `GRACE`.
    fn wake_attendant(&self) {
        if self.attending.load(Ordering::Relaxed) {
            self.core.poke();
        }
    }

    pub(super) fn poke_driver(&self) {
        // SAFETY: writes eight bytes to our own eventfd; a full counter is as good as a write.
        unsafe { libc::write(self.alarm.as_raw_fd(), 1u64.to_ne_bytes().as_ptr().cast(), 8) };
    }

    /// Sleep until the ROUTER has something, or somebody pokes.
    fn sleep(&self, router: i32, limit: Duration) -> Woken {
        let alarm = self.alarm.as_raw_fd();
        let mut fds =
            [router, alarm].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        let limit = libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: limit.subsec_nanos() as libc::c_long,
        };
        // SAFETY: two descriptors that stay open meanwhile; no mask of signals.
        let ready = unsafe { libc::ppoll(fds.as_mut_ptr(), 2, &limit, std::ptr::null()) };
        if fds[1].revents != 0 {
            let mut count = [0u8; 8];
            // SAFETY: reads the eventfd's counter into eight bytes of ours.
            unsafe { libc::read(alarm, count.as_mut_ptr().cast(), 8) };
        }
        match ready {
            0 => Woken::Timeout,
            -1 => Woken::Signal,
            _ => Woken::Rung,
        }
    }

    fn driven_lately(&self) -> bool {
        now() - self.driven_at.load(Ordering::SeqCst) < GRACE.as_nanos() as u64
    }

    // ---- the network thread ----

    /// `tend` returns when `fd` is readable.
    pub fn watch(&self, fd: i32) {
        self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN);
    }

    /// Not any more; before the descriptor is closed.
    pub fn unwatch(&self, fd: i32) {
        self.control(libc::EPOLL_CTL_DEL, fd, 0);
    }

    fn control(&self, operation: i32, fd: i32, events: i32) {
        let mut event = libc::epoll_event { events: events as u32, u64: fd as u64 };
        // SAFETY: an epoll instance of ours, and an event that it copies.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) };
    }

    /// Make `tend` return: there is something to look at in Python.
    pub fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        self.core.poke();
    }

    /// Receive (if nobody drives) and acknowledge, for at most `limit`, until there is something
    /// to do in Python: news, or watched descriptors that are ready. Those are returned. For one
    /// thread only.
    pub fn tend(&self, limit: Duration) -> Vec<i32> {
        self.left_at.store(0, Ordering::Relaxed);
        let ready = self.tend_until(Instant::now() + limit);
        self.left_at.store(now(), Ordering::Relaxed);
        ready
    }

    fn tend_until(&self, deadline: Instant) -> Vec<i32> {
        loop {
            // First what takes the pokes, then what a poke may undo: see `drive`.
            self.acknowledge();
            let (attends, more) = self.attend();
            if self.rung.swap(false, Ordering::SeqCst) || self.has_news() {
                return Vec::new();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let ready = self.ready(match (attends, more) {
                (true, true) => Duration::ZERO,
                (true, false) => left,
                (false, _) => left.min(GRACE),
            });
            if !ready.is_empty() || (left.is_zero() && !more) {
                return ready;
            }
        }
    }

    /// Receive if nobody drives: whether that is so, and whether there is more.
    fn attend(&self) -> (bool, bool) {
        let free = !self.driving.load(Ordering::SeqCst) && !self.driven_lately();
        let role = free.then(|| self.role.try_lock().ok()).flatten();
        let attends = role.is_some();
        let fd = self.router_fd.load(Ordering::Relaxed);
        // While somebody drives, the socket must not wake this thread as well. To true only with
        // the role: `drive` must see it.
        if attends != self.attending.swap(attends, Ordering::Relaxed) && fd >= 0 {
            let events = if attends { libc::EPOLLIN } else { 0 };
            self.control(libc::EPOLL_CTL_MOD, fd, events);
        }
        (attends, role.is_some_and(|mut role| self.receive(&mut role, &|| false)))
    }

    /// The watched descriptors of Python's that are ready, within `limit`.
    fn ready(&self, limit: Duration) -> Vec<i32> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
        // Rounded up, or the last millisecond would be spent in a loop.
        let limit = limit.as_micros().div_ceil(1000).min(60_000) as i32;
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: room for 16 events; a signal ends it early, which is no harm.
        let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), 16, limit) };
        let own = [self.router_fd.load(Ordering::Relaxed), self.core.event_fd()];
        events[..count.max(0) as usize]
            .iter()
            .map(|event| event.u64 as i32)
            .filter(|fd| !own.contains(fd))
            .collect()
    }
}
