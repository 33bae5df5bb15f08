//! A long way between two networks of one machine, for experiments: delay, rate, a queue that can be
//! full, loss, other people's traffic, cuts, and resets.
//!
//! ```text
//! chance    numbers that look random, the same for the same seed
//! pipe      one direction, without a clock and without packets: what comes when, if at all
//! late      how late things were: count, mean, largest, quantiles
//! firewall  resets connections that it does not know
//! tun       a device through which the kernel gives packets away, and gets others
//! link      a thread that carries packets between two of them
//! ```
//!
//! The kernel's own TCP runs at both ends and sees nothing of this but what its packets meet.

mod firewall;
mod late;
mod link;
mod pipe;
mod splitmix;
mod tun;

pub use late::Late;
pub use link::{Direction, Link, Report};
pub use pipe::{Counts, Settings};
pub use tun::open_tun;
