//! Frames over TCP of the core's own, to gateways.
//!
//! ```text
//! socket      non-blocking TCP
//! connection  sends frames on one connection, in order
//! ```

mod connection;
mod socket;

pub use connection::Connection;
pub use socket::{parse, unacknowledged, Socket};
