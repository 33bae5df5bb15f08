//! A socket's connections, as libzmq reports them: begun, refused, made, ended.

use std::ffi::c_int;
use std::io::Result;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use super::socket::{name, Socket, SocketKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// TCP has connected.
    Connected(RawFd),
    /// An attempt to connect will be made again, or would be.
    Retried,
    Accepted(RawFd),
    /// A connection waits, and cannot be accepted: there is no descriptor.
    NotAccepted,
    /// An attempt to connect has failed. The errno is not told.
    Closed,
    Disconnected(RawFd),
    /// Messages can flow. Only since libzmq 4.3.
    Greeted(RawFd),
    /// The server does not admit the pair that was shown. Only of `with_refusals`.
    Refused,
}

impl Event {
    /// By libzmq's number, and what it says beside it: a descriptor where there is one.
    fn of(event: u16, value: i32) -> Option<Event> {
        Some(match event {
            0x0001 => Event::Connected(value),
            0x0004 => Event::Retried,
            0x0020 => Event::Accepted(value),
            0x0040 => Event::NotAccepted,
            0x0080 => Event::Closed,
            0x0200 => Event::Disconnected(value),
            0x1000 => Event::Greeted(value),
            0x4000 => Event::Refused,
            _ => return None,
        })
    }
}

/// The events' bits together. Not those of peers that break the protocol: their connections end, too;
/// and libzmq, while it reports them, forgets why, and may leave the connection open, and deaf.
const WANTED: c_int = 0x0001 | 0x0004 | 0x0020 | 0x0040 | 0x0080 | 0x0200 | 0x1000;
const REFUSALS: c_int = 0x4000;

/// A socket with a report of its connections.
pub struct Monitored {
    socket: Socket,
    /// The report's other end; it is closed last, because libzmq waits where nobody reads.
    events: Socket,
}

impl Monitored {
    pub fn new(socket: Socket) -> Result<Monitored> {
        Monitored::reporting(socket, WANTED)
    }

    /// The same for a socket that connects to a server which says no, and not only hangs up.
    pub fn with_refusals(socket: Socket) -> Result<Monitored> {
        Monitored::reporting(socket, WANTED | REFUSALS)
    }

    fn reporting(socket: Socket, wanted: c_int) -> Result<Monitored> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let address = format!("inproc://sfm-monitor-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let named = name(&address)?;
        let library = socket.context.library;
        // SAFETY: the socket is open as long as the value lives, and the string ends with a zero.
        library.done(unsafe { (library.socket_monitor)(socket.at, named.as_ptr(), wanted) })?;
        let mut events = Socket::new(&socket.context, SocketKind::Pair)?;
        events.connect(&address)?;
        Ok(Monitored { socket, events })
    }

    pub fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// Becomes readable when there may be an event; see `Socket::descriptor`.
    pub fn descriptor(&self) -> Result<RawFd> {
        self.events.descriptor()
    }

    /// The next event, if there is one.
    pub fn event(&mut self) -> Result<Option<Event>> {
        while let Some(frames) = self.events.receive_all()? {
            // Two bytes for the event and four for its number, as this machine has them.
            let head = frames.first().map_or(&[][..], |frame| frame.bytes());
            let Some((event, value)) = head.split_first_chunk::<2>() else { continue };
            let value = value.first_chunk().map_or(-1, |bytes| i32::from_ne_bytes(*bytes));
            if let Some(event) = Event::of(u16::from_ne_bytes(*event), value) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }
}

impl Drop for Monitored {
    fn drop(&mut self) {
        let context = &self.socket.context;
        if context.is_ours() {
            // SAFETY: an open socket, whose report ends here.
            unsafe { (context.library.socket_monitor)(self.socket.at, std::ptr::null(), 0) };
        }
    }
}
