//! The messages in arrival order: a doubly linked list in one block of memory.

use std::sync::Arc;

use super::{Taken, Ticket};
use crate::packet::Packet;

/// No message.
pub const NIL: u32 = u32::MAX;

pub struct Node {
    pub seq: u64,
    pub before: u32,
    pub after: u32,
    ticket: Ticket,
    packet: Option<Arc<Packet>>,
}

impl Node {
    /// The message of a node that is in the list.
    pub fn packet(&self) -> &Arc<Packet> {
        self.packet.as_ref().expect("a linked node holds a packet")
    }
}

/// Messages by number, each in a slot that it keeps while it is queued.
pub struct List {
    nodes: Vec<Node>,
    free: Vec<u32>,
    head: u32,
    tail: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        List { nodes: Vec::new(), free: Vec::new(), head: NIL, tail: NIL, len: 0 }
    }
}

impl List {
    pub fn len(&self) -> usize {
        self.len
    }
    /// Number of slots, free ones included.
    pub fn capacity(&self) -> usize {
        self.nodes.len()
    }
    pub fn head(&self) -> u32 {
        self.head
    }
    pub fn tail(&self) -> u32 {
        self.tail
    }
    pub fn node(&self, slot: u32) -> &Node {
        &self.nodes[slot as usize]
    }
    /// Any slot's node, linked or not; None if there never was one.
    pub fn get(&self, slot: u32) -> Option<&Node> {
        self.nodes.get(slot as usize)
    }

    /// Insert behind the slot `before`. Returns the message's slot.
    pub fn insert(&mut self, taken: Taken, before: u32) -> u32 {
        let Taken { seq, packet, ticket } = taken;
        self.len += 1;
        let after = if before == NIL { self.head } else { self.node(before).after };
        let node = Node { seq, before, after, ticket, packet: Some(packet) };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.nodes[slot as usize] = node;
                slot
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        *self.link_after(before) = slot;
        *self.link_before(after) = slot;
        slot
    }

    /// Take out the message `seq` of `slot`; None if it is no longer there.
    pub fn remove(&mut self, slot: u32, seq: u64) -> Option<Taken> {
        let node = self.nodes.get_mut(slot as usize)?;
        if node.seq != seq {
            return None;
        }
        let packet = node.packet.take()?;
        let (ticket, before, after) = (node.ticket, node.before, node.after);
        node.seq = 0; // no message has this number: entries in indexes turn stale
        *self.link_after(before) = after;
        *self.link_before(after) = before;
        self.len -= 1;
        self.free.push(slot);
        Some(Taken { seq, packet, ticket })
    }

    fn link_after(&mut self, slot: u32) -> &mut u32 {
        match slot {
            NIL => &mut self.head,
            slot => &mut self.nodes[slot as usize].after,
        }
    }
    fn link_before(&mut self, slot: u32) -> &mut u32 {
        match slot {
            NIL => &mut self.tail,
            slot => &mut self.nodes[slot as usize].before,
        }
    }

    /// The slot of the last message up to number `seq`, searched from the tail.
    pub fn last_up_to(&self, seq: u64) -> u32 {
        let mut slot = self.tail;
        while slot != NIL && self.node(slot).seq > seq {
            slot = self.node(slot).before;
        }
        slot
    }

    /// The slot of the first message after number `seq`.
    pub fn first_after(&self, seq: u64) -> u32 {
        match seq {
            0 => self.head,
            seq => self.after(self.last_up_to(seq)),
        }
    }

    /// The same if no more than `limit` messages are behind it; otherwise None.
    pub fn shortly_after(&self, seq: u64, limit: usize) -> Option<u32> {
        let mut slot = self.tail;
        for _ in 0..=limit {
            if slot == NIL || self.node(slot).seq <= seq {
                return Some(self.after(slot));
            }
            slot = self.node(slot).before;
        }
        None
    }

    fn after(&self, slot: u32) -> u32 {
        match slot {
            NIL => self.head,
            slot => self.node(slot).after,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Node> {
        let mut slot = self.head;
        std::iter::from_fn(move || {
            let node = self.get(slot)?;
            slot = node.after;
            Some(node)
        })
    }
}
