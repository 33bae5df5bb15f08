//! Waiting for sockets, with everything else going on.

use std::io;
use std::os::fd::RawFd;

use crate::engine;

/// Milliseconds for which messages may wait meanwhile: what is waited for takes longer.
const PAUSE: i32 = 5;

/// Wait until a socket can be read from (POLLIN) or written to.
pub fn wait_for(fd: RawFd, events: i16) -> io::Result<()> {
    let mut one = libc::pollfd { fd, events, revents: 0 };
    loop {
        if let Some(engine) = engine::running() {
            engine.advance();
        }
        // SAFETY: one entry.
        match unsafe { libc::poll(&mut one, 1, PAUSE) } {
            0 => {}
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => return Ok(()),
        }
    }
}
