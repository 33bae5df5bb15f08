//! ZeroMQ, safely: what the carrier of links between machines needs of libzmq.
//!
//! ```text
//! library   the functions, of whichever libzmq is there
//! message   a frame
//! context   what the sockets of a process share
//! socket    ROUTER, DEALER and their like; no call waits
//! monitor   what becomes of a socket's connections
//! curve     keys
//! zap       who may connect
//! watch     who hears that something has happened at a socket
//! descriptor  the kernel's side of a connection
//! router    where others connect
//! connection  sends frames on one connection, in order
//! ```

mod connection;
mod context;
mod curve;
mod descriptor;
mod library;
mod message;
mod monitor;
mod router;
mod socket;
mod watch;
mod zap;

#[cfg(test)]
mod tests;

pub use connection::Connection;
pub use context::Context;
pub use curve::{Key, Pair};
pub use descriptor::Descriptor;
pub use library::Library;
pub use message::Message;
pub use monitor::{Event, Monitored};
pub use router::Router;
pub use socket::{Bytes, Number, Socket, SocketKind};
pub use watch::{parts, Watch};
pub use zap::Authenticator;
