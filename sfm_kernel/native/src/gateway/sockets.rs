//! A gateway's TCP sockets, their options and what the kernel reports about them.

use std::io;
use std::mem::size_of;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, RawFd};

use crate::event_fd::owned;
use crate::tcp_info;

/// From the kernel's uapi/linux/mptcp.h, which the crate libc does not have.
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_INFO: libc::c_int = 1;
const MPTCP_FLAGS_AT: usize = 4;
const MPTCP_FALLBACK: u32 = 1;
const SO_MAX_PACING_RATE: libc::c_int = 47;
const TCP_CC_INFO: libc::c_int = 26;

/// Bytes of a process that wait in the kernel while the gateway does not read; the kernel takes
/// twice as many.
const PROCESS_BUFFER: libc::c_int = 128 << 10;
/// A vanished machine is noticed after 10 s, as by the directory's server.
const KEEPALIVE: [(libc::c_int, libc::c_int); 3] =
    [(libc::TCP_KEEPIDLE, 4), (libc::TCP_KEEPINTVL, 2), (libc::TCP_KEEPCNT, 3)];

/// A socket of TCP, or of MPTCP if `mptcp` is set and the kernel has it.
fn socket(address: &SocketAddr, mptcp: bool) -> io::Result<std::os::fd::OwnedFd> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    if mptcp {
        // SAFETY: the system call takes numbers only, and touches no memory.
        if let Ok(fd) = owned(unsafe { libc::socket(family, kind, libc::IPPROTO_MPTCP) }) {
            return Ok(fd);
        }
    }
    // SAFETY: the system call takes numbers only, and touches no memory.
    owned(unsafe { libc::socket(family, kind, libc::IPPROTO_TCP) })
}

