//! TCP sockets: none of these calls blocks.

use std::io::{Error, ErrorKind, Result};
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::wire::forked::{note_descriptor, Note};

/// A TCP socket, closed when dropped.
pub struct Socket {
    fd: OwnedFd,
    _note: Note,
}

impl Socket {
    /// # Safety
    /// `fd` is a socket that nobody else owns.
    pub(super) unsafe fn own(fd: RawFd) -> Socket {
        // SAFETY: the caller promises an open descriptor that nobody else owns.
        Socket { fd: unsafe { OwnedFd::from_raw_fd(fd) }, _note: note_descriptor(fd) }
    }

    /// Begin to connect to "tcp://IP:port".
    pub fn connect(address: &str) -> Result<Socket> {
        let to = parse(address)?;
        let flags = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a plain system call, whose result is checked.
        let fd = check(unsafe { libc::socket(libc::AF_INET, flags, 0) })?;
        // SAFETY: the descriptor is new, and nobody else owns it.
        let socket = unsafe { Socket::own(fd) };
        socket.prepare();
        // SAFETY: plain numbers, of which zero is one.
        let mut name: libc::sockaddr_in = unsafe { zeroed() };
        name.sin_family = libc::AF_INET as u16;
        name.sin_port = to.port().to_be();
        name.sin_addr.s_addr = u32::from(*to.ip()).to_be();
        let length = size_of::<libc::sockaddr_in>() as u32;
        // SAFETY: an address of this length, which the kernel copies.
        match check(unsafe { libc::connect(fd, (&raw const name).cast(), length) }) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(socket),
        }
    }

    /// Send small frames without delay. The kernel also probes an idle peer's kernel every second,
    /// so that a silent connection is noticed. (It ends a connection only after two minutes.)
    fn prepare(&self) {
        self.set(libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
        self.set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1);
        self.set(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 2);
        self.set(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 1);
        self.set(libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 120);
    }

    fn set(&self, level: i32, option: i32, value: i32) {
        let length = size_of::<i32>() as u32;
        // SAFETY: an int, which the kernel copies. A socket that lacks an option works without it.
        unsafe { libc::setsockopt(self.raw(), level, option, (&raw const value).cast(), length) };
    }

    /// Limit the bytes that the kernel takes before it can send them.
    pub fn limit_unsent(&self, bytes: i32) {
        self.set(libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes);
    }

    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Send what the kernel takes now of several slices; returns the number of bytes.
    pub fn send(&self, pieces: &[libc::iovec]) -> Result<usize> {
        loop {
            // SAFETY: plain numbers and pointers, of which zero is one.
            let mut message: libc::msghdr = unsafe { zeroed() };
            message.msg_iov = pieces.as_ptr().cast_mut();
            message.msg_iovlen = pieces.len() as _;
            // SAFETY: the pieces are valid memory, which the kernel reads.
            let sent = unsafe {
                libc::sendmsg(self.raw(), &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            };
            match check_size(sent) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    /// Receive what has come; returns 0 at the end of the connection.
    pub fn receive(&self, to: &mut [u8]) -> Result<usize> {
        loop {
            let (at, room) = (to.as_mut_ptr().cast(), to.len());
            // SAFETY: the buffer has room for `room` bytes from `at` on.
            let got = unsafe { libc::recv(self.raw(), at, room, libc::MSG_DONTWAIT) };
            match check_size(got) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    /// The error of an attempt to connect, or of the connection; None if there is none.
    pub fn failure(&self) -> Option<Error> {
        let (mut code, mut length) = (0i32, size_of::<i32>() as u32);
        let to = (&raw mut code).cast();
        // SAFETY: the call writes an int into a variable of this function.
        unsafe { libc::getsockopt(self.raw(), libc::SOL_SOCKET, libc::SO_ERROR, to, &mut length) };
        (code != 0).then(|| Error::from_raw_os_error(code))
    }

    /// End this direction: nothing more is sent.
    pub fn end(&self) {
        // SAFETY: the socket is open, since only `drop` closes it.
        unsafe { libc::shutdown(self.raw(), libc::SHUT_WR) };
    }

    /// End both directions.
    pub fn break_off(&self) {
        // SAFETY: the socket is open, since only `drop` closes it.
        unsafe { libc::shutdown(self.raw(), libc::SHUT_RDWR) };
    }
}

/// Bytes of a TCP socket that the peer's kernel has not acknowledged.
pub fn unacknowledged(socket: RawFd) -> usize {
    let mut bytes = 0i32;
    // SAFETY: room for an int. (SIOCOUTQ has the number of TIOCOUTQ.)
    unsafe { libc::ioctl(socket, libc::TIOCOUTQ, &mut bytes) };
    bytes.max(0) as usize
}

/// The parts of "tcp://IP:port".
pub fn parse(address: &str) -> Result<SocketAddrV4> {
    let parts = address.strip_prefix("tcp://").and_then(|rest| rest.rsplit_once(':'));
    let found = parts.and_then(|(ip, port)| {
        Some(SocketAddrV4::new(ip.parse::<Ipv4Addr>().ok()?, port.parse().ok()?))
    });
    found.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "not a tcp://IP:port address"))
}

fn check(result: i32) -> Result<i32> {
    if result < 0 {
        return Err(Error::last_os_error());
    }
    Ok(result)
}

fn check_size(result: isize) -> Result<usize> {
    usize::try_from(result).map_err(|_| Error::last_os_error())
}
