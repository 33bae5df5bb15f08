//! The arena: memory in which a sender puts large values, once, and lends them to the receiver.
//!
//! Each ring has one behind it, in the same file. The sender copies a packet's buffers into a block
//! and publishes the block's offset through the ring. From then on that memory is the receiver's:
//! its array is the block. When the array dies the block goes back, by a flag that only this block
//! has. Only the sender knows everything else about the arena, so that a receiver killed at any
//! instruction cannot damage it.
//!
//! The pages are reserved when they are first used, lowest first, and reused as long as they are
//! warm: a fresh page costs far more than copying into one that both sides have mapped. If there is
//! no room, packets go through the ring as if there were no arena: a receiver that keeps its
//! arrays, or a small /dev/shm, never stops a sender.

use std::collections::BTreeMap;

use crate::sync::{AtomicU32, Ordering};

/// Blocks that can be lent at one time.
pub const BLOCKS: usize = 512;
/// Blocks begin and end at pages, so that two never share one.
pub const PAGE: u64 = 4096;

/// The shared state of one block.
#[derive(Default)]
pub struct Flag(AtomicU32);

impl Flag {
    /// The sender lends the block.
    pub fn lend(&self) {
        // The receiver sees it through the ring's `head`.
        self.0.store(1, Ordering::Relaxed);
    }
    /// The receiver gives the block back.
    pub fn give_back(&self) {
        // SYNC POINT arena/return: Release with the sender's Acquire in `is_lent`: what the
        // receiver read and wrote there is over before the block is used again.
        self.0.store(0, Ordering::Release);
    }
    /// Whether the receiver still has it.
    pub fn is_lent(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}

/// A block: the index of its flag, and its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub index: usize,
    pub offset: u64,
    pub length: u64,
}

/// The sender's knowledge of its arena.
pub struct Arena {
    /// Free space by offset; neighbours are merged.
    free: BTreeMap<u64, u64>,
    lent: Vec<Block>,
    indexes: Vec<usize>,
    /// All pages below this offset were reserved.
    reserved: u64,
}

impl Arena {
    pub fn new(size: u64) -> Arena {
        let mut free = BTreeMap::new();
        if size >= PAGE {
            free.insert(0, size & !(PAGE - 1));
        }
        Arena { free, lent: Vec::new(), indexes: (0..BLOCKS).rev().collect(), reserved: 0 }
    }

    /// Space for `length` bytes: the lowest that fits. None if there is none.
    pub fn allocate(&mut self, length: usize) -> Option<Block> {
        let length = (length.max(1) as u64).checked_next_multiple_of(PAGE)?;
        let (&offset, &space) = self.free.iter().find(|(_, space)| **space >= length)?;
        let index = self.indexes.pop()?;
        self.free.remove(&offset);
        if space > length {
            self.free.insert(offset + length, space - length);
        }
        let block = Block { index, offset, length };
        self.lent.push(block);
        Some(block)
    }

    /// Take back the blocks for which `returned` is true.
    pub fn reclaim(&mut self, returned: impl Fn(usize) -> bool) {
        let mut nth = 0;
        while nth < self.lent.len() {
            if returned(self.lent[nth].index) {
                let block = self.lent.swap_remove(nth);
                self.put_back(block);
            } else {
                nth += 1;
            }
        }
    }

    /// Take back a block that was never lent.
    pub fn release(&mut self, block: Block) {
        if let Some(nth) = self.lent.iter().position(|lent| lent.index == block.index) {
            self.lent.swap_remove(nth);
            self.put_back(block);
        }
    }

    fn put_back(&mut self, block: Block) {
        self.indexes.push(block.index);
        let (mut start, mut length) = (block.offset, block.length);
        if let Some((&before, &space)) = self.free.range(..start).next_back() {
            if before + space == start {
                self.free.remove(&before);
                (start, length) = (before, space + length);
            }
        }
        if let Some(space) = self.free.remove(&(start + length)) {
            length += space;
        }
        self.free.insert(start, length);
    }

    /// The pages that `block` needs and that were not reserved yet: (from, to).
    pub fn missing(&self, block: Block) -> Option<(u64, u64)> {
        let end = block.offset + block.length;
        (end > self.reserved).then_some((self.reserved, end))
    }

    /// The pages up to `end` are reserved.
    pub fn set_reserved(&mut self, end: u64) {
        self.reserved = end;
    }

    /// The unused pages at the end: (from, to). They are no longer reserved.
    pub fn trim(&mut self) -> Option<(u64, u64)> {
        let top = self.lent.iter().map(|block| block.offset + block.length).max().unwrap_or(0);
        let unused = (top < self.reserved).then_some((top, self.reserved));
        self.reserved = self.reserved.min(top);
        unused
    }

    /// Blocks that are lent.
    pub fn lent(&self) -> usize {
        self.lent.len()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::splitmix::SplitMix;

    #[test]
    fn blocks_never_overlap_and_all_space_comes_back() {
        let size = 64 * PAGE;
        let mut arena = Arena::new(size);
        let mut held: Vec<Block> = Vec::new();
        let mut random = SplitMix::new(12345);
        for _ in 0..20_000 {
            if random.below(2) == 0 {
                if let Some(block) = arena.allocate(random.below(6 * PAGE as usize)) {
                    assert!(block.offset + block.length <= size);
                    for other in &held {
                        assert_ne!(other.index, block.index);
                        let apart = other.offset + other.length <= block.offset
                            || block.offset + block.length <= other.offset;
                        assert!(apart, "{other:?} {block:?}");
                    }
                    held.push(block);
                }
            } else if !held.is_empty() {
                let removed = held.swap_remove(random.below(held.len()));
                if random.below(2) == 0 {
                    arena.release(removed);
                } else {
                    arena.reclaim(|index| index == removed.index);
                }
            }
            assert_eq!(arena.lent(), held.len());
        }
        arena.reclaim(|_| true);
        assert_eq!(arena.allocate(size as usize).unwrap().offset, 0);
        assert_eq!(arena.allocate(1), None);
    }

    #[test]
    fn no_more_blocks_than_flags() {
        let mut arena = Arena::new((BLOCKS as u64 + 8) * PAGE);
        for _ in 0..BLOCKS {
            arena.allocate(1).unwrap();
        }
        assert_eq!(arena.allocate(1), None);
        arena.reclaim(|index| index == 7);
        assert_eq!(arena.allocate(1).unwrap().index, 7);
    }

    #[test]
    fn pages_are_reserved_once_and_given_back_from_the_top() {
        let mut arena = Arena::new(100 * PAGE);
        let first = arena.allocate(10 * PAGE as usize).unwrap();
        assert_eq!(arena.missing(first), Some((0, 10 * PAGE)));
        arena.set_reserved(10 * PAGE);
        let second = arena.allocate(PAGE as usize).unwrap();
        assert_eq!(arena.missing(second), Some((10 * PAGE, 11 * PAGE)));
        arena.set_reserved(11 * PAGE);
        arena.release(second);
        assert_eq!(arena.trim(), Some((10 * PAGE, 11 * PAGE)));
        assert_eq!(arena.trim(), None);
        assert_eq!(arena.missing(first), None);
    }

    #[test]
    fn an_empty_arena_lends_nothing() {
        assert_eq!(Arena::new(100).allocate(1), None);
        assert_eq!(Arena::new(1 << 20).allocate(usize::MAX), None);
    }
}
