//! One connection: sends frames in order.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::frame::Header;
use super::now;
use super::report::Warmth;
use super::socket::Socket;
use crate::sync::lock;
use crate::tcp_history::History;
use crate::tcp_info::TcpInfo;

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
    pub confirmed: AtomicBool,
    /// A `Warmth`.
    warmth: AtomicU8,
    epoll: RawFd,
    out: Mutex<Out>,
}

#[derive(Default)]
struct Out {
    queue: VecDeque<Arc<Vec<u8>>>,
    /// Number of frames at the front that nothing may pass: the connection's first frame, and those
    /// put ahead.
    ahead: usize,
    /// Bytes of the first frame that the kernel has taken.
    sent: usize,
    /// epoll reports when there is room.
    waits_for_room: bool,
    /// A frame may have gone in part: nothing can follow it.
    failed: bool,
    /// The error that the kernel has reported; it reports each only once.
    error: Option<i32>,
    /// When something was last written, in nanoseconds; 0: never.
    wrote: u64,
    history: History,
    /// The congestion control that was requested and that the kernel refused.
    refused: String,
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
            warmth: AtomicU8::new(Warmth::Unknown as u8),
            epoll,
            out: Mutex::new(Out { waits_for_room, ahead: 1, ..Out::default() }),
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

    /// Send a frame, now or when there is room.
    pub fn put(&self, frame: Arc<Vec<u8>>) {
        self.add(frame, false);
    }

    /// Send a frame before the queued ones, whose order it need not keep. The first frame of a
    /// connection stays first.
    pub fn put_ahead(&self, frame: Arc<Vec<u8>>) {
        self.add(frame, true);
    }

    /// Remove the queued messages to this peer, except one that has gone in part.
    pub fn withdraw(&self, receiver: u128) {
        let mut out = lock(&self.out);
        let started = usize::from(out.sent > 0);
        let mut waiting = out.queue.split_off(started);
        waiting.retain(|frame| {
            let header = Header::read(frame).expect("frames have headers");
            header.receiver != receiver || !header.class.is_message()
        });
        out.queue.append(&mut waiting);
    }

    fn add(&self, frame: Arc<Vec<u8>>, ahead: bool) {
        let mut out = lock(&self.out);
        if self.has_ended() || out.failed {
            return;
        }
        if ahead {
            let at = out.ahead.max(usize::from(out.sent > 0)).min(out.queue.len());
            out.queue.insert(at, frame);
            out.ahead = at + 1;
        } else {
            out.queue.push_back(frame);
        }
        if !out.waits_for_room {
            self.write(&mut out);
        }
    }

    /// Write queued frames: there is room.
    pub fn flush(&self) {
        self.write(&mut lock(&self.out));
    }

    fn write(&self, out: &mut Out) {
        while !out.queue.is_empty() && !self.has_ended() {
            let mut slices =
                [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; FRAMES_PER_WRITE];
            let mut skip = out.sent;
            let mut count = 0;
            for (slice, frame) in slices.iter_mut().zip(&out.queue) {
                let rest = &frame[std::mem::take(&mut skip)..];
                *slice =
                    libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() };
                count += 1;
            }
            let at = now();
            let silence = if out.wrote == 0 { 0 } else { at.saturating_sub(out.wrote) };
            let (fd, silence) = (self.socket.raw(), Duration::from_nanos(silence));
            match out.history.watch(fd, silence, || self.socket.send(&slices[..count])) {
                Ok(mut sent) => {
                    out.wrote = at;
                    out.history.wrote(sent as u64);
                    sent += std::mem::take(&mut out.sent);
                    while let Some(frame) = out.queue.front().filter(|frame| frame.len() <= sent) {
                        sent -= frame.len();
                        out.queue.pop_front();
                        out.ahead = out.ahead.saturating_sub(1);
                    }
                    out.sent = sent;
                }
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
                    (out.failed, out.sent) = (true, 0);
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

    /// Its means to keep its congestion window.
    pub fn warmth(&self) -> Warmth {
        Warmth::from_u8(self.warmth.load(Ordering::Relaxed))
    }

    /// `refused`: the congestion control that the kernel refused; "" if none.
    pub fn set_warmth(&self, warmth: Warmth, refused: &str) {
        self.warmth.store(warmth as u8, Ordering::Relaxed);
        lock(&self.out).refused = refused.to_owned();
    }

    /// Record what the kernel reports now.
    pub fn sample(&self, info: &TcpInfo) {
        lock(&self.out).history.sample(info);
    }

    /// The connection's history; when something was last written, in nanoseconds, 0 if never; and
    /// the congestion control that the kernel refused.
    pub fn history(&self) -> (History, u64, String) {
        let out = lock(&self.out);
        (out.history.clone(), out.wrote, out.refused.clone())
    }

    /// Whether the kernel has taken everything.
    pub fn is_flushed(&self) -> bool {
        lock(&self.out).queue.is_empty()
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
            // SAFETY: as in `watch`.
            unsafe {
                libc::epoll_ctl(self.epoll, libc::EPOLL_CTL_DEL, self.socket.raw(), &mut event)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

    use super::*;

    fn epoll() -> OwnedFd {
        // SAFETY: a fresh descriptor.
        unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) }
    }

    fn pair(epoll: &OwnedFd) -> (Connection, TcpStream) {
        let (stream, peer) = crate::tcp_info::tests::pair();
        stream.set_nonblocking(true).unwrap();
        // SAFETY: the descriptor is given away.
        let socket = unsafe { Socket::own(stream.into_raw_fd()) };
        (Connection::new(2, socket, epoll.as_raw_fd(), false, false), peer)
    }

    /// Everything that comes out at the other end until the queue is empty.
    fn drain(connection: &Connection, mut peer: TcpStream) -> Vec<u8> {
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            std::io::Read::read_to_end(&mut peer, &mut all).unwrap();
            all
        });
        while !connection.is_flushed() {
            connection.flush();
        }
        connection.end();
        reader.join().unwrap()
    }

