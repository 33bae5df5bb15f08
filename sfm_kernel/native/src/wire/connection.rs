//! A connection of either carrier, as `net` uses it.

use std::os::fd::RawFd;

use super::{gateway, zmq, SendQueue, TcpState, Wire};
use crate::tcp_info::TcpInfo;

pub enum Connection {
    Tcp(gateway::Connection),
    Zmq(zmq::Connection),
}

use Connection::{Tcp, Zmq};

/// The same of both.
macro_rules! either {
    ($connection:expr, $one:ident => $do:expr) => {
        match $connection {
            Tcp($one) => $do,
            Zmq($one) => $do,
        }
    };
}

impl Connection {
    /// Something has come that shows the other end's key; or what has come makes no sense.
    pub fn confirm(&self, is_confirmed: bool) {
        either!(self, one => one.confirm(is_confirmed));
    }

    /// Send queued frames: there is room.
    pub fn flush(&self) {
        either!(self, one => one.flush());
    }

    /// Whether all frames have left this process, as far as is known.
    pub fn is_flushed(&self) -> bool {
        either!(self, one => one.is_flushed())
    }

    pub fn has_ended(&self) -> bool {
        either!(self, one => one.has_ended())
    }

    /// Stop using it. The peer sees its end.
    pub fn end(&self) {
        either!(self, one => one.end());
    }

    /// Nothing more is sent. (Over ZeroMQ there is no such end: the peer ends the connection, since
    /// it has been told.)
    pub fn end_sending(&self) {
        if let Tcp(connection) = self {
            connection.socket.end();
        }
    }

    // ---- the kernel's side ----

    /// Its state, as far as this process has seen it.
    pub fn tcp(&self) -> &TcpState {
        either!(self, one => &one.tcp)
    }

    /// Look at its socket; None if there is none yet, or any more.
    pub fn with_socket<T>(&self, look: impl FnOnce(RawFd) -> T) -> Option<T> {
        match self {
            Tcp(connection) => Some(look(connection.socket.raw())),
            Zmq(connection) => connection.descriptor()?.with(look),
        }
    }

    /// What the kernel reports now.
    pub fn info(&self) -> Option<TcpInfo> {
        self.with_socket(|socket| TcpInfo::read(socket).ok())?
    }

    /// Bytes that the peer's kernel has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.with_socket(gateway::unacknowledged).unwrap_or(0)
    }
}

impl Wire for Connection {
    fn id(&self) -> u64 {
        either!(self, one => one.id)
    }

    fn is_shared(&self) -> bool {
        either!(self, one => one.is_shared())
    }

    fn is_confirmed(&self) -> bool {
        either!(self, one => one.is_confirmed())
    }

    fn with_queue(&self, change: impl FnOnce(&mut SendQueue)) {
        either!(self, one => one.with_queue(change));
    }

    fn break_off(&self) {
        either!(self, one => one.break_off());
    }
}
