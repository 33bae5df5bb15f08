//! Finding messages by the value of an attribute.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::OnceLock;

use super::list::List;
use crate::value::{Native, Scalar};

/// What a value is found by. Different values may have the same: who finds a message compares.
pub fn hash(value: &Scalar<'_>) -> u64 {
    static STATE: OnceLock<RandomState> = OnceLock::new();
    STATE.get_or_init(RandomState::new).hash_one(value)
}

/// The hash of what is a hash already.
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

/// Messages by the value of one attribute. Lists are in arrival order; an entry whose message
/// has left is recognised by its sequence number and dropped when somebody comes by.
#[derive(Default)]
pub struct Index {
    pub keyed: HashMap<u64, VecDeque<(u64, u32)>, BuildHasherDefault<Same>>,
    /// Those that only Python can compare.
    pub opaque: VecDeque<(u64, u32)>,
}

impl Index {
    /// Add an entry at its place.
    pub fn add(&mut self, value: Native<'_>, seq: u64, slot: u32) {
        let list = match value {
            Native::Scalar(value) => self.keyed.entry(hash(&value)).or_default(),
            Native::Opaque => &mut self.opaque,
            Native::Nothing => return,
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
    pub fn trim(&mut self, key: u64, list: &List) -> (usize, bool) {
        let mut dropped = trim(&mut self.opaque, list);
        let Some(own) = self.keyed.get_mut(&key) else { return (dropped, !self.opaque.is_empty()) };
        dropped += trim(own, list);
        if own.is_empty() {
            self.keyed.remove(&key);
            return (dropped, !self.opaque.is_empty());
        }
        (dropped, true)
    }

    /// Entries (number, slot) behind `cursor` that `key` may match, in arrival order.
    pub fn candidates(&self, key: u64, cursor: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        static NONE: VecDeque<(u64, u32)> = VecDeque::new();
        let behind = |list: &'_ VecDeque<(u64, u32)>| list.partition_point(|one| one.0 <= cursor);
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
