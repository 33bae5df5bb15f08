//! Waits for many connections at once: epoll, an alarm for other threads, and a timer.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

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
    pub writable: bool,
}

/// The descriptor that a system call returned, or its error.
pub fn owned(result: libc::c_int) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

/// Edge-triggered: each event comes once, and its receiver remembers it.
pub struct Poll {
    epoll: OwnedFd,
    alarm: OwnedFd,
    clock: OwnedFd,
}

impl Poll {
    pub fn new() -> io::Result<Poll> {
        // SAFETY: system calls without pointers.
        let (epoll, alarm, clock) = unsafe {
            (
                owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))?,
                owned(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?,
                owned(libc::timerfd_create(
                    libc::CLOCK_MONOTONIC,
                    libc::TFD_CLOEXEC | libc::TFD_NONBLOCK,
                ))?,
            )
        };
        let poll = Poll { epoll, alarm, clock };
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

    /// For another thread: ends the current wait, or the next one.
    pub fn alarm(&self) -> io::Result<OwnedFd> {
        self.alarm.try_clone()
    }

    /// Report `Id::CLOCK` after this time; None: never.
    pub fn set_clock(&self, after: Option<Duration>) {
        let after = after.map_or(Duration::ZERO, |one| one.max(Duration::from_nanos(1)));
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
                drain(&self.alarm);
            } else if id == Id::CLOCK {
                drain(&self.clock);
            }
            let over = libc::EPOLLERR | libc::EPOLLHUP;
            let readable = events & (libc::EPOLLIN | libc::EPOLLRDHUP | over) != 0;
            Event { id, readable, writable: events & (libc::EPOLLOUT | over) != 0 }
        }));
    }
}

fn drain(fd: &OwnedFd) {
    let mut count = 0u64;
    // SAFETY: reads the counter into eight bytes of ours; empty is fine.
    unsafe { libc::read(fd.as_raw_fd(), (&raw mut count).cast(), 8) };
}

/// Ring an alarm from `Poll::alarm`.
pub fn ring(alarm: &OwnedFd) {
    let one = 1u64;
    // SAFETY: writes eight bytes to an eventfd of ours; a full counter is as good as a write.
    unsafe { libc::write(alarm.as_raw_fd(), (&raw const one).cast(), 8) };
}
