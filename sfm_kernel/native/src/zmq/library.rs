//! libzmq, as pyzmq has loaded it.
//!
//! pyzmq brings its own copy, whose sockets no other copy understands. Its extension module leads
//! there: a lookup in a library also searches those that it was linked with.

use std::ffi::{c_int, c_void, CStr};
use std::io::{Error, ErrorKind};
use std::sync::OnceLock;

use super::source::Piece;

const DONTWAIT: c_int = 1;
const SRCFD: c_int = 2;

/// zmq_msg_t: 64 bytes that may be moved, but not copied.
#[repr(C, align(8))]
struct Raw([u8; 64]);

macro_rules! functions {
    ($($field:ident = $name:literal: $type:ty;)*) => {
        /// The functions; what they do is in libzmq's manual.
        pub struct Library {
            $($field: $type,)*
        }

        /// All of them, found by name.
        fn functions(find: impl Fn(&CStr) -> Result<*mut c_void, String>) -> Result<Library, String> {
            Ok(Library {
                // SAFETY: libzmq's function of this name has had this type since libzmq 3.
                $($field: unsafe { std::mem::transmute::<*mut c_void, $type>(find($name)?) },)*
            })
        }
    };
}

functions! {
    msg_init = c"zmq_msg_init": unsafe extern "C" fn(*mut Raw) -> c_int;
    msg_init_size = c"zmq_msg_init_size": unsafe extern "C" fn(*mut Raw, usize) -> c_int;
    msg_data = c"zmq_msg_data": unsafe extern "C" fn(*mut Raw) -> *mut c_void;
    msg_size = c"zmq_msg_size": unsafe extern "C" fn(*const Raw) -> usize;
    msg_more = c"zmq_msg_more": unsafe extern "C" fn(*const Raw) -> c_int;
    msg_get = c"zmq_msg_get": unsafe extern "C" fn(*const Raw, c_int) -> c_int;
    msg_recv = c"zmq_msg_recv": unsafe extern "C" fn(*mut Raw, *mut c_void, c_int) -> c_int;
    msg_send = c"zmq_msg_send": unsafe extern "C" fn(*mut Raw, *mut c_void, c_int) -> c_int;
    msg_close = c"zmq_msg_close": unsafe extern "C" fn(*mut Raw) -> c_int;
    errno = c"zmq_errno": unsafe extern "C" fn() -> c_int;
}

static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();

impl Library {
    /// The library that the extension module at `path` uses; the same for the whole process.
    pub fn of_module(path: &CStr) -> Result<&'static Library, String> {
        LIBRARY.get_or_init(|| Library::find(path)).as_ref().map_err(String::clone)
    }

    fn find(path: &CStr) -> Result<Library, String> {
        // SAFETY: a module that Python has imported is opened once more, which only counts it. It
        // is never closed.
        let module = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        if module.is_null() {
            return Err(format!("{} is not loaded", path.to_string_lossy()));
        }
        functions(|name| {
            // SAFETY: a lookup by name.
            let at = unsafe { libc::dlsym(module, name.as_ptr()) };
            match at.is_null() {
                false => Ok(at),
                true => Err(format!(
                    "{} does not give access to libzmq ({} is missing). Use pyzmq as PyPI or \
                     conda-forge has it",
                    path.to_string_lossy(),
                    name.to_string_lossy()
                )),
            }
        })
    }

    fn last_error(&self) -> Error {
        // SAFETY: no conditions.
        Error::from_raw_os_error(unsafe { (self.errno)() })
    }
}

/// One frame.
pub struct Frame {
    raw: Raw,
    library: &'static Library,
}

// SAFETY: a message belongs to no thread.
unsafe impl Send for Frame {}
// SAFETY: looking at it changes nothing.
unsafe impl Sync for Frame {}

impl Frame {
    pub fn empty(library: &'static Library) -> Frame {
        let mut raw = Raw([0; 64]);
        // SAFETY: initialises the 64 bytes; cannot fail.
        unsafe { (library.msg_init)(&mut raw) };
        Frame { raw, library }
    }

    /// Memory for `len` bytes, which must all be written; None if there is none.
    pub fn of_size(library: &'static Library, len: usize) -> Option<Frame> {
        let mut raw = Raw([0; 64]);
        // SAFETY: initialises the 64 bytes, or fails and leaves nothing to close.
        let done = unsafe { (library.msg_init_size)(&mut raw, len) } == 0;
        done.then_some(Frame { raw, library })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: libzmq's functions do not write through the pointer, whatever its type says;
        // the data lives until the frame is closed, received into or sent, all of which need
        // `&mut self`.
        unsafe {
            let at = (self.library.msg_data)((&raw const self.raw).cast_mut());
            std::slice::from_raw_parts(at.cast(), (self.library.msg_size)(&self.raw))
        }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; a frame that we made is nobody else's.
        unsafe {
            let at = (self.library.msg_data)(&mut self.raw);
            std::slice::from_raw_parts_mut(at.cast(), (self.library.msg_size)(&self.raw))
        }
    }

    /// The frame, leaving an empty one.
    pub fn take(&mut self) -> Frame {
        std::mem::replace(self, Frame::empty(self.library))
    }

    /// The descriptor of the connection that it came through; -1 where that is not known.
    pub fn descriptor(&self) -> i32 {
        // SAFETY: an initialised message.
        unsafe { (self.library.msg_get)(&self.raw, SRCFD) }
    }

    /// Whether another frame of the same message follows.
    pub fn more(&self) -> bool {
        // SAFETY: an initialised message.
        unsafe { (self.library.msg_more)(&self.raw) != 0 }
    }
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

// SAFETY: libzmq keeps the bytes of a frame of more than a few kB in a block that it has allocated
// for this frame alone; only smaller ones lie in the frame itself or share a block.
unsafe impl Piece for Frame {}

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: initialised, and closed only here (sending leaves an empty one).
        unsafe { (self.library.msg_close)(&mut self.raw) };
    }
}

/// A socket of pyzmq's, while its owner leaves it to us.
pub struct Socket {
    at: *mut c_void,
    pub library: &'static Library,
}

// SAFETY: libzmq allows a socket to move between threads with a full fence, which the Mutex that
// every Socket lives in is; `&mut self` keeps two threads from using it at once.
unsafe impl Send for Socket {}

impl Socket {
    /// # Safety
    /// `at` is a socket of `library`, stays open while this value lives, and is used by nobody
    /// else meanwhile.
    pub unsafe fn new(library: &'static Library, at: usize) -> Socket {
        Socket { at: at as *mut c_void, library }
    }

    /// The next frame, if one has come; false if none has.
    pub fn receive(&mut self, frame: &mut Frame) -> Result<bool, Error> {
        loop {
            // SAFETY: an open socket and an initialised message, whose old content is closed.
            if unsafe { (self.library.msg_recv)(&mut frame.raw, self.at, DONTWAIT) } >= 0 {
                return Ok(true);
            }
            let error = self.library.last_error();
            match error.kind() {
                ErrorKind::WouldBlock => return Ok(false),
                ErrorKind::Interrupted => {}
                _ => return Err(error),
            }
        }
    }

    /// Hand a frame over. Never waits: the sockets have no high-water mark.
    pub fn send(&mut self, mut frame: Frame) -> Result<(), Error> {
        loop {
            // SAFETY: an open socket and an initialised message; libzmq takes over its content.
            if unsafe { (self.library.msg_send)(&mut frame.raw, self.at, DONTWAIT) } >= 0 {
                return Ok(());
            }
            let error = self.library.last_error();
            if error.kind() != ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}
