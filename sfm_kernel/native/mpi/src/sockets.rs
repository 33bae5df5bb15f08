//! Sockets.

use std::ffi::c_int;
use std::io;
use std::os::fd::RawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::time::Duration;

/// Waits until a socket can be read from (POLLIN) or written to (POLLOUT).
pub type Wait = fn(RawFd, i16) -> io::Result<()>;

/// Wait, and do nothing else meanwhile.
pub fn block(fd: RawFd, events: i16) -> io::Result<()> {
    while !is_ready(fd, events, -1)? {}
    Ok(())
}

/// True if a socket can be read from or written to; waits up to `limit` milliseconds for it, or
/// without limit (-1).
pub fn is_ready(fd: RawFd, events: i16, limit: c_int) -> io::Result<bool> {
    let mut entry = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: one entry, which lives until the call returns.
    match unsafe { libc::poll(&mut entry, 1, limit) } {
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
        ready => Ok(ready > 0),
    }
}

/// True if something has come; waits up to `limit` for it.
pub fn has_news(fd: RawFd, limit: Duration) -> bool {
    is_ready(fd, libc::POLLIN, limit.as_millis() as c_int).is_ok_and(|ready| ready)
}

/// The next message of a socket that keeps messages apart.
pub fn message(fd: RawFd, wait: Wait) -> io::Result<Option<String>> {
    wait(fd, libc::POLLIN)?;
    let mut message = vec![0; 1 << 16];
    // SAFETY: the buffer has room for as many bytes.
    let length = unsafe { libc::recv(fd, message.as_mut_ptr().cast(), message.len(), 0) };
    message.truncate(length.max(0) as usize);
    Ok(Some(String::from_utf8_lossy(&message).into_owned()).filter(|text| !text.is_empty()))
}

/// Send all of these bytes.
pub fn send(fd: RawFd, mut bytes: &[u8], wait: Wait) -> io::Result<()> {
    while !bytes.is_empty() {
        wait(fd, libc::POLLOUT)?;
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: the call reads the bytes, which live until it returns.
        let sent = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) };
        bytes = &bytes[moved(sent)?..];
    }
    Ok(())
}

/// Receive exactly `length` bytes.
pub fn receive(fd: RawFd, length: usize, wait: Wait) -> io::Result<Vec<u8>> {
    let (mut bytes, mut done) = (vec![0; length], 0);
    while done < length {
        wait(fd, libc::POLLIN)?;
        let rest = &mut bytes[done..];
        // SAFETY: the rest of the buffer has room for as many bytes.
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
    // SAFETY: the answer and its length are variables of this function, of the stated size.
    let known = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, option, to, &mut length) };
    known == 0 && peer.uid == user()
}

fn user() -> u32 {
    // SAFETY: the call takes no arguments, and cannot fail.
    unsafe { libc::geteuid() }
}
