//! The atomic mode: all other processes that have opened the file see an access as a unit.
//!
//! The locks belong to the open file description, not to the process: they distinguish two files of
//! one process, and closing one of them does not release the other's lock.

use std::io;
use std::os::fd::AsRawFd;

use sfm_native::sync::lock;

use super::File;
use crate::handles::c_int;

impl File {
    /// Run `access` while no other process reads what it writes, or writes what it reads, between
    /// these positions; `end` is None for everything from `start` on.
    pub fn alone<T>(
        &self,
        is_write: bool,
        start: i64,
        end: Option<i64>,
        access: impl FnOnce() -> T,
    ) -> io::Result<T> {
        // The system's lock does not exclude threads with the same descriptor.
        let _alone = lock(&self.alone);
        let kind = if is_write { libc::F_WRLCK } else { libc::F_RDLCK };
        let length = end.map_or(0, |end| end - start); // 0: to the end of the file, now and later
        self.set_lock(kind, start, length)?;
        let done = access();
        self.set_lock(libc::F_UNLCK, start, length)?;
        Ok(done)
    }

    fn set_lock(&self, kind: c_int, start: i64, length: i64) -> io::Result<()> {
        // SAFETY: plain numbers, for which zero is valid.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as _;
        lock.l_whence = libc::SEEK_SET as _;
        (lock.l_start, lock.l_len) = (start, length);
        loop {
            // SAFETY: the call reads `lock`, which lives until it returns.
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
