//! Large packets: their buffers go through the arena.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{RingSender, Writing};
use crate::arena::{Arena, Block};
use crate::core::Sender;
use crate::packet::Gather;
use crate::shm::room;

/// Time for which an arena keeps its memory after its last use.
const WARM: Duration = Duration::from_secs(2);
/// Bytes of buffers from which on they go through the arena: one copy instead of two, but some
/// system calls the first time, and at least one page.
const ARENA_FROM: usize = 8 << 10;

impl Sender for RingSender {
    /// Give back memory that the arena has not used for a while.
    fn tidy(&self) {
        if let Some(mut writing) = self.try_lock() {
            let writing = &mut *writing;
            if let Some(arena) = &mut writing.arena {
                if writing.used.elapsed() >= WARM {
                    let ring = writing.writer.memory();
                    arena.reclaim(|block| !ring.flag(block).is_lent());
                    if let Some((from, to)) = arena.trim() {
                        ring.discard(from, to);
                    }
                }
            }
        }
    }
}

impl Writing {
    /// Copy a large packet's buffers into the arena; None if they are small or there is no room,
    /// and the packet goes through the ring.
    pub(super) fn copy_to_arena(&mut self, packet: &Gather<'_>, folder: &Path) -> Option<Block> {
        let head = packet.head().len();
        let length = packet.len() - head;
        if length < ARENA_FROM {
            return None;
        }
        self.writer.split_room(head)?;
        let ring = self.writer.memory();
        let arena = match &mut self.arena {
            Some(arena) => arena,
            none => match ring.arena() {
                0 => return None, // the receiver has not opened the ring yet
                size => none.insert(Arena::new(size)),
            },
        };
        arena.reclaim(|block| !ring.flag(block).is_lent());
        let block = arena.allocate(length)?;
        if let Some((from, to)) = arena.missing(block) {
            if !may_reserve(folder, to - from) || !ring.populate(from, to) {
                ring.discard(from, to); // the pages that there was room for
                arena.release(block);
                return None;
            }
            arena.set_reserved(to);
        }
        // SAFETY: the block is as long as the buffers, and nobody else's.
        unsafe { packet.copy(head, ring.arena_memory(block.offset), length) };
        ring.flag(block.index).lend();
        self.used = Instant::now();
        Some(block)
    }
}

/// Whether arenas may grow by `needed` bytes: half of the file system stays free of them, for rings
/// and for other files.
fn may_reserve(folder: &Path, needed: u64) -> bool {
    room(folder).is_ok_and(|(free, limit)| free.saturating_sub(needed) >= limit / 2)
}