    #[test]
    fn frames_put_ahead_pass_all_but_the_first_and_one_that_has_begun() {
        const LARGE: usize = 1_000_000;
        let epoll = epoll();
        let (connection, peer) = pair(&epoll);
        lock(&connection.out).waits_for_room = true; // as while it is being made
        connection.put_ahead(Arc::new(vec![1]));
        connection.put(Arc::new(vec![0; LARGE]));
        connection.put_ahead(Arc::new(vec![2]));
        connection.put_ahead(Arc::new(vec![3]));
        while lock(&connection.out).sent == 0 {
            connection.flush(); // until a large frame has gone in part
            connection.put(Arc::new(vec![0; LARGE]));
        }
        let larges = lock(&connection.out).queue.len();
        connection.put_ahead(Arc::new(vec![4]));
        connection.put_ahead(Arc::new(vec![5]));
        let all = drain(&connection, peer);
        let marks: Vec<_> = (0..all.len()).filter(|&at| all[at] != 0).collect();
        assert_eq!(marks.iter().map(|&at| all[at]).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!(marks[..3], [0, 1, 2]);
        // Behind the frame that had begun, and before all others that waited.
        assert_eq!(all.len() - 1 - marks[4], (larges - 1) * LARGE);
    }

    #[test]
    fn withdraw_removes_one_peers_messages_that_have_not_begun() {
        use super::super::frame::tests::header;
        use super::super::frame::Class;

        let epoll = epoll();
        let (connection, peer) = pair(&epoll);
        let frame = |receiver, class, length: usize| {
            let header = Header { receiver, class, length: length as u32, ..header() };
            let mut bytes = vec![0; header.frame()];
            header.write(&mut bytes);
            Arc::new(bytes)
        };
        while lock(&connection.out).sent == 0 {
            connection.put(frame(7, Class::Bulk, 50_000)); // until a frame has gone in part
        }
        let started = lock(&connection.out).queue.len();
        connection.put(frame(7, Class::Message, 50));
        connection.put(frame(8, Class::Message, 60));
        connection.put(frame(7, Class::Control, 70));
        connection.put(frame(7, Class::Bulk, 50_000));
        connection.withdraw(7);
        connection.put_ahead(frame(7, Class::Resume, 80));
        assert_eq!(lock(&connection.out).queue.len(), 4, "of {started} and 4");
        let (all, mut at, mut came) = (drain(&connection, peer), 0, Vec::new());
        while at < all.len() {
            let header = Header::read(&all[at..]).unwrap();
            at += header.frame();
            came.push((header.receiver, header.length));
        }
        assert_eq!(came[came.len() - 4..], [(7, 50_000), (7, 80), (8, 60), (7, 70)]);
    }

    #[test]
    fn the_error_of_a_failed_connection_is_known_even_if_a_write_met_it() {
        let epoll = epoll();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // closed
        for probe in [true, false] {
            let socket = Socket::connect(&format!("tcp://{address}")).unwrap();
            let connection = Connection::new(2, socket, epoll.as_raw_fd(), true, false);
            let mut ready = libc::pollfd { fd: connection.socket.raw(), events: 0, revents: 0 };
            // SAFETY: one descriptor, which stays open.
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
        assert!(lock(&connection.out).sent > 0);
        drop(peer); // it resets, with unread bytes
        for _ in 0..3 {
            connection.flush();
            connection.put(Arc::new(vec![0; 10]));
        }
        assert!(connection.is_flushed() && lock(&connection.out).sent == 0);
    }
}
