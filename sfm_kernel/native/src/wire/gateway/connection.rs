//! One TCP connection: sends frames in order.

use std::io::ErrorKind;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

use super::socket::Socket;
use crate::sync::lock;
use crate::wire::send_queue::SendQueue;
use crate::wire::tcp_state::TcpState;
use crate::wire::Wire;

/// Frames in one system call.
const FRAMES_PER_WRITE: usize = 16;

/// Thread-safe. Senders queue frames; what the kernel does not take at once is written when the
/// receiving thread (the network thread, or one that drives) sees that there is room.
pub struct Connection {
    /// Unique among all connections of an endpoint, past and present.
    pub id: u64,
    pub socket: Socket,
    /// The connection has ended, or another one has replaced it.
    ended: AtomicBool,
    /// It leads to a gateway, and through that to several peers.
    pub shared: bool,
    /// A frame has come that the process or gateway at the other end has sealed.
    confirmed: AtomicBool,
    pub tcp: TcpState,
    epoll: RawFd,
    out: Mutex<Out>,
}

#[derive(Default)]
struct Out {
    queue: SendQueue,
    /// epoll reports when there is room.
    waits_for_room: bool,
    /// A frame may have gone in part: nothing can follow it.
    failed: bool,
    /// The error that the kernel has reported; it reports each only once.
    error: Option<i32>,
}

impl Connection {
    /// `epoll` reports the connection's events under `id`. `waits_for_room`: report also when the
    /// connection is made, with nothing queued.
    pub fn new(
        id: u64,
        socket: Socket,
        epoll: RawFd,
        waits_for_room: bool,
        shared: bool,
    ) -> Connection {
        let connection = Connection {
            id,
            socket,
            ended: AtomicBool::new(false),
            shared,
            confirmed: AtomicBool::new(false),
            tcp: TcpState::default(),
            epoll,
            out: Mutex::new(Out { waits_for_room, ..Out::default() }),
        };
        connection.watch(libc::EPOLL_CTL_ADD, waits_for_room);
        connection
    }

    fn watch(&self, operation: i32, room: bool) {
        let events = libc::EPOLLIN | if room { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event { events: events as u32, u64: self.id };
        // SAFETY: an epoll instance and a socket of ours, and an event that it copies.
        unsafe { libc::epoll_ctl(self.epoll, operation, self.socket.raw(), &mut event) };
    }

    /// Write queued frames: there is room.
    pub fn flush(&self) {
        self.write(&mut lock(&self.out));
    }

    fn write(&self, out: &mut Out) {
        while !out.queue.is_empty() && !self.has_ended() {
            let mut slices =
                [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; FRAMES_PER_WRITE];
            let mut count = 0;
            for (slice, rest) in slices.iter_mut().zip(out.queue.pieces()) {
                *slice =
                    libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() };
                count += 1;
            }
            match self.tcp.watch(self.socket.raw(), || self.socket.send(&slices[..count])) {
                Ok(sent) => out.queue.remove(sent),
                // Also while the connection is being made.
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The reader of the socket sees the end, and judges it.
                Err(error) => {
                    match error.raw_os_error() {
                        // The stream would go on with a frame missing.
                        Some(libc::ENOBUFS | libc::ENOMEM) => self.socket.break_off(),
                        Some(libc::EPIPE) => {} // of an end that the kernel has reported before
                        code => out.error = code,
                    }
                    out.failed = true;
                    return out.queue.clear();
                }
            }
        }
        let waits_for_room = !out.queue.is_empty();
        if waits_for_room != std::mem::replace(&mut out.waits_for_room, waits_for_room) {
            self.watch(libc::EPOLL_CTL_MOD, waits_for_room);
        }
    }

    /// The error that a write has met, if any.
    pub fn error(&self) -> Option<i32> {
        lock(&self.out).error
    }

    /// Whether the connection is made; if not, `error` says why.
    pub fn is_made(&self) -> bool {
        let error = self.socket.failure();
        if let Some(error) = &error {
            lock(&self.out).error = error.raw_os_error();
        }
        error.is_none()
    }

    /// Whether the kernel has taken everything.
    pub fn is_flushed(&self) -> bool {
        lock(&self.out).queue.is_empty()
    }

    pub fn confirm(&self, is_confirmed: bool) {
        self.confirmed.store(is_confirmed, Ordering::Relaxed);
    }

    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Stop using it. The peer sees its end; the socket closes when the last owner drops it.
    pub fn end(&self) {
        let mut out = lock(&self.out);
        if !self.ended.swap(true, Ordering::AcqRel) {
            out.queue.clear();
            self.socket.break_off();
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            // SAFETY: the call reads an event that lives until it returns.
            unsafe {
                libc::epoll_ctl(self.epoll, libc::EPOLL_CTL_DEL, self.socket.raw(), &mut event)
            };
        }
    }
}

impl Wire for Connection {
    fn id(&self) -> u64 {
        self.id
    }

    fn is_shared(&self) -> bool {
        self.shared
    }

    fn is_confirmed(&self) -> bool {
        self.confirmed.load(Ordering::Relaxed)
    }

    fn with_queue(&self, change: impl FnOnce(&mut SendQueue)) {
        let mut out = lock(&self.out);
        if self.has_ended() || out.failed {
            return;
        }
        change(&mut out.queue);
        if !out.waits_for_room {
            self.write(&mut out);
        }
    }

    fn break_off(&self) {
        self.socket.break_off();
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
    use std::sync::Arc;

    use super::*;

    fn epoll() -> OwnedFd {
        // SAFETY: the descriptor is new, and nobody else owns it.
        unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) }
    }

    fn pair(epoll: &OwnedFd) -> (Connection, TcpStream) {
        let (stream, peer) = crate::tcp_info::tests::pair();
        stream.set_nonblocking(true).unwrap();
        // SAFETY: the stream gives its descriptor away, so the socket alone owns it.
        let socket = unsafe { Socket::own(stream.into_raw_fd()) };
        (Connection::new(2, socket, epoll.as_raw_fd(), false, false), peer)
    }

    #[test]
    fn the_error_of_a_failed_connection_is_known_even_if_a_write_met_it() {
        let epoll = epoll();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // closed
        for probe in [true, false] {
            let socket = Socket::connect(&format!("tcp://{address}")).unwrap();
            let connection = Connection::new(2, socket, epoll.as_raw_fd(), true, false);
            let mut ready = libc::pollfd { fd: connection.socket.raw(), events: 0, revents: 0 };
            // SAFETY: the array has one descriptor, which stays open until the call returns.
            assert_eq!(unsafe { libc::poll(&mut ready, 1, 60_000) }, 1);
            if probe {
                assert!(!connection.is_made());
            } else {
                connection.put(Arc::new(vec![0; 10]));
                connection.flush();
            }
            assert_eq!(connection.error(), Some(libc::ECONNREFUSED), "{probe}");
        }
    }

    #[test]
    fn nothing_follows_a_frame_that_went_in_part() {
        let epoll = epoll();
        let (connection, peer) = pair(&epoll);
        while connection.is_flushed() {
            connection.put(Arc::new(vec![0; 50_000]));
        }
        assert!(lock(&connection.out).queue.has_begun());
        drop(peer); // it resets, with unread bytes
        for _ in 0..3 {
            connection.flush();
            connection.put(Arc::new(vec![0; 10]));
        }
        assert!(connection.is_flushed() && !lock(&connection.out).queue.has_begun());
    }
}
