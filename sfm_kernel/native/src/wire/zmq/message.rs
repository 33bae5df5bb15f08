//! One frame of ZeroMQ's.

use std::ffi::{c_int, c_void};
use std::io::{Error, Result};
use std::os::fd::RawFd;

use super::library::{text, Library, Raw};

const SRCFD: c_int = 2;

/// A frame: bytes of libzmq's, or bytes that libzmq was lent.
pub struct Message {
    pub(super) raw: Raw,
    library: &'static Library,
}

// SAFETY: a message belongs to no thread, as libzmq says of it.
unsafe impl Send for Message {}
// SAFETY: the methods with a shared reference look at the message and do not change it.
unsafe impl Sync for Message {}

impl Message {
    pub fn empty(library: &'static Library) -> Message {
        let mut raw = Raw([0; 64]);
        // SAFETY: the call initializes all 64 bytes, and cannot fail.
        unsafe { (library.msg_init)(&mut raw) };
        Message { raw, library }
    }

    /// A copy of these bytes; an error if there is no memory.
    pub fn copy(library: &'static Library, bytes: &[u8]) -> Result<Message> {
        let mut raw = Raw([0; 64]);
        // SAFETY: initialises the 64 bytes, or fails and leaves nothing to close.
        library.done(unsafe { (library.msg_init_size)(&mut raw, bytes.len()) })?;
        let mut message = Message { raw, library };
        // SAFETY: fresh memory of this length, which nobody else knows.
        unsafe {
            let to: *mut u8 = (library.msg_data)(&mut message.raw).cast();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        Ok(message)
    }

    /// These bytes without a copy. libzmq drops `bytes` when it has done with them, in its own
    /// thread: who counts what libzmq holds does it there.
    pub fn lend<B: AsRef<[u8]> + Send + 'static>(
        library: &'static Library,
        bytes: B,
    ) -> Result<Message> {
        unsafe extern "C" fn free<B>(_: *mut c_void, lent: *mut c_void) {
            // SAFETY: the box that `lend` has let go, which libzmq gives back once.
            drop(unsafe { Box::from_raw(lent.cast::<B>()) });
        }
        let lent = Box::into_raw(Box::new(bytes));
        // SAFETY: the box lives until `free`; a box's content stays where it is.
        let slice = unsafe { (*lent).as_ref() };
        let (at, length) = (slice.as_ptr().cast_mut().cast(), slice.len());
        let mut raw = Raw([0; 64]);
        // SAFETY: memory that stays as it is until `free`; libzmq only reads it.
        let done = unsafe { (library.msg_init_data)(&mut raw, at, length, free::<B>, lent.cast()) };
        if let Err(error) = library.done(done) {
            // SAFETY: libzmq has not taken the box, so it is still ours.
            drop(unsafe { Box::from_raw(lent) });
            return Err(error);
        }
        Ok(Message { raw, library })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: libzmq's functions do not write through the pointer, whatever its type says; the
        // data lives until the message is closed, received into or sent: all need `&mut self`.
        unsafe {
            let at = (self.library.msg_data)((&raw const self.raw).cast_mut());
            std::slice::from_raw_parts(at.cast(), (self.library.msg_size)(&self.raw))
        }
    }

    /// The bytes of a message that was received, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; nobody else reads a received message, whose memory is its own.
        unsafe {
            let at = (self.library.msg_data)(&mut self.raw);
            std::slice::from_raw_parts_mut(at.cast(), (self.library.msg_size)(&self.raw))
        }
    }

    /// Whether another frame of the same message follows.
    pub fn more(&self) -> bool {
        // SAFETY: every `Message` is initialized as long as it lives.
        unsafe { (self.library.msg_more)(&self.raw) != 0 }
    }

    /// The descriptor of the connection that it came through, which libzmq owns.
    pub fn source(&self) -> Option<RawFd> {
        // SAFETY: every `Message` is initialized as long as it lives.
        Some(unsafe { (self.library.msg_get)(&self.raw, SRCFD) }).filter(|fd| *fd >= 0)
    }

    /// The name that the authenticator has given the connection that it came through (`zap`).
    pub fn user(&self) -> Option<String> {
        // SAFETY: every `Message` is initialized as long as it lives, and the name ends with a
        // zero.
        text(unsafe { (self.library.msg_gets)(&self.raw, c"User-Id".as_ptr()) })
    }

    /// Whether a call that moves this message has succeeded; tried again after a signal.
    pub(super) fn moved(&mut self, call: impl Fn(&Library, *mut Raw) -> c_int) -> Result<()> {
        loop {
            match self.library.done(call(self.library, &mut self.raw)) {
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                done => return done,
            }
        }
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: initialised, and closed only here (sending leaves an empty one).
        unsafe { (self.library.msg_close)(&mut self.raw) };
    }
}

/// Whether a call found nothing to receive, or no room for what was to be sent.
pub(super) fn would_block(error: &Error) -> bool {
    error.raw_os_error() == Some(libc::EAGAIN)
}