/// The kernel's form of an address, and its length.
fn raw(address: &SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all zero is an address of no family.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let to = &raw mut storage;
    let length = match address {
        SocketAddr::V4(address) => {
            let raw_address = libc::sockaddr_in {
                sin_family: libc::AF_INET as _,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: a sockaddr_storage has room for every address, and is aligned for it.
            unsafe { to.cast::<libc::sockaddr_in>().write(raw_address) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(address) => {
            let raw_address = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as _,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            // SAFETY: a sockaddr_storage has room and alignment for an address of any family.
            unsafe { to.cast::<libc::sockaddr_in6>().write(raw_address) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as libc::socklen_t)
}

/// Listens at an address; non-blocking.
pub fn listen(address: &SocketAddr, mptcp: bool, backlog: i32) -> io::Result<TcpListener> {
    let fd = socket(address, mptcp)?;
    set(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1i32)?;
    let (storage, length) = raw(address);
    // SAFETY: a socket of ours, and an address of that length.
    unsafe {
        if libc::bind(fd.as_raw_fd(), (&raw const storage).cast(), length) != 0
            || libc::listen(fd.as_raw_fd(), backlog) != 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: a listening socket, which nobody else owns.
    Ok(unsafe { TcpListener::from_raw_fd(fd.into_raw_fd()) })
}

/// Begin a connection; the socket becomes writable when it is established or has failed.
pub fn connect(address: &SocketAddr, mptcp: bool) -> io::Result<TcpStream> {
    let fd = socket(address, mptcp)?;
    let (storage, length) = raw(address);
    // SAFETY: the call reads `length` bytes of the address, which lives until it returns.
    if unsafe { libc::connect(fd.as_raw_fd(), (&raw const storage).cast(), length) } != 0 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINPROGRESS) {
            return Err(error);
        }
    }
    // SAFETY: a stream socket, which nobody else owns.
    Ok(unsafe { TcpStream::from_raw_fd(fd.into_raw_fd()) })
}

fn set<T>(fd: RawFd, level: libc::c_int, name: libc::c_int, value: T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads so many bytes there.
    match unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn get<const N: usize>(fd: RawFd, level: libc::c_int, name: libc::c_int) -> Option<[u8; N]> {
    let mut value = [0; N];
    let mut length = N as libc::socklen_t;
    // SAFETY: the kernel writes at most so many bytes there.
    let failed =
        unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &mut length) };
    (failed == 0).then_some(value)
}

/// Options of every connection: small frames go at once, and a vanished machine is noticed.
pub fn prepare(stream: &TcpStream) {
    // Without these options the connection is slower, not wrong.
    let _ = stream.set_nodelay(true);
    let _ = set(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1i32);
    for (name, value) in KEEPALIVE {
        let _ = set(stream.as_raw_fd(), libc::IPPROTO_TCP, name, value);
    }
}

/// The properties of a wide-area connection, read back from the kernel.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub algorithm: String,
    /// Whether it is MPTCP; None if that was not requested.
    pub mptcp: Option<bool>,
    /// Bytes per second; None: not limited, or unknown.
    pub pacing: Option<u64>,
}

/// Give a wide-area connection its congestion control.
pub fn prepare_wide(stream: &TcpStream, algorithm: &str) {
    let _ = tcp_info::set_congestion(stream.as_raw_fd(), algorithm);
}

/// Limit its rate in bytes per second; returns the kernel's value, see `Given`.
pub fn pace(stream: &TcpStream, rate: u64) -> Option<u64> {
    let _ = set(stream.as_raw_fd(), libc::SOL_SOCKET, SO_MAX_PACING_RATE, rate);
    pacing(stream.as_raw_fd())
}

fn pacing(fd: RawFd) -> Option<u64> {
    let rate = get::<8>(fd, libc::SOL_SOCKET, SO_MAX_PACING_RATE).map(u64::from_ne_bytes);
    rate.filter(|&rate| rate != 0 && rate != u64::MAX && rate != u64::from(u32::MAX))
}

/// Limit what the kernel receives of a process: the rest waits at the process, which can put frames
/// ahead of it.
pub fn prepare_process(stream: &TcpStream) {
    let _ = set(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, PROCESS_BUFFER);
}

/// Read the properties back from the kernel.
pub fn given(stream: &TcpStream, mptcp: bool) -> Given {
    let fd = stream.as_raw_fd();
    Given {
        algorithm: tcp_info::congestion(fd).unwrap_or_default(),
        mptcp: mptcp.then(|| is_mptcp(fd)),
        pacing: pacing(fd),
    }
}

/// Whether it is MPTCP, and has not fallen back to TCP.
fn is_mptcp(fd: RawFd) -> bool {
    let info = get::<64>(fd, SOL_MPTCP, MPTCP_INFO);
    info.is_some_and(|info| {
        let flags = &info[MPTCP_FLAGS_AT..MPTCP_FLAGS_AT + 4];
        u32::from_ne_bytes(flags.try_into().expect("4")) & MPTCP_FALLBACK == 0
    })
}

/// Limit the unsent bytes in the kernel: they are in order, and no scheduler can change that.
pub fn set_unsent(stream: &TcpStream, bytes: u32) {
    let _ = set(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes);
}

/// Whether BBR still searches for the rate: `tcp_bbr_info` has its gain, in 256ths.
pub fn is_starting(stream: &TcpStream) -> bool {
    const GAIN_AT: usize = 12;
    const PROBING: u32 = 256 * 5 / 4;
    let fd = stream.as_raw_fd();
    let info = get::<20>(fd, libc::IPPROTO_TCP, TCP_CC_INFO);
    tcp_info::congestion(fd).is_ok_and(|name| name == "bbr")
        && info.is_some_and(|info| {
            let gain = &info[GAIN_AT..GAIN_AT + 4];
            u32::from_ne_bytes(gain.try_into().expect("4")) > PROBING
        })
}

/// Bytes that the kernel holds and the other side has not acknowledged.
pub fn in_kernel(stream: &TcpStream) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes a number there (SIOCOUTQ has the value of TIOCOUTQ).
    unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
    bytes.max(0) as u64
}

/// Write several buffers one after the other; returns the number of bytes taken.
pub fn write(stream: &TcpStream, buffers: &[libc::iovec]) -> io::Result<usize> {
    // SAFETY: all zero is a message with nothing in it.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = buffers.as_ptr().cast_mut();
    message.msg_iovlen = buffers.len() as _;
    // SAFETY: the kernel reads the buffers, which the caller borrows.
    let taken = unsafe { libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
    usize::try_from(taken).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_options_can_be_read_back() {
        let listener = listen(&"127.0.0.1:0".parse().unwrap(), false, 5).unwrap();
        let stream = connect(&listener.local_addr().unwrap(), false).unwrap();
        prepare(&stream);
        prepare_wide(&stream, "reno");
        assert_eq!(pace(&stream, 12_500_000), Some(12_500_000));
        let given = given(&stream, false);
        assert_eq!((given.algorithm.as_str(), given.mptcp), ("reno", None));
        assert_eq!(given.pacing, Some(12_500_000));
        assert_eq!(in_kernel(&stream), 0);
    }

    #[test]
    fn addresses_of_both_families_are_understood() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = listen(&address.parse().unwrap(), false, 5) else {
                assert!(address.starts_with('['), "a machine without IPv6");
                continue;
            };
            let listening = listener.local_addr().unwrap();
            let stream = connect(&listening, false).unwrap();
            assert_eq!(stream.peer_addr().unwrap(), listening);
        }
    }
}
