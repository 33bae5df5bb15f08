//! Sockets; waiting for them makes progress with messages.

use std::io;
use std::os::fd::RawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

use crate::engine::{self, report, From, What};

/// Milliseconds between two calls of `advance`: waiting for a socket takes longer.
const PAUSE: i32 = 5;

/// Wait until a socket can be read from (POLLIN) or written to. Observers see one that waits for
/// another program as a call that polls: processes that they do not know may end it.
pub fn wait_for(fd: RawFd, events: i16) -> io::Result<()> {
    let waited = wait_seen(fd, events);
    if let Some(engine) = engine::running() {
        engine.poll_succeeded();
    }
    waited
}

fn wait_seen(fd: RawFd, events: i16) -> io::Result<()> {
    let mut entry = libc::pollfd { fd, events, revents: 0 };
    let meets = matches!(What::Making.exactly(), What::CommAccept | What::CommConnect);
    loop {
        if let Some(engine) = engine::running() {
            engine.advance();
        }
        // SAFETY: one entry.
        match unsafe { libc::poll(&mut entry, 1, PAUSE) } {
            0 => {
                if let Some(engine) = engine::running().filter(|_| meets) {
                    engine.poll_failed(|| report::some(vec![], From::Nobody));
                }
            }
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => return Ok(()),
        }
    }
}

/// Send all of these bytes.
pub fn send(fd: RawFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        wait_for(fd, libc::POLLOUT)?;
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: reads the bytes.
        let sent = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) };
        bytes = &bytes[moved(sent)?..];
    }
    Ok(())
}

/// Receive exactly `length` bytes.
pub fn receive(fd: RawFd, length: usize) -> io::Result<Vec<u8>> {
    let (mut bytes, mut done) = (vec![0; length], 0);
    while done < length {
        wait_for(fd, libc::POLLIN)?;
        let rest = &mut bytes[done..];
        // SAFETY: room for as many.
        let got =
            unsafe { libc::recv(fd, rest.as_mut_ptr().cast(), rest.len(), libc::MSG_DONTWAIT) };
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        done += moved(got)?;
    }
    Ok(bytes)
}

fn moved(result: isize) -> io::Result<usize> {
    usize::try_from(result).or_else(|_| match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        error => Err(error),
    })
}

/// The address of this user's socket for this `purpose`; other users have other addresses.
pub fn address(purpose: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("sfm-mpi-{}-{purpose}", user()))
}

/// True if a process of the same user is at the other end.
pub fn is_ours(fd: RawFd) -> bool {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let (to, option) = ((&raw mut peer).cast(), libc::SO_PEERCRED);
    // SAFETY: room for the answer.
    let known = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, option, to, &mut length) };
    known == 0 && peer.uid == user()
}

fn user() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::geteuid() }
}
