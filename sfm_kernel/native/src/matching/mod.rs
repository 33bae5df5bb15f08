//! The inbox's queue: arrival order, and finding the first message that matches a template.
//!
//! Semantics are those of the paper's linear walk (section 4.3): the first message in arrival order
//! that has every attribute of the template with an equal value. The walk is done for the first few
//! messages. When it grows long, the queue starts to keep an index for the attribute names that
//! templates really use: name -> value -> messages. Then the cost of `recv(tag=x)` does not grow
//! with the messages that do not match, and a long queue is not walked at all. Unused attributes
//! cost nothing.
//!
//! Pure: no I/O, no locks, no Python. A message with values that only Python can compare (a pickled
//! value, a predicate) is reported as a *candidate*: natively it fits, the caller decides.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::packet::Packet;
use crate::value::{from_attribute, Scalar};

mod index;
mod list;
mod message;
mod template;

use index::{hash, Index};
use list::{List, NIL};
pub use message::{Candidate, Taken, Ticket};
pub use template::{matches, Condition, Numbers, Template};

/// Messages that a receive compares before it uses an index. This many of the latest are in no
/// index, either: most are received at once and never need to be.
const PATIENCE: usize = 32;
/// Length up to which a queue is walked even if there is an index: that is faster.
const SHORT: usize = 8;
/// Attribute names that may have an index; beyond them, receives walk.
const MAX_INDEXES: usize = 16;

/// Messages that arrived and were not received.
pub struct Queue {
    list: List,
    bytes: u64,
    next_seq: u64,
    /// By attribute name. Few, so that a list is faster than a map.
    indexes: Vec<(Box<str>, Index)>,
    /// Entries in indexes whose message has left.
    stale: usize,
    /// The first message that is in no index (those behind it are not, either), and how many.
    fresh: u32,
    fresh_len: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            list: List::default(),
            bytes: 0,
            next_seq: 1,
            indexes: Vec::new(),
            stale: 0,
            fresh: NIL,
            fresh_len: 0,
        }
    }
}

impl Queue {
    /// A queue whose first message gets this number.
    pub fn starting_at(next_seq: u64) -> Queue {
        Queue { next_seq, ..Queue::default() }
    }
    pub fn len(&self) -> usize {
        self.list.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
        self.insert(Taken { seq, packet, ticket }, self.list.tail());
    }

    /// Put a taken message back at its old position.
    pub fn put_back(&mut self, taken: Taken) {
        let before = self.list.last_up_to(taken.seq);
        self.insert(taken, before);
    }

    fn insert(&mut self, taken: Taken, before: u32) {
        let seq = taken.seq;
        self.bytes += taken.packet.len() as u64;
        let slot = self.list.insert(taken, before);
        if self.indexes.is_empty() {
            return;
        }
        if self.is_fresh(seq) {
            self.fresh_len += 1;
        } else if slot == self.list.tail() {
            (self.fresh, self.fresh_len) = (slot, 1);
        } else {
            self.index(slot);
        }
    }

    /// Whether a message of this number is, or belongs, behind the first that is in no index.
    fn is_fresh(&self, seq: u64) -> bool {
        self.fresh != NIL && seq >= self.list.node(self.fresh).seq
    }

    /// Add a message to all indexes.
    fn index(&mut self, slot: u32) {
        let node = self.list.node(slot);
        for attribute in node.packet().attributes() {
            if let Some((_, index)) =
                self.indexes.iter_mut().find(|(name, _)| **name == *attribute.name)
            {
                index.add(from_attribute(&attribute), node.seq, slot);
            }
        }
    }

    /// Add the messages that are in no index to all of them.
    fn index_fresh(&mut self) {
        let mut slot = std::mem::replace(&mut self.fresh, NIL);
        self.fresh_len = 0;
        while slot != NIL {
            self.index(slot);
            slot = self.list.node(slot).after;
        }
    }

