//! A socket: none of its calls waits.

use std::ffi::{c_int, c_void, CString};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::RawFd;
use std::sync::Arc;

use super::context::Context;
use super::message::{would_block, Message};

const DONTWAIT: c_int = 1;
const SNDMORE: c_int = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum SocketKind {
    Pair = 0,
    Dealer = 5,
    Router = 6,
}

/// Options with a number, by libzmq's.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub enum Number {
    Descriptor = 14,
    Events = 15,
    Linger = 17,
    ReconnectInterval = 18,
    Backlog = 19,
    SendLimit = 23,
    ReceiveLimit = 24,
    RouterMandatory = 33,
    Keepalive = 34,
    KeepaliveCount = 35,
    KeepaliveIdle = 36,
    KeepaliveInterval = 37,
    CurveServer = 47,
    HandshakeInterval = 66,
    ConnectTimeout = 79,
    UnacknowledgedLimit = 80,
}

/// Options with bytes.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub enum Bytes {
    RoutingId = 5,
    LastEndpoint = 32,
    CurvePublicKey = 48,
    CurveSecretKey = 49,
    CurveServerKey = 50,
    ZapDomain = 55,
}

const LARGEST_MESSAGE: c_int = 22;
const READABLE: c_int = 1;

/// A socket, for one thread at a time.
pub struct Socket {
    pub(super) at: *mut c_void,
    pub(super) context: Arc<Context>,
}

// SAFETY: libzmq allows a socket to move between threads with a full fence, which the lock that
// its owner keeps it in is; `&mut self` keeps two threads from using it at once.
unsafe impl Send for Socket {}

impl Socket {
    /// A socket that, once closed, keeps nothing back, and that queues without a limit of its own:
    /// its owner counts bytes.
    pub fn new(context: &Arc<Context>, kind: SocketKind) -> Result<Socket> {
        // SAFETY: the context is open as long as this reference to it lives.
        let at = unsafe { (context.library.socket)(context.at, kind as c_int) };
        if at.is_null() {
            return Err(context.library.last_error());
        }
        let mut socket = Socket { at, context: Arc::clone(context) };
        for option in [Number::Linger, Number::SendLimit, Number::ReceiveLimit] {
            socket.set(option, 0)?;
        }
        Ok(socket)
    }

    /// Let the kernel probe the kernel of an idle peer every second, so that a silent connection is
    /// noticed. (It ends a connection only after two minutes.)
    pub fn keep_alive(&mut self) -> Result<()> {
        self.set(Number::Keepalive, 1)?;
        self.set(Number::KeepaliveIdle, 2)?;
        self.set(Number::KeepaliveInterval, 1)?;
        self.set(Number::KeepaliveCount, 120)
    }

    pub fn set(&mut self, option: Number, value: i32) -> Result<()> {
        self.set_raw(option as c_int, &value.to_ne_bytes())
    }

    pub fn set_bytes(&mut self, option: Bytes, value: &[u8]) -> Result<()> {
        self.set_raw(option as c_int, value)
    }

    /// The most bytes of a frame that a peer may send; a longer one ends its connection.
    pub fn limit_frames(&mut self, bytes: u64) -> Result<()> {
        self.set_raw(LARGEST_MESSAGE, &bytes.to_ne_bytes())
    }

    fn set_raw(&mut self, option: c_int, value: &[u8]) -> Result<()> {
        let library = self.context.library;
        // SAFETY: an open socket, and bytes that are copied.
        library.done(unsafe {
            (library.setsockopt)(self.at, option, value.as_ptr().cast(), value.len())
        })
    }

    pub fn number(&self, option: Number) -> Result<i32> {
        let (mut value, mut length) = (0i32, size_of::<i32>());
        let library = self.context.library;
        // SAFETY: an open socket, and room for a number.
        library.done(unsafe {
            (library.getsockopt)(self.at, option as c_int, (&raw mut value).cast(), &mut length)
        })?;
        Ok(value)
    }

    /// Wait for connections at an address ("tcp://127.0.0.1:*"); returns it with its port.
    pub fn bind(&mut self, address: &str) -> Result<String> {
        let named = name(address)?;
        let library = self.context.library;
        // SAFETY: the socket is open as long as the value lives, and the string ends with a zero.
        library.done(unsafe { (library.bind)(self.at, named.as_ptr()) })?;
        let (mut room, mut length) = ([0u8; 256], 256);
        // SAFETY: room for the address, with its zero.
        library.done(unsafe {
            let option = Bytes::LastEndpoint as c_int;
            (library.getsockopt)(self.at, option, room.as_mut_ptr().cast(), &mut length)
        })?;
        Ok(String::from_utf8_lossy(&room[..length.saturating_sub(1)]).into_owned())
    }

    /// Begin to connect.
    pub fn connect(&mut self, address: &str) -> Result<()> {
        let named = name(address)?;
        let library = self.context.library;
        // SAFETY: the socket is open as long as the value lives, and the string ends with a zero.
        library.done(unsafe { (library.connect)(self.at, named.as_ptr()) })
    }

    /// Becomes readable when there may be something to do; then `is_readable` tells. Any call on
    /// the socket, a send too, may take the edge away: ask again after each.
    pub fn descriptor(&self) -> Result<RawFd> {
        self.number(Number::Descriptor)
    }

    pub fn is_readable(&mut self) -> Result<bool> {
        Ok(self.number(Number::Events)? & READABLE != 0)
    }

    /// A copy of these frames, to be sent.
    pub fn copies(&self, frames: &[&[u8]]) -> Result<Vec<Message>> {
        frames.iter().map(|frame| Message::copy(self.context.library, frame)).collect()
    }

    /// The next frame, if one has come; false if none has.
    pub fn receive(&mut self, into: &mut Message) -> Result<bool> {
        // SAFETY: an open socket and an initialised message, whose old content is closed.
        match into.moved(|library, raw| unsafe { (library.msg_recv)(raw, self.at, DONTWAIT) }) {
            Err(error) if would_block(&error) => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// The frames of the next message, if one has come.
    pub fn receive_all(&mut self) -> Result<Option<Vec<Message>>> {
        let mut frames = Vec::new();
        loop {
            let mut frame = Message::empty(self.context.library);
            if !self.receive(&mut frame)? {
                return Ok(None); // a message comes whole: this is before its first frame
            }
            let more = frame.more();
            frames.push(frame);
            if !more {
                return Ok(Some(frames));
            }
        }
    }

    /// Hand a message's frames over; false if there is no room for it at its peer, or nobody yet to
    /// whom it could go. The frames that were not handed over are still there.
    pub fn send(&mut self, frames: &mut [Message]) -> Result<bool> {
        let Some(last) = frames.len().checked_sub(1) else { return Ok(true) };
        for (index, frame) in frames.iter_mut().enumerate() {
            let flags = if index == last { DONTWAIT } else { DONTWAIT | SNDMORE };
            // SAFETY: an open socket and an initialised message, whose content libzmq takes.
            match frame.moved(|library, raw| unsafe { (library.msg_send)(raw, self.at, flags) }) {
                Err(error) if index == 0 && would_block(&error) => return Ok(false),
                done => done?,
            }
        }
        Ok(true)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.context.is_ours() {
            // SAFETY: the socket is open, and is closed here only.
            unsafe { (self.context.library.close)(self.at) };
        }
    }
}

pub(super) fn name(address: &str) -> Result<CString> {
    CString::new(address)
        .map_err(|_| Error::new(ErrorKind::InvalidInput, "an address with a zero byte"))
}
