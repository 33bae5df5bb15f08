//! Gateways forward the frames of a site's processes to other sites, over few connections that stay
//! warm.
//!
//! A site is a set of processes that reach each other directly. Each site has one gateway, or
//! several; a process is connected to all gateways of its site and chooses one for each flow, by a
//! hash. Two gateways have one connection, or as many as the options say. After: O. Glück and J.-C.
//! Mignot, Splitting TCP for MPI Applications Executed on Grids, 2011, section 3. The difference:
//! the processes' connections are not split. A gateway may drop any frame at any time; processes
//! keep what they have sent until it has arrived (link), and gateways report drops, so that
//! processes need not wait for a timeout. A gateway therefore has no state whose loss would matter.
//!
//! A gateway has the *gateway key*, derived from the world's (frame/gateway_key.rs). It opens only
//! frames to itself (frame/control.rs); of those that it forwards it knows sender, receiver, and
//! size. Somebody who has that key can stop messages, but can neither read nor forge them.
//!
//! ```text
//! flow         frames, and the flows they belong to
//! schedule     whose frame goes next
//! strangers    connections that have not said Hello yet
//! poll         waits for all connections at once
//! sockets      TCP's options
//! connection   one connection: reads and writes frames
//! table        all connections, by id
//! wide         state of a connection between gateways: warmth, silence, counts
//! peers        the other gateways: dials them, and handles ended connections
//! routing      chooses each frame's connection, and reports drops
//! emulation    a slow path between sites, for machines that have none
//! engine       the thread
//! status       what a gateway reports about itself
//! handle       starts, controls and ends a gateway
//! ```
//!
//! One thread does everything. It blocks only in epoll, and its memory is bounded. Up to `HELD`
//! bytes of processes' frames wait for other sites; all connected processes share them. The gateway
//! stops reading the connection of a process that has more, so TCP holds the process up, and its
//! acknowledgements too, except those that the process has put ahead (wire/send_queue.rs). Up to
//! `FOR_PROCESS` bytes wait for a process that does not read: the gateway drops more, and reports
//! that to the sender.

pub mod connection;
pub mod emulation;
pub mod engine;
pub mod flow;
pub mod handle;
pub mod peers;
pub mod poll;
pub mod routing;
pub mod schedule;
pub mod sockets;
pub mod status;
pub mod strangers;
pub mod table;
#[cfg(test)]
mod tests;
pub mod wide;

pub use handle::{Gateway, Listed, Options, Refused};

/// Bytes of processes' frames that may wait for the wide area; the least and the most of one
/// process.
pub const HELD: usize = 64 << 20;
pub const HELD_OF_ONE: (usize, usize) = (128 << 10, 8 << 20);
/// Bytes that may wait for one process.
pub const FOR_PROCESS: usize = 8 << 20;
/// Bytes of other gateways' frames that may also wait for a connection to a gateway.
pub const FOR_GATEWAY: usize = 64 << 20;
