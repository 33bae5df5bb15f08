//! Messages between machines: which connection each link uses, who receives, and who is lost.
//!
//! ```text
//! gateways        connections to the gateways of this process's site
//! report          what observers read of connections to other sites
//! exchange        all links and connections of an endpoint
//! incoming        receives frames and hands them to the links
//! direct          direct connections, which go over ZeroMQ
//! announced       the members' keys
//! admission       bounds those that have not shown the key of a member
//! network_thread  who receives: a waiting thread or the network thread
//! dialing         makes and replaces connections
//! failures        what failed attempts to connect prove
//! monitor         judges whether a connection is up, silent or lost
//! closing         leaves when everything that was sent has arrived
//! ```
//!
//! One connection carries both directions of a pair; the process that sends first makes it. No
//! thread holds a lock while it waits for a host's lock (Python's GIL). Lock order: role,
//! connections, reading, links, reassembly, outgoing, a connection's queue; the inbox's lock comes
//! last.

mod admission;
mod announced;
mod closing;
mod dialing;
mod direct;
mod exchange;
pub mod failures;
mod gateways;
mod incoming;
mod monitor;
mod network_thread;
mod report;

pub use crate::clock::monotonic as now;
use crate::clock::{elapsed, SECOND};
use crate::wire::Connection;
pub use announced::parse_key;
pub use exchange::{Exchange, Listening};
pub use gateways::Listed;
pub use report::ConnectionReport;

/// Reliable delivery to a peer, on the connections that this layer makes.
pub type Link = crate::link::Link<Connection>;
