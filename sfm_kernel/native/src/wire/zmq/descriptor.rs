//! A connection's descriptor, which libzmq owns, and may close and use again at any time.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::event_fd::owned;

/// The descriptor of a connection between these two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub fd: RawFd,
    pub local: SocketAddr,
    peer: SocketAddr,
}

impl Descriptor {
    /// Of the connection that has this descriptor now; None if none has it.
    pub fn of(fd: RawFd) -> Option<Descriptor> {
        let stream = pinned(fd)?;
        Some(Descriptor { fd, local: stream.local_addr().ok()?, peer: stream.peer_addr().ok()? })
    }

    /// Look at the connection's socket; None if libzmq has closed it. The copy that `look` gets stays
    /// this connection, whatever becomes of the descriptor meanwhile.
    pub fn with<T>(&self, look: impl FnOnce(RawFd) -> T) -> Option<T> {
        let stream = pinned(self.fd)?;
        let is_this =
            stream.local_addr().ok()? == self.local && stream.peer_addr().ok()? == self.peer;
        is_this.then(|| look(stream.as_raw_fd()))
    }

    /// End the connection: libzmq sees that, closes it and reports it.
    pub fn shut_down(&self) {
        // SAFETY: a connection of ours, as long as `with` calls.
        self.with(|fd| unsafe { libc::shutdown(fd, libc::SHUT_RDWR) });
    }
}

/// A copy of a descriptor, which another one cannot replace.
fn pinned(fd: RawFd) -> Option<TcpStream> {
    // SAFETY: the system call takes numbers only, and touches no memory.
    let copy = owned(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) }).ok()?;
    Some(TcpStream::from(copy as OwnedFd))
}
