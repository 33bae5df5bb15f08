//! The inbox's queue: arrival order, and finding the first message that matches a template.
//!
//! Semantics are those of the paper's linear walk (section 4.3): the first message in arrival
//! order that has every attribute of the template with an equal value. The walk is done for the
//! first few messages. Where it grows long, the queue starts to keep an index for the attribute
//! names that templates really use: name -> value -> messages. Then the cost of `recv(tag=x)`
//! does not grow with the messages that do not match, and a long queue is not walked at all. What
//! is never asked for costs nothing.
//!
//! Pure: no I/O, no locks, no Python. What only Python can compare (a pickled value, a
//! predicate) is reported as a *candidate*: natively it fits, the caller decides.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::packet::Packet;
use crate::value::{key_of, Wanted};

mod index;
mod template;

use index::{trim, Index};
pub use template::{matches, Condition, Template};

/// Messages that a receive looks at before it asks for an index.
const PATIENCE: usize = 32;
/// A queue of so many messages is walked even if there is an index: that is faster.
const SHORT: usize = 8;
/// Attribute names that may have an index; beyond them, receives walk.
const MAX_INDEXES: usize = 16;

const NIL: u32 = u32::MAX;

/// A queued message that fits as far as can be said natively.
#[derive(Clone)]
pub struct Candidate {
    pub seq: u64,
    pub slot: u32,
    pub packet: Arc<Packet>,
    /// Nothing is left for Python to compare.
    pub certain: bool,
}

/// What left the queue.
pub struct Taken {
    pub seq: u64,
    pub packet: Arc<Packet>,
    pub ticket: Ticket,
}

/// How a message came in.
#[derive(Clone, Copy, Default)]
pub struct Ticket {
    pub lane: u32,
    /// The sender waits to hear that this message was received.
    pub ack: bool,
    /// Its sender has been given credit for it: it was received before, and put back.
    pub paid: bool,
    /// Which message of its lane it is, from 1 on.
    pub number: u64,
}

struct Node {
    seq: u64,
    before: u32,
    after: u32,
    ticket: Ticket,
    packet: Option<Arc<Packet>>,
}

/// Messages that arrived and were not received.
pub struct Queue {
    nodes: Vec<Node>,
    free: Vec<u32>,
    head: u32,
    tail: u32,
    len: usize,
    bytes: u64,
    next_seq: u64,
    /// By attribute name. Few, so that a list is faster than a map.
    indexes: Vec<(Box<str>, Index)>,
    /// Entries in indexes whose message has left.
    stale: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            nodes: Vec::new(),
            free: Vec::new(),
            head: NIL,
            tail: NIL,
            len: 0,
            bytes: 0,
            next_seq: 1,
            indexes: Vec::new(),
            stale: 0,
        }
    }
}

impl Queue {
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Bytes of the queued packets.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// The number that the next message will get. Numbers only grow.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Append a message that arrived now.
    pub fn push(&mut self, packet: Arc<Packet>, ticket: Ticket) {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.insert(Taken { seq, packet, ticket }, self.tail);
    }

    /// Put back what was taken, at the place that it had.
    pub fn put_back(&mut self, taken: Taken) {
        let mut before = self.tail;
        while before != NIL && self.nodes[before as usize].seq > taken.seq {
            before = self.nodes[before as usize].before;
        }
        self.insert(taken, before);
    }