    /// Take a candidate out; None if another thread has taken it since.
    pub fn take(&mut self, candidate: &Candidate) -> Option<Taken> {
        self.take_out(candidate.slot, candidate.seq)
    }

    fn take_out(&mut self, slot: u32, seq: u64) -> Option<Taken> {
        let fresh = self.is_fresh(seq);
        let after = self.list.get(slot)?.after;
        let taken = self.list.remove(slot, seq)?;
        self.bytes -= taken.packet.len() as u64;
        if fresh {
            self.fresh_len -= 1;
            if self.fresh == slot {
                self.fresh = after;
            }
        } else if !self.indexes.is_empty() {
            let indexed =
                |name: &str| self.indexes.iter().any(|(indexed_name, _)| **indexed_name == *name);
            self.stale +=
                taken.packet.attributes().filter(|attribute| indexed(attribute.name)).count();
            if self.stale > 2 * self.len() + 1024 {
                self.sweep();
            }
        }
        if self.is_empty() && self.list.capacity() > 4096 {
            *self = Queue::starting_at(self.next_seq); // give a burst's memory back
        }
        Some(taken)
    }

    /// The first message after `cursor` (a sequence number; 0 for the beginning) that fits as far
    /// as native comparison goes. A caller that rejects it asks again with its number and `slot`.
    ///
    /// Cost: O(1) in the messages that do not fit, once a walk was long enough to build the index;
    /// O(n) if no condition is native.
    pub fn find(
        &mut self,
        template: &Template<'_>,
        cursor: u64,
        near: Option<u32>,
    ) -> Option<Candidate> {
        self.first_fit(template, cursor, near).map(|fit| self.candidate(fit))
    }

    /// `find`, which takes a message out at once if nothing is left for Python to compare.
    pub fn find_or_take(
        &mut self,
        template: &Template<'_>,
        cursor: u64,
        near: Option<u32>,
    ) -> Option<Result<Taken, Candidate>> {
        let fit = self.first_fit(template, cursor, near)?;
        if !fit.certain {
            return Some(Err(self.candidate(fit)));
        }
        let seq = self.list.node(fit.slot).seq;
        Some(Ok(self.take_out(fit.slot, seq).expect("just found")))
    }

    fn candidate(&self, Fit { slot, certain }: Fit) -> Candidate {
        let node = self.list.node(slot);
        Candidate { seq: node.seq, slot, packet: node.packet().clone(), certain }
    }

    fn first_fit(
        &mut self,
        template: &Template<'_>,
        cursor: u64,
        near: Option<u32>,
    ) -> Option<Fit> {
        let from = match (cursor, near.and_then(|slot| self.list.get(slot))) {
            (0, _) => None,
            // The last message that the caller has compared is still there.
            (_, Some(node)) if node.seq == cursor && self.best_index(template).is_none() => {
                Some(node.after)
            }
            _ => self.list.shortly_after(cursor, PATIENCE),
        };
        let slot = match from {
            Some(slot) => slot,
            None => {
                if self.len() > SHORT {
                    let index = match cursor {
                        // Most programs receive in the order of arrival.
                        0 => match self.walk(self.list.head(), template, 1) {
                            Walk::Found(fit) => return Some(fit),
                            _ => self.best_index(template),
                        },
                        _ => self.choose_index(template),
                    };
                    if let Some(nth) = index {
                        return self.find_indexed(nth, template, cursor);
                    }
                }
                self.list.first_after(cursor)
            }
        };
        match self.walk(slot, template, PATIENCE) {
            Walk::Found(fit) => Some(fit),
            Walk::End => None,
            Walk::Tired(slot) => match self.choose_index(template) {
                Some(nth) => {
                    let seen = self.list.node(slot).seq - 1;
                    self.find_indexed(nth, template, seen)
                }
                None => match self.walk(slot, template, usize::MAX) {
                    Walk::Found(fit) => Some(fit),
                    _ => None,
                },
            },
        }
    }

