//! Messages between machines: sealed frames over TCP.
//!
//! ```text
//! frame        what goes over a connection
//! seal         who can read it
//! socket       TCP without blocking
//! connection   what goes out on one, in order
//! window       how much may be under way
//! reassembly   the frames of one peer, in order again, and packets made of them
//! voice        what is said to gateways, and by them
//! gates        the ways through gateways
//! link         the conversation with one peer: nothing lost, nothing twice, in order
//! resuming     the way to one peer, and what is sent again on another one
//! lines        what is told of connections to other sites
//! going        what goes to one peer
//! exchange     all of an endpoint's links and connections
//! coming       what comes in
//! admission         those who have not shown the key
//! tending      the two threads that may receive: who waits, or the network thread
//! dialing      making connections
//! monitor      what it means that one broke, or is silent
//! parting      leaving, when all that was sent has arrived
//! ```
//!
//! One connection carries both directions of a pair. Whoever has something to say first makes it.
//! No lock is held while a host's lock (Python's GIL) is waited for. Order: role, connections,
//! reading, links, reassembly, outgoing, a connection's queue; the inbox's own lock comes last.

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

pub use exchange::{knock, Exchange};
pub use gateways::Listed;
pub use link::{Identity, Link};
pub use outgoing::MAX_SINGLE_FRAME;
pub use report::ConnectionReport;
pub use socket::{abandon_all, Socket};

/// Nanoseconds of the monotonic clock, the same as Python's `time.monotonic`.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills in a struct of ours; this clock exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
