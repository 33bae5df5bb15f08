//! The atomic mode: an access is one whole to all others that have opened the same file.
//!
//! Locks of the open file description, not of the process: they tell two files of one process
//! apart, and closing one of them does not let go of the other's.

use std::io;
use std::os::fd::AsRawFd;

use super::File;
use crate::handles::c_int;

impl File {
    /// Do this while nobody else reads what is written, or writes what is read, between these
    /// positions; `end` is None for everything from `start` on.
    pub fn alone<T>(
        &self,
        is_write: bool,
        start: i64,
        end: Option<i64>,
        access: impl FnOnce() -> T,
    ) -> io::Result<T> {
        // The system's lock does not hold between threads with the same descriptor.
        let _alone = self.alone.lock().expect("no panic under the lock");
        let kind = if is_write { libc::F_WRLCK } else { libc::F_RDLCK };
        let length = end.map_or(0, |end| end - start); // 0: to the end, wherever that is
        self.set_lock(kind, start, length)?;
        let done = access();
        self.set_lock(libc::F_UNLCK, start, length)?;
        Ok(done)
    }

    fn set_lock(&self, kind: c_int, start: i64, length: i64) -> io::Result<()> {
        // SAFETY: plain numbers, all of which may be zero.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as _;
        lock.l_whence = libc::SEEK_SET as _;
        (lock.l_start, lock.l_len) = (start, length);
        loop {
            // SAFETY: reads the lock.
            let code =
                unsafe { libc::fcntl(self.descriptor.as_raw_fd(), libc::F_OFD_SETLKW, &lock) };
            let error = io::Error::last_os_error();
            match code {
                0 => return Ok(()),
                _ if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            }
        }
    }
}
