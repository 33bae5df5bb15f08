//! A message in the queue, and one that has left it.

use std::sync::Arc;

use crate::packet::Packet;

/// A queued message that fits as far as native comparison goes.
#[derive(Clone)]
pub struct Candidate {
    pub seq: u64,
    pub slot: u32,
    pub packet: Arc<Packet>,
    /// Nothing is left for Python to compare.
    pub certain: bool,
}

/// A message that left the queue.
pub struct Taken {
    pub seq: u64,
    pub packet: Arc<Packet>,
    pub ticket: Ticket,
}

/// The data of a message's arrival.
#[derive(Clone, Copy, Default)]
pub struct Ticket {
    pub inbound: u32,
    /// The sender waits for the acknowledgement of this message.
    pub ack: bool,
    /// Its sender has been given credit for it: it was received before, and put back.
    pub paid: bool,
    /// The message's number on its inbound, from 1 on.
    pub number: u64,
}
