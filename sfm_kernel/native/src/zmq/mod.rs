//! Messages over ZeroMQ: what happens for each message, without Python and its lock.
//!
//! ```text
//! library    the functions of libzmq that pyzmq has loaded
//! wire       what stands in front of every message
//! link       the sending side of one peer
//! source     what one peer delivers: its place in the order, a message that comes in parts
//! exchange   all of an endpoint's links and sources; receives
//! tending    the two threads that may receive: who waits, or the network thread
//! ```
//!
//! Sockets are made, connected, watched and closed by Python (`sfm_kernel/transport/zmq`), which
//! also decides when a peer is lost. Between `open` and `close` they are used from here.
//!
//! No lock is held while Python's GIL is waited for, so that its holder may wait for any of them.
//! Order: role, sources, links, wire; the inbox's own lock comes last.

mod exchange;
mod library;
mod link;
mod source;
mod tending;
mod wire;

pub use exchange::{Exchange, News};
pub use library::{Library, Socket};
pub use link::{Link, WHOLE};
