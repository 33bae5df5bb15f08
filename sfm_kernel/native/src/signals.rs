//! Threads of the library take no signals: handlers are the program's, and run in its threads.

/// While it lives, this thread takes no signals; threads that it starts never take any.
pub struct Unsignalled(libc::sigset_t);

impl Unsignalled {
    pub fn enter() -> Unsignalled {
        // SAFETY: sets of our own, for which all zero is a valid value.
        unsafe {
            let (mut all, mut before) = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            Unsignalled(before)
        }
    }
}

impl Drop for Unsignalled {
    fn drop(&mut self) {
        // SAFETY: the set that this thread had before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}
