//! A context: what the sockets of a process share, with one thread for all their connections.

use std::ffi::{c_int, c_void};
use std::io::Result;
use std::sync::Arc;

use super::library::Library;

const MAX_SOCKETS: c_int = 2;

/// Sockets of one process: one for each peer that it has dialed, and few others.
const MOST_SOCKETS: c_int = 4096;

pub struct Context {
    pub(super) at: *mut c_void,
    pub(super) library: &'static Library,
    /// The process that uses it: a forked child has none of its threads.
    process: u32,
}

// SAFETY: libzmq allows every thread to use a context.
unsafe impl Send for Context {}
// SAFETY: as for Send, and libzmq allows any thread to use a context at any time.
unsafe impl Sync for Context {}

impl Context {
    /// A context with one I/O thread, which starts with the first socket.
    pub fn new(library: &'static Library) -> Result<Arc<Context>> {
        // SAFETY: libzmq sets no condition for this call.
        let at = unsafe { (library.ctx_new)() };
        if at.is_null() {
            return Err(library.last_error());
        }
        let context = Context { at, library, process: std::process::id() };
        // SAFETY: the context is open and has no sockets yet, as libzmq demands.
        library.done(unsafe { (library.ctx_set)(at, MAX_SOCKETS, MOST_SOCKETS) })?;
        Ok(Arc::new(context))
    }

    /// The number by which `at_address` finds it, while somebody holds it.
    pub fn address(self: &Arc<Context>) -> usize {
        Arc::as_ptr(self) as usize
    }

    /// The context with this number: for hosts that hand it on as a number.
    ///
    /// # Safety
    /// `address` has given it, and somebody holds that context during this call.
    pub unsafe fn at_address(address: usize) -> Arc<Context> {
        let context = address as *const Context;
        // SAFETY: the caller's promise; the count is of the value that is made here.
        unsafe {
            Arc::increment_strong_count(context);
            Arc::from_raw(context)
        }
    }

    /// Whether it is this process's, and not that of the one that has forked it: in a child no
    /// function of libzmq may be called on it.
    pub(super) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: its sockets, which hold it, are closed; none of them lingers. After a signal
            // the call has ended nothing, and is made again.
            while unsafe { (self.library.ctx_term)(self.at) } < 0
                && self.library.last_error().raw_os_error() == Some(libc::EINTR)
            {}
        }
    }
}