    fn insert(&mut self, taken: Taken, before: u32) {
        let Taken { seq, packet, ticket } = taken;
        self.len += 1;
        self.bytes += packet.len() as u64;
        let after = if before == NIL { self.head } else { self.nodes[before as usize].after };
        let node = Node { seq, before, after, ticket, packet: Some(packet.clone()) };
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
        if !self.indexes.is_empty() {
            for one in packet.attributes() {
                if let Some((_, index)) =
                    self.indexes.iter_mut().find(|(name, _)| **name == *one.name)
                {
                    index.add(key_of(&one), seq, slot);
                }
            }
        }
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

    /// Take a candidate out; None if somebody else took it since.
    pub fn take(&mut self, candidate: &Candidate) -> Option<Taken> {
        let node = self.nodes.get_mut(candidate.slot as usize)?;
        if node.seq != candidate.seq {
            return None;
        }
        let packet = node.packet.take()?;
        let (seq, ticket, before, after) = (node.seq, node.ticket, node.before, node.after);
        node.seq = 0; // no message has this number: entries in indexes turn stale
        *self.link_after(before) = after;
        *self.link_before(after) = before;
        self.len -= 1;
        self.bytes -= packet.len() as u64;
        self.free.push(candidate.slot);
        if !self.indexes.is_empty() {
            let indexed = |name: &str| self.indexes.iter().any(|(own, _)| **own == *name);
            self.stale += packet.attributes().filter(|one| indexed(one.name)).count();
            if self.stale > 2 * self.len + 1024 {
                self.sweep();
            }
        }
        if self.len == 0 && self.nodes.len() > 4096 {
            *self = Queue { next_seq: self.next_seq, ..Queue::default() }; // give a burst's memory back
        }
        Some(Taken { seq, packet, ticket })
    }

    /// The first message after `cursor` (a sequence number; 0 for the beginning) that fits as far
    /// as can be said natively. The caller that rejects it asks again with its number and `slot`.
    ///
    /// Cost: O(1) in the messages that do not fit, once a walk was long enough to build the index;
    /// O(n) where no condition is native.
    pub fn find(
        &mut self,
        template: &Template<'_>,
        cursor: u64,
        near: Option<u32>,
    ) -> Option<Candidate> {
        if self.len > SHORT && !self.indexes.is_empty() {
            if let Some(nth) = self.best_index(template) {
                return self.find_indexed(nth, template, cursor);
            }
        }
        let mut slot = match (cursor, near.and_then(|slot| self.nodes.get(slot as usize))) {
            (0, _) => self.head,
            // The message that the caller looked at last is still there.
            (_, Some(node)) if node.seq == cursor => node.after,
            _ => match self.first_after(template, cursor) {
                Start::At(slot) => slot,
                Start::Indexed(nth) => return self.find_indexed(nth, template, cursor),
            },
        };
        let mut steps = 0;
        while slot != NIL {
            let node = &self.nodes[slot as usize];
            if let Some(certain) = fits(template, node) {
                return Some(self.candidate(slot, certain));
            }
            let cursor = node.seq;
            slot = node.after;
            steps += 1;
            if steps == PATIENCE {
                if let Some(nth) = self.choose_index(template) {
                    return self.find_indexed(nth, template, cursor);
                }
            }
        }
        None
    }

    /// Where a walk resumes behind `cursor`: at the tail when little has arrived since, else
    /// through an index, else from the front.
    fn first_after(&mut self, template: &Template<'_>, cursor: u64) -> Start {
        let mut slot = self.tail;
        for _ in 0..PATIENCE {
            if slot == NIL {
                return Start::At(self.head);
            }
            let node = &self.nodes[slot as usize];
            if node.seq <= cursor {
                return Start::At(node.after);
            }
            slot = node.before;
        }
        if let Some(nth) = self.choose_index(template) {
            return Start::Indexed(nth);
        }
        let mut slot = self.tail;
        while slot != NIL && self.nodes[slot as usize].seq > cursor {
            slot = self.nodes[slot as usize].before;
        }
        Start::At(if slot == NIL { self.head } else { self.nodes[slot as usize].after })
    }

    /// The most selective index that can serve the template; built now if there is none.
    fn choose_index(&mut self, template: &Template<'_>) -> Option<usize> {
        for one in template.conditions.iter().filter(|one| one.wanted.is_some()) {
            if self.index_of(one.name).is_none() && self.indexes.len() < MAX_INDEXES {
                let index = self.build(one.name);
                self.indexes.push((one.name.into(), index));
            }
        }
        self.best_index(template)
    }

    /// The most selective of the indexes that exist and can serve the template.
    fn best_index(&self, template: &Template<'_>) -> Option<usize> {
        let usable = template.conditions.iter().filter_map(|one| {
            let wanted = one.wanted.as_ref()?;
            Some((self.index_of(one.name)?, wanted))
        });
        let mut usable = usable.peekable();
        let first = usable.next()?;
        if usable.peek().is_none() {
            return Some(first.0);
        }
        let length = |&(nth, wanted): &(usize, &Wanted<'_>)| {
            let index = &self.indexes[nth].1;
            index.keyed.get(&wanted.key()).map_or(0, VecDeque::len) + index.opaque.len()
        };
        std::iter::once(first).chain(usable).min_by_key(length).map(|one| one.0)
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        self.indexes.iter().position(|(own, _)| **own == *name)
    }

    fn build(&self, name: &str) -> Index {
        let mut index = Index::default();
        let mut slot = self.head;
        while slot != NIL {
            let node = &self.nodes[slot as usize];
            if let Some(one) = node.packet.as_ref().and_then(|packet| packet.find(name)) {
                index.add(key_of(&one), node.seq, slot);
            }
            slot = node.after;
        }
        index
    }

    fn sweep(&mut self) {
        self.stale = 0;
        for nth in 0..self.indexes.len() {
            self.indexes[nth].1 = self.build(&self.indexes[nth].0);
        }
    }

    fn find_indexed(
        &mut self,
        nth: usize,
        template: &Template<'_>,
        cursor: u64,
    ) -> Option<Candidate> {
        let (name, index) = &mut self.indexes[nth];
        let condition = template.conditions.iter().find(|one| *one.name == **name)?;
        let key = condition.wanted.as_ref()?.key();
        let nodes = &self.nodes;
        let mut dropped = trim(&mut index.opaque, nodes);
        if let Some(list) = index.keyed.get_mut(&key) {
            dropped += trim(list, nodes);
            if list.is_empty() {
                index.keyed.remove(&key);
            }
        }
        self.stale = self.stale.saturating_sub(dropped);
        let index = &self.indexes[nth].1;
        let empty = VecDeque::new();
        let (keyed, opaque) = (index.keyed.get(&key).unwrap_or(&empty), &index.opaque);
        // Merge the two lists, so that candidates come in arrival order.
        let behind = |list: &VecDeque<(u64, u32)>| list.partition_point(|one| one.0 <= cursor);
        let (mut k, mut o) = (behind(keyed), behind(opaque));
        loop {
            let (seq, slot) = match (keyed.get(k), opaque.get(o)) {
                (Some(a), Some(b)) if a.0 < b.0 => (k += 1, *a).1,
                (_, Some(b)) => (o += 1, *b).1,
                (Some(a), None) => (k += 1, *a).1,
                (None, None) => return None,
            };
            let node = &self.nodes[slot as usize];
            if node.seq == seq {
                if let Some(certain) = fits(template, node) {
                    return Some(self.candidate(slot, certain));
                }
            }
        }
    }

    fn candidate(&self, slot: u32, certain: bool) -> Candidate {
        let node = &self.nodes[slot as usize];
        let packet = node.packet.clone().expect("a linked node holds a packet");
        Candidate { seq: node.seq, slot, packet, certain }
    }

    /// The first messages in arrival order, for an observer.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        let mut slot = self.head;
        std::iter::from_fn(move || {
            let node = self.nodes.get(slot as usize)?;
            slot = node.after;
            node.packet.as_deref()
        })
    }
}

enum Start {
    At(u32),
    Indexed(usize),
}

/// None: does not match. Some(certain): matches, or may match if Python agrees.
fn fits(template: &Template<'_>, node: &Node) -> Option<bool> {
    let packet = node.packet.as_ref()?;
    matches(template, packet)
}

#[cfg(test)]
mod tests;
