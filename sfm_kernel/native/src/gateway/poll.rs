//! Waits for many connections at once: epoll, an alarm for other threads, and a timer.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use crate::event_fd::{drain, owned, EventFd};

/// A connection of a gateway: its index in the table, and a generation that makes it unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u64);

impl Id {
    pub const NONE: Id = Id(u64::MAX);
    pub const LISTENER: Id = Id(u64::MAX - 1);
    pub const ALARM: Id = Id(u64::MAX - 2);
    pub const CLOCK: Id = Id(u64::MAX - 3);

    pub fn new(index: usize, generation: u32) -> Id {
        Id(u64::from(generation) << 32 | index as u64)
    }

    pub fn index(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }
}

/// The state changes of a connection since its last event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub id: Id,
    pub readable: bool,
    /// The other side sends nothing more, or the connection is over: there is an end to be read.
    pub ends: bool,
    pub writable: bool,
}

/// Edge-triggered: each event comes once, and its receiver remembers it.
pub struct Poll {
    epoll: OwnedFd,
    /// For other threads: ends the current wait, or the next one.
    pub alarm: Arc<EventFd>,
    clock: OwnedFd,
}

impl Poll {
    pub fn new() -> io::Result<Poll> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: the system calls take numbers only, and touch no memory.
        let (epoll, clock) = unsafe {
            (
                owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))?,
                owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?,
            )
        };
        let poll = Poll { epoll, alarm: Arc::new(EventFd::new()?), clock };
        poll.add(poll.alarm.as_raw_fd(), Id::ALARM, libc::EPOLLIN)?;
        poll.add(poll.clock.as_raw_fd(), Id::CLOCK, libc::EPOLLIN)?;
        Ok(poll)
    }

    /// Report these events of a descriptor until it is closed.
    pub fn add(&self, fd: RawFd, id: Id, events: libc::c_int) -> io::Result<()> {
        let events = events | libc::EPOLLET;
        let mut event = libc::epoll_event { events: events as u32, u64: id.0 };
        let add = libc::EPOLL_CTL_ADD;
        // SAFETY: an epoll instance of ours, and an event that it copies.
        match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), add, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Report `Id::CLOCK` after this time; None: never.
    pub fn set_clock(&self, after: Option<Duration>) {
        let after = after.map_or(Duration::ZERO, |after| after.max(Duration::from_nanos(1)));
        // SAFETY: all zero is a timer that is not set.
        let mut time: libc::itimerspec = unsafe { std::mem::zeroed() };
        time.it_value.tv_sec = after.as_secs() as _;
        time.it_value.tv_nsec = after.subsec_nanos() as _;
        // SAFETY: a timer of ours, and a time that it copies.
        unsafe { libc::timerfd_settime(self.clock.as_raw_fd(), 0, &time, std::ptr::null_mut()) };
    }

    /// Wait for at most `limit` milliseconds, and put the events into `out`.
    pub fn wait(&self, limit: i32, out: &mut Vec<Event>) {
        const MAX_EVENTS: usize = 128;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MAX_EVENTS];
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: the kernel writes at most so many events there.
        let count =
            unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), MAX_EVENTS as i32, limit) }
                .max(0);
        out.clear();
        out.extend(events[..count as usize].iter().map(|event| {
            let (id, events) = (Id(event.u64), event.events as i32);
            if id == Id::ALARM {
                drain(&*self.alarm);
            } else if id == Id::CLOCK {
                drain(&self.clock);
            }
            let over = libc::EPOLLERR | libc::EPOLLHUP;
            let ends = events & (libc::EPOLLRDHUP | over) != 0;
            let readable = ends || events & libc::EPOLLIN != 0;
            Event { id, readable, ends, writable: events & (libc::EPOLLOUT | over) != 0 }
        }));
    }
}
