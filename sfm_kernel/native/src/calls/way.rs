//! The way to one incarnation of a peer: what a send goes through, whatever the transport.

use std::sync::Arc;

use super::link::send_through_link;
use super::outflow::send_in_process;
use super::ring::send_through_ring;
use super::{Host, Peer};
use crate::core::Core;
use crate::net::Link;
use crate::outflow::Outflow;
use crate::packet::Gather;
use crate::sender::Sender;

#[derive(Clone)]
pub enum Way {
    /// To a process that shares memory: a ring.
    Ring(Arc<Sender>),
    /// To a process that does not, as a rule on another machine: TCP.
    Link(Arc<Link>),
    /// To an inbox of this process: its account, and the lane on which it takes in what comes.
    Local { outflow: Arc<Outflow>, inbox: Arc<Core>, lane: u32 },
}

impl Way {
    /// The way from `core` to another inbox of this process, or to itself.
    pub fn local(core: &Arc<Core>, uid: u128, inbox: &Arc<Core>, peer: u128) -> Way {
        let outflow = Arc::new(Outflow::new(core.clone(), peer));
        let lane = inbox.lane(uid, Some(outflow.clone()));
        Way::Local { outflow, inbox: inbox.clone(), lane }
    }

    /// How messages travel on it, as users know it.
    pub fn kind(&self) -> &'static str {
        match self {
            Way::Ring(_) => "shm",
            Way::Link(link) => link.kind(),
            Way::Local { .. } => "inproc",
        }
    }

    /// Put the packet on its way; order is kept between calls.
    ///
    /// Blocks: while more than `buffering` bytes of earlier packets to this peer were not yet
    /// received (a packet larger than that passes alone); with 0, until the packet itself was.
    /// Fails: as the peer's `check`, with `End::Closed` and what else a wait ends with; the packet
    /// is then not delivered, but for `buffering` 0, where it stays in the inbox.
    pub fn send<H: Host>(
        &self,
        host: &H,
        peer: &(impl Peer<H> + ?Sized),
        packet: &Gather<'_>,
        buffering: u64,
    ) -> Result<(), H::Error> {
        match self {
            Way::Ring(sender) => send_through_ring(host, sender, peer, packet, buffering),
            Way::Link(link) => send_through_link(host, link, peer, packet, buffering),
            Way::Local { outflow, inbox, lane } => {
                send_in_process(host, outflow, (inbox, *lane), peer, packet, buffering)
            }
        }
    }
}
