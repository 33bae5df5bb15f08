//! Finding messages by the value of an attribute.

use std::collections::{HashMap, VecDeque};

use super::Node;
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
}

/// Drop entries at the front whose message has left; how many.
pub fn trim(list: &mut VecDeque<(u64, u32)>, nodes: &[Node]) -> usize {
    let mut dropped = 0;
    while list.front().is_some_and(|&(seq, slot)| nodes[slot as usize].seq != seq) {
        list.pop_front();
        dropped += 1;
    }
    dropped
}
