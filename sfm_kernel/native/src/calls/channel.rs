//! A channel to one incarnation of a peer: what a send goes through, whatever the transport.

use std::sync::Arc;

use super::credit::send_in_process;
use super::link::send_through_link;
use super::ring::send_through_ring;
use super::{Host, Peer};
use crate::core::Core;
use crate::core::SendCredit;
use crate::net::Link;
use crate::packet::Gather;
use crate::ring_sender::RingSender;

#[derive(Clone)]
pub enum Channel {
    /// A ring, to a process that shares memory.
    Ring(Arc<RingSender>),
    /// ZeroMQ or a gateway, to a process that does not, as a rule on another machine.
    Link(Arc<Link>),
    /// To an inbox of this process: the sender's credit, and the inbound that its packets arrive
    /// on.
    Local { credit: Arc<SendCredit>, inbox: Arc<Core>, inbound: u32 },
}

impl Channel {
    /// A channel from `core` to another inbox of this process, or to itself.
    pub fn local(core: &Arc<Core>, uid: u128, inbox: &Arc<Core>, peer: u128) -> Channel {
        let credit = Arc::new(SendCredit::new(core.clone(), peer));
        let inbound = inbox.inbound(uid, Some(credit.clone()));
        Channel::Local { credit, inbox: inbox.clone(), inbound }
    }

    /// The name of its transport, as users know it.
    pub fn kind(&self) -> &'static str {
        match self {
            Channel::Ring(_) => "shm",
            Channel::Link(link) => link.kind(),
            Channel::Local { .. } => "inproc",
        }
    }

    /// Send the packet; order is kept between calls.
    ///
    /// Blocks: while more than `buffering` bytes of earlier packets to this peer were not yet
    /// received (a packet larger than that passes alone); with 0, until the packet itself was.
    /// Fails: as the peer's `check`, with `End::Closed` and all that ends a wait; the packet is
    /// then not delivered, except with `buffering` 0, where it stays in the inbox.
    pub fn send<H: Host>(
        &self,
        host: &H,
        peer: &(impl Peer<H> + ?Sized),
        packet: &Gather<'_>,
        buffering: u64,
    ) -> Result<(), H::Error> {
        match self {
            Channel::Ring(sender) => send_through_ring(host, sender, peer, packet, buffering),
            Channel::Link(link) => {
                host.locate();
                send_through_link(host, link, peer, packet, buffering)
            }
            Channel::Local { credit, inbox, inbound } => {
                host.locate();
                send_in_process(host, credit, (inbox, *inbound), peer, packet, buffering)
            }
        }
    }
}
