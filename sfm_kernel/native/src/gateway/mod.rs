//! Gateways: the frames of a site's processes to other sites, over few connections that stay warm.
//!
//! A site is a set of processes that reach each other directly. Each has one gateway, or several; a
//! process is connected to all of its site's, and chooses one for each flow, by a hash. Between each
//! two gateways there is one connection, or as many as were asked for. After: O. Glück and
//! J.-C. Mignot, Splitting TCP for MPI Applications Executed on Grids, 2011, section 3. What we do
//! otherwise: the processes' own connections are not split. A gateway may drop any frame at any time;
//! processes keep what they have sent until it has arrived (net/frame.rs), and are told of drops, so
//! that they need not wait for a clock. So a gateway has no state that anybody would miss.
//!
//! A gateway has the *gateway key*, derived from the world's (seal.rs). It opens what is said to it
//! (net/voice.rs), and nothing else: of what it forwards it knows sender, receiver, and size. Whoever
//! has that key can stop messages, and read or forge none.
//!
//! ```text
//! flow         frames, and the flows they belong to
//! schedule     whose frame goes next
//! strangers    who is connected and has said nothing yet
//! poll         waiting for all connections at once
//! sockets      TCP's options
//! connection   one connection: frames in, frames out
//! wide         what a connection between gateways has besides: warmth, silence, counts
//! peers        the other gateways: dialing them, and what to do when a connection ends
//! routing      where each frame goes, and who is told if it goes nowhere
//! emulation    a slow path between sites, for machines that have none
//! engine       the thread
//! status       what it tells of itself
//! handle       starting a gateway, asking it, ending it
//! ```
//!
//! One thread does it all. It never blocks but in epoll, and what it keeps is bounded: of processes'
//! frames that wait for other sites, up to `HELD`, shared by all that are connected. The connection of
//! a process that has more is not read any more, so that TCP holds it up: its acknowledgements, too,
//! but those that its own process has put in front (net/connection.rs). For a process that does not
//! read, up to `FOR_PROCESS` is kept: what is more is dropped, and its sender told.

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
#[cfg(test)]
mod tests;
pub mod wide;

pub use handle::{Gateway, Listed, Options, Refused};

/// Bytes of processes' frames that may wait for the wide area; of one process at least, and at most.
pub const HELD: usize = 64 << 20;
pub const HELD_OF_ONE: (usize, usize) = (128 << 10, 8 << 20);
/// Bytes that may wait for one process.
pub const FOR_PROCESS: usize = 8 << 20;
/// What other gateways' frames may add to what waits for a connection to a gateway.
pub const FOR_GATEWAY: usize = 64 << 20;
