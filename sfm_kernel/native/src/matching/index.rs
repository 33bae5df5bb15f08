//! Finding messages by the value of an attribute.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::OnceLock;

use super::list::List;
use crate::value::{Native, Scalar};

/// The key of a value in an index. Different values may have the same key: the finder compares.
pub fn hash(value: &Scalar<'_>) -> u64 {
    static STATE: OnceLock<RandomState> = OnceLock::new();
    STATE.get_or_init(RandomState::new).hash_one(value)
}

/// The hash of a value that is a hash already.
#[derive(Default)]
pub struct Same(u64);

impl Hasher for Same {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes are hashed");
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Messages by the value of one attribute. Lists are in arrival order; an entry whose message has
/// left is recognised by its sequence number and dropped when a search meets it.
#[derive(Default)]
pub struct Index {
    pub keyed: HashMap<u64, VecDeque<(u64, u32)>, BuildHasherDefault<Same>>,
    /// Those that only Python can compare.
    pub opaque: VecDeque<(u64, u32)>,
}

impl Index {
    /// Add an entry at its position.
    pub fn add(&mut self, value: Native<'_>, seq: u64, slot: u32) {
        let list = match value {
            Native::Scalar(value) => self.keyed.entry(hash(&value)).or_default(),
            Native::Opaque => &mut self.opaque,
            Native::Nothing => return,
        };
        // Nearly always the end; a message that is put back belongs in front of later arrivals.
        let position = list.partition_point(|entry| entry.0 < seq);
        if position == list.len() {
            list.push_back((seq, slot));
        } else {
            list.insert(position, (seq, slot));
        }
    }

    /// Drop the leading entries that `key` may match and whose message has left. Returns their
    /// number, and whether there are others.
    pub fn trim(&mut self, key: u64, list: &List) -> (usize, bool) {
        let mut dropped = trim(&mut self.opaque, list);
        let Some(keyed) = self.keyed.get_mut(&key) else {
            return (dropped, !self.opaque.is_empty());
        };
        dropped += trim(keyed, list);
        if keyed.is_empty() {
            self.keyed.remove(&key);
            return (dropped, !self.opaque.is_empty());
        }
        (dropped, true)
    }

    /// Entries (number, slot) behind `cursor` that `key` may match, in arrival order.
    pub fn candidates(&self, key: u64, cursor: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        static NONE: VecDeque<(u64, u32)> = VecDeque::new();
        let behind =
            |list: &'_ VecDeque<(u64, u32)>| list.partition_point(|entry| entry.0 <= cursor);
        let (keyed, opaque) = (self.keyed.get(&key).unwrap_or(&NONE), &self.opaque);
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
