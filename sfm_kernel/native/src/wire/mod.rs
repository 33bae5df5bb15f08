//! Carriers: what brings frames from one process to another, in order, until it breaks.
//!
//! ```text
//! send_queue  the frames that wait for room on a connection
//! tcp_state   what is known of the kernel's side of a connection
//! warmth      how a long connection keeps its congestion window through a silence
//! gateway     TCP of the core's own, to gateways
//! zmq         ZeroMQ, to peers
//! connection  either of them
//! forked      what a forked child gives up
//! ```
//!
//! A carrier neither reads frames nor keeps them for another connection: whatever is lost with a
//! connection, the link above sends again.

mod connection;
mod forked;
pub mod gateway;
#[cfg(test)]
pub mod memory;
mod send_queue;
mod tcp_state;
mod warmth;
pub mod zmq;

use std::sync::Arc;

pub use connection::Connection;
pub use forked::abandon_all;
pub use send_queue::SendQueue;
pub use tcp_state::{Seen, TcpState};
pub use warmth::Warmth;

/// What reliable delivery asks of a connection. A connection that ends, as it does when it breaks,
/// says so to whoever has made or accepted it, who tells the link.
pub trait Wire: Send + Sync {
    /// Unique among all connections of an endpoint, past and present.
    fn id(&self) -> u64;

    /// Whether it leads to several peers, through a gateway, which may lose frames of one of them.
    fn is_shared(&self) -> bool;

    /// Whether a frame has come that the process or gateway at the other end has sealed.
    fn is_confirmed(&self) -> bool;

    /// Change what waits, and send what there is room for. A connection that has ended does neither.
    fn with_queue(&self, change: impl FnOnce(&mut SendQueue));

    /// Send a frame, now or when there is room.
    fn put(&self, frame: Arc<Vec<u8>>) {
        self.with_queue(|queue| queue.put(frame));
    }

    /// Send a frame before the queued ones, whose order it need not keep. The first frame of a
    /// connection stays first.
    fn put_ahead(&self, frame: Arc<Vec<u8>>) {
        self.with_queue(|queue| queue.put_ahead(frame));
    }

    /// Remove the queued messages to this peer, except one that has gone in part.
    fn withdraw(&self, receiver: u128) {
        self.with_queue(|queue| queue.withdraw(receiver));
    }

    /// Break, as a failing network would.
    fn break_off(&self);
}