    /// Compare one after the other, from `slot` on.
    fn walk(&self, mut slot: u32, template: &Template<'_>, patience: usize) -> Walk {
        let mut steps = 0;
        while slot != NIL {
            if steps == patience {
                return Walk::Tired(slot);
            }
            let node = self.list.node(slot);
            if let Some(certain) = matches(template, node.packet()) {
                return Walk::Found(Fit { slot, certain });
            }
            slot = node.after;
            steps += 1;
        }
        Walk::End
    }

    /// The most selective index that can serve the template; built now if there is none.
    fn choose_index(&mut self, template: &Template<'_>) -> Option<usize> {
        for condition in template.conditions.iter().filter(|condition| condition.expected.is_some())
        {
            if self.index_of(condition.name).is_none() && self.indexes.len() < MAX_INDEXES {
                self.index_fresh();
                let index = self.build(condition.name);
                self.indexes.push((condition.name.into(), index));
            }
        }
        self.best_index(template)
    }

    /// The most selective of the indexes that exist and can serve the template.
    fn best_index(&self, template: &Template<'_>) -> Option<usize> {
        let usable = template.conditions.iter().filter_map(|condition| {
            let expected = condition.expected.as_ref()?;
            Some((self.index_of(condition.name)?, expected))
        });
        let mut usable = usable.peekable();
        let first = usable.next()?;
        if usable.peek().is_none() {
            return Some(first.0);
        }
        let length = |&(nth, expected): &(usize, &Scalar<'_>)| {
            let index = &self.indexes[nth].1;
            index.keyed.get(&hash(expected)).map_or(0, VecDeque::len) + index.opaque.len()
        };
        std::iter::once(first).chain(usable).min_by_key(length).map(|choice| choice.0)
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        self.indexes.iter().position(|(indexed_name, _)| **indexed_name == *name)
    }

    /// The index of all messages but the fresh ones.
    fn build(&self, name: &str) -> Index {
        let mut index = Index::default();
        let mut slot = self.list.head();
        while slot != self.fresh {
            let node = self.list.node(slot);
            if let Some(attribute) = node.packet().find(name) {
                index.add(from_attribute(&attribute), node.seq, slot);
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

    /// The first match after `cursor`, by index as far as that goes.
    fn find_indexed(&mut self, nth: usize, template: &Template<'_>, cursor: u64) -> Option<Fit> {
        if self.fresh_len > PATIENCE {
            self.index_fresh();
        }
        let (name, index) = &mut self.indexes[nth];
        let condition = template.conditions.iter().find(|condition| *condition.name == **name)?;
        let key = hash(condition.expected.as_ref()?);
        let (dropped, some) = index.trim(key, &self.list);
        self.stale = self.stale.saturating_sub(dropped);
        if some {
            for (seq, slot) in self.indexes[nth].1.candidates(key, cursor) {
                let node = self.list.node(slot);
                if node.seq == seq {
                    if let Some(certain) = matches(template, node.packet()) {
                        return Some(Fit { slot, certain });
                    }
                }
            }
        }
        let mut slot = self.fresh;
        while slot != NIL && self.list.node(slot).seq <= cursor {
            slot = self.list.node(slot).after;
        }
        match self.walk(slot, template, usize::MAX) {
            Walk::Found(fit) => Some(fit),
            _ => None,
        }
    }

    /// The first messages in arrival order, for an observer.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.list.iter().map(|node| &**node.packet())
    }
}

/// A message that fits as far as native comparison goes: its slot, and whether that decides it.
struct Fit {
    slot: u32,
    certain: bool,
}

/// The result of a walk.
enum Walk {
    Found(Fit),
    End,
    /// It has compared as many messages as it may; the next is in this slot.
    Tired(u32),
}

#[cfg(all(test, not(loom)))]
mod tests;
