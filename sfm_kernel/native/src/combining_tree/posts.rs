//! Calls in which data goes one way, from a member to one or all others: broadcasts, reductions to
//! a root. The member posts its data in a cell of its own and goes on; it waits for nobody.
//!
//! Calls are numbered, equally by all members. Each member has `CELLS` cells, and the cell of a call
//! is that of its number modulo `CELLS`; a stamp says of which call the post in it is. A cell is
//! written again `CELLS` calls later, so its readers must have come past the call by then. They
//! publish how far they have come, but only once in `HALF` calls: what a writer reads stays in its
//! cache between.
//!
//! Source of the idea (release and gather through cells, with a few calls on their way at a time):
//! S. Jain, R. Kaleem, M. Balmana et al., "Framework for Scalable Intra-Node Collective Operations
//! using Shared Memory", SC18.

#[cfg(not(loom))]
use crate::code_location::CodeLocation;
use crate::sync::{full_fence, AtomicU32, AtomicU64, Ordering, Padded};

/// Cells of a member. The model has few, and they are used again all the same.
pub const CELLS: u64 = if cfg!(loom) { 2 } else { 8 };
const HALF: u64 = CELLS / 2;

/// The call of a post, plus one; 0 before the first.
#[derive(Default)]
#[repr(C)]
pub struct Stamp(AtomicU64);

impl Stamp {
    /// The post of call `nth` is written. True if members may sleep, and have to be woken.
    pub fn publish(&self, nth: u64, sleepers: &Sleepers) -> bool {
        // SYNC POINT combining_tree/post: Release for the post, with the Acquire in `call`.
        self.0.store(nth + 1, Ordering::Release);
        sleepers.have_to_be_woken()
    }

    pub fn is_of(&self, nth: u64) -> bool {
        self.call() == Some(nth)
    }

    /// The call of the post.
    pub fn call(&self) -> Option<u64> {
        // SYNC POINT combining_tree/post: with `publish`.
        self.0.load(Ordering::Acquire).checked_sub(1)
    }
}

/// The number of members that may sleep until others post, or until others have come further.
#[derive(Default)]
#[repr(C)]
pub struct Sleepers(Padded<AtomicU32>);

impl Sleepers {
    /// Called before a member looks for the last time and sleeps.
    pub fn enter(&self) {
        self.0 .0.fetch_add(1, Ordering::Relaxed);
        // SYNC POINT combining_tree/sleepers: either the sleeper sees the news, or its publisher
        // the sleeper: the fence of one comes after that of the other.
        full_fence();
    }

    pub fn leave(&self) {
        self.0 .0.fetch_sub(1, Ordering::Relaxed);
    }

    fn have_to_be_woken(&self) -> bool {
        // SYNC POINT combining_tree/sleepers: with `enter`.
        full_fence();
        self.0 .0.load(Ordering::Relaxed) > 0
    }
}

/// How far a member has come, in halves of its cells.
#[derive(Default)]
#[repr(C)]
pub struct Reached(Padded<AtomicU64>);

impl Reached {
    /// The member has come to call `nth`, and reads no post of earlier ones any more. `half`: its
    /// own record of what it has published. True if members may sleep, and have to be woken.
    pub fn publish(&self, half: &mut u64, nth: u64, sleepers: &Sleepers) -> bool {
        if nth / HALF == *half {
            return false;
        }
        *half = nth / HALF;
        // SYNC POINT combining_tree/reached: Release for what it has read, with `behind`.
        self.0 .0.store(*half, Ordering::Release);
        sleepers.have_to_be_woken()
    }
}

/// The first member that may still read the former post in the cell of call `nth`.
pub fn behind(reached: &[Reached], nth: u64) -> Option<usize> {
    // SYNC POINT combining_tree/reached: Acquire, since the caller then writes to what they have read.
    reached.iter().position(|one| one.0 .0.load(Ordering::Acquire) + 1 < nth / HALF)
}

/// The call after the last one for whose post there is room if there is for that of call `nth`.
pub fn end_of_room(nth: u64) -> u64 {
    (nth / HALF + 1) * HALF
}

/// The cell of call `nth` among those of a member.
pub fn index(nth: u64) -> usize {
    (nth % CELLS) as usize
}

/// Most bytes of a post. So many that cells do not begin at the same place of a page, where they
/// would take each other's place in the cache.
#[cfg(not(loom))]
pub const ROOM: usize = 2048 + 32;

#[cfg(not(loom))]
#[repr(C, align(64))]
pub struct Cell {
    pub stamp: Stamp,
    /// The call and its details; what else decides whether calls match is the caller's.
    pub call: [u64; 2],
    /// The writer's location in its program.
    pub location: CodeLocation,
    pub bytes: [u8; ROOM],
}
