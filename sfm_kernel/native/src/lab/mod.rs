//! A long path between two networks of one machine, for experiments: delay, rate, a bounded queue,
//! loss, cross traffic, cuts, and resets.
//!
//! ```text
//! pipe      one direction, without a clock and without packets: when a packet arrives, if at all
//! late      a histogram of delays: count, mean, largest, quantiles
//! firewall  resets connections that it does not know
//! tun       a device through which the kernel sends and receives packets
//! link      a thread that carries packets between two of them
//! ```
//!
//! The kernel's TCP runs at both ends and notices only what happens to its packets.

mod firewall;
mod late;
mod link;
mod pipe;
mod tun;

pub use late::Late;
pub use link::{Direction, Link, Report};
pub use pipe::{Counts, Settings};
pub use tun::open_tun;
