//! A descriptor that wakes a thread which sleeps in poll or epoll: eventfd(2).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub struct EventFd(OwnedFd);

impl EventFd {
    pub fn new() -> io::Result<EventFd> {
        // SAFETY: the system call takes numbers only, and touches no memory.
        owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).map(EventFd)
    }

    /// Wake the thread that sleeps on it, or that will do so next.
    pub fn ring(&self) {
        // SAFETY: writes eight bytes; a full counter is as good as a write.
        unsafe { libc::write(self.as_raw_fd(), 1u64.to_ne_bytes().as_ptr().cast(), 8) };
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Reset the counter of an eventfd or of a timer: it wakes nobody until it rings again.
pub fn drain(fd: &impl AsRawFd) {
    let mut count = 0u64;
    // SAFETY: reads the counter into eight bytes of ours; empty is fine.
    unsafe { libc::read(fd.as_raw_fd(), (&raw mut count).cast(), 8) };
}

/// The descriptor that a system call returned, or its error.
pub fn owned(result: RawFd) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}
