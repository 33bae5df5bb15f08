//! Waiting for a socket makes progress with messages.

use std::io;
use std::os::fd::RawFd;

use super::{report, running, Collective, From};
use crate::sockets::is_ready;

/// Milliseconds between two calls of `advance`: waiting for a socket takes longer.
const PAUSE: i32 = 5;

/// Wait until a socket can be read from (POLLIN) or written to. Observers see one that waits for
/// another program as a call that polls: processes that they do not know may end it.
pub fn wait_for_socket(fd: RawFd, events: i16) -> io::Result<()> {
    let meets =
        matches!(Collective::Making.exactly(), Collective::CommAccept | Collective::CommConnect);
    let waited = loop {
        if let Some(engine) = running() {
            engine.advance();
        }
        match is_ready(fd, events, PAUSE) {
            Ok(false) => {}
            ended => break ended,
        }
        if let Some(engine) = running().filter(|_| meets) {
            engine.poll_failed(|| report::some(vec![], From::Nobody));
        }
    };
    if let Some(engine) = running() {
        engine.poll_succeeded();
    }
    waited.map(|_| ())
}
