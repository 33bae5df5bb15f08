//! Messages between machines: sealed frames over TCP.
//!
//! ```text
//! frame           the wire format of a frame
//! seal            encrypts and authenticates frames
//! socket          non-blocking TCP
//! connection      sends frames on one connection, in order
//! window          how many bytes may be under way to one peer
//! reassembly      puts one peer's frames in order and packets together
//! control         frames to and from gateways
//! gateways        connections to the gateways of this process's site
//! link            delivers everything to one peer once and in order
//! resuming        chooses a link's connection, and resends on a new one
//! report          what observers read of connections to other sites
//! outgoing        sends to one peer
//! exchange        all links and connections of an endpoint
//! incoming        receives frames and acts on them
//! admission       connections that have not shown the key
//! network_thread  who receives: a waiting thread or the network thread
//! dialing         makes and replaces connections
//! monitor         judges whether a connection is up, silent or lost
//! closing         leaves when everything that was sent has arrived
//! ```
//!
//! One connection carries both directions of a pair; the process that sends first makes it. No
//! thread holds a lock while it waits for a host's lock (Python's GIL). Lock order: role,
//! connections, reading, links, reassembly, outgoing, a connection's queue; the inbox's lock comes
//! last.

mod admission;
mod closing;
mod connection;
pub mod control;
mod dialing;
mod exchange;
pub mod frame;
mod gateways;
mod incoming;
mod link;
mod monitor;
mod network_thread;
mod outgoing;
mod reassembly;
mod report;
mod resuming;
pub mod seal;
mod socket;
mod window;

pub use crate::clock::monotonic as now;
pub use exchange::{knock, Exchange};
pub use gateways::Listed;
pub use link::{Identity, Link};
pub use outgoing::MAX_SINGLE_FRAME;
pub use report::ConnectionReport;
pub use socket::{abandon_all, Socket};

const SECOND: u64 = 1_000_000_000;

/// Nanoseconds since a time of `now`; 0 if another thread has noted that time only just now.
fn elapsed(time: u64) -> u64 {
    now().saturating_sub(time)
}
