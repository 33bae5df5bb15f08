//! Finding messages by the value of an attribute.

use std::collections::{HashMap, VecDeque};

use super::list::List;
use crate::value::{Key, Keyed};

/// Messages by the value of one attribute. Lists are in arrival order; an entry whose message
/// has left is recognised by its sequence number and dropped when somebody comes by.
#[derive(Default)]
pub struct Index {
    pub keyed: HashMap<Key, VecDeque<(u64, u32)>>,
    pub opaque: VecDeque<(u64, u32)>,
}

impl Index {
    /// Add an entry at its place.
    pub fn add(&mut self, key: Keyed, seq: u64, slot: u32) {
        let list = match key {
            Keyed::Key(key) => self.keyed.entry(key).or_default(),
            Keyed::Opaque => &mut self.opaque,
            Keyed::Nothing => return,
        };
        // Nearly always the end; what is put back belongs in front of later arrivals.
        let at = list.partition_point(|one| one.0 < seq);
        if at == list.len() {
            list.push_back((seq, slot));
        } else {
            list.insert(at, (seq, slot));
        }
    }

    /// Drop entries in front whose message has left, of those that `key` may match: how many; and
    /// whether there are others.
    pub fn trim(&mut self, key: &Key, list: &List) -> (usize, bool) {
        let mut dropped = trim(&mut self.opaque, list);
        let Some(own) = self.keyed.get_mut(key) else { return (dropped, !self.opaque.is_empty()) };
        dropped += trim(own, list);
        if own.is_empty() {
            self.keyed.remove(key);
            return (dropped, !self.opaque.is_empty());
        }
        (dropped, true)
    }

    /// Entries (number, slot) behind `cursor` that `key` may match, in arrival order.
    pub fn candidates(&self, key: &Key, cursor: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        static NONE: VecDeque<(u64, u32)> = VecDeque::new();
        let behind = |list: &'_ VecDeque<(u64, u32)>| list.partition_point(|one| one.0 <= cursor);
        let (keyed, opaque) = (self.keyed.get(key).unwrap_or(&NONE), &self.opaque);
        let mut keyed = keyed.range(behind(keyed)..).copied().peekable();
        let mut opaque = opaque.range(behind(opaque)..).copied().peekable();
        std::iter::from_fn(move || match (keyed.peek(), opaque.peek()) {
            (Some(a), Some(b)) if a.0 > b.0 => opaque.next(),
            (Some(_), _) => keyed.next(),
            (None, _) => opaque.next(),
        })
    }
}

fn trim(entries: &mut VecDeque<(u64, u32)>, list: &List) -> usize {
    let mut dropped = 0;
    while entries.front().is_some_and(|&(seq, slot)| list.node(slot).seq != seq) {
        entries.pop_front();
        dropped += 1;
    }
    dropped
}
