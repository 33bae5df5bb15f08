//! The tree in shared memory.

use std::mem::size_of;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use super::climb::{arrive, Count, Decision, Shape};
use super::fold::{self, CellKind, Op};
use super::posts::{self, Reached, Sleepers, CELLS};
use crate::bell::{Bell, Woken};
use crate::code_location::CodeLocation;
use crate::core::Core;
use crate::shm::{Mapping, ShmError};
use crate::sync::Padded;

const MAGIC: u64 = u64::from_le_bytes(*b"SFMBRD\0\x01");

/// A member has decided, before all had mapped the tree, that nobody uses it.
const REFUSED: u32 = 1 << 31;

#[repr(C)]
struct Header {
    magic: AtomicU64,
    members: AtomicU32,
    /// The number of members that have mapped it, and `REFUSED`.
    attached: AtomicU32,
    decision: Decision,
    bell: Padded<Bell>,
    /// Members that may sleep until others post or have come further.
    sleepers: Sleepers,
}

/// One member's view of a tree.
pub struct CombiningTree {
    core: Arc<Core>,
    mapping: Mapping<Header>,
    /// A member had refused the tree before this one mapped it.
    is_refused: bool,
    shape: Shape,
    members: usize,
    rank: usize,
    /// The round that this member is in, or was in last.
    round: u64,
    /// How far this member has come, in halves of its cells for posts.
    half: u64,
    /// There is room for this member's posts in earlier calls.
    room_until: AtomicU64,
    /// Where the cells for posts begin.
    first_post: usize,
}

impl CombiningTree {
    /// The tree at `path` for this number of members, made if there is none; `rank`: this member.
    /// `has_posts`: whether there are cells for posts, too.
    pub fn open(
        core: Arc<Core>,
        path: &Path,
        fresh: &Path,
        members: usize,
        rank: usize,
        has_posts: bool,
    ) -> Result<CombiningTree, ShmError> {
        let shape = Shape::new(members);
        let cells = 2 * (members + shape.nodes());
        let first_post = CombiningTree::first_cell(&shape) + cells * size_of::<fold::Cell>();
        let for_posts = size_of::<Reached>() + CELLS as usize * size_of::<posts::Cell>();
        let length = first_post + if has_posts { members * for_posts } else { 0 };
        let mapping = Mapping::create_or_open(path, fresh, length, |header: &Mapping<Header>| {
            header.members.store(members as u32, Ordering::Relaxed);
            header.magic.store(MAGIC, Ordering::Release);
        })?;
        let fits = mapping.magic.load(Ordering::Acquire) == MAGIC
            && mapping.members.load(Ordering::Relaxed) == members as u32
            && mapping.len() >= length;
        if !fits {
            return Err(ShmError::Invalid(format!("{} is no such tree", path.display())));
        }
        // SYNC POINT combining_tree/attached: with `decide`.
        let attached = mapping.attached.fetch_add(1, Ordering::AcqRel);
        if (attached & !REFUSED) as usize + 1 == members {
            // Without a name it vanishes with its members, however they end.
            let _ = std::fs::remove_file(path);
        }
        Ok(CombiningTree {
            core,
            mapping,
            is_refused: attached & REFUSED != 0,
            shape,
            members,
            rank,
            round: 0,
            half: 0,
            room_until: AtomicU64::new(0),
            first_post,
        })
    }

    fn first_cell(shape: &Shape) -> usize {
        (size_of::<Header>() + shape.nodes() * size_of::<Count>()).next_multiple_of(4096)
    }

    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }
    pub fn members(&self) -> usize {
        self.members
    }
    /// This member.
    pub fn rank(&self) -> usize {
        self.rank
    }

    fn counts(&self) -> &[Count] {
        // SAFETY: behind the header, as many as the shape has nodes; atomics.
        unsafe {
            let first = self.mapping.as_ptr().add(size_of::<Header>()).cast::<Count>();
            std::slice::from_raw_parts(first, self.shape.nodes())
        }
    }

    /// Whether a member had refused the tree before this one came: no member may use it.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Decide for all, who could not be asked, whether the tree is used: true if all have mapped it,
    /// and none has refused it. Otherwise it is refused, as all will see that come later.
    pub fn decide(&self) -> bool {
        let members = self.members as u32;
        let refuse = |attached| (attached != members).then_some(attached | REFUSED);
        // SYNC POINT combining_tree/attached: with `open`.
        self.mapping.attached.fetch_update(Ordering::AcqRel, Ordering::Acquire, refuse).is_err()
    }

    /// The cell of a member (or, behind them, of a node) in this round.
    fn cell_of(&self, index: usize) -> *mut fold::Cell {
        self.cell_in(index, self.round)
    }

    fn cell_in(&self, index: usize, round: u64) -> *mut fold::Cell {
        assert!(index < self.members + self.shape.nodes());
        let nth = 2 * index + (round % 2) as usize;
        // SAFETY: inside the mapping, whose length was checked.
        unsafe {
            self.mapping
                .as_ptr()
                .add(CombiningTree::first_cell(&self.shape))
                .cast::<fold::Cell>()
                .add(nth)
        }
    }

    /// The cell of the top node in this round.
    fn top(&self) -> *mut fold::Cell {
        self.cell_of(self.members + self.shape.nodes() - 1)
    }

    /// Begin the next round with this value. True: this member is the last, and has to `conclude`,
    /// or to combine the values of all `cell`s, `set_result` and then `conclude`.
    pub fn enter(
        &mut self,
        call: [u64; 2],
        op: Op,
        wraps: bool,
        kind: CellKind,
        bytes: &[u8],
    ) -> bool {
        self.climb(call, kind, bytes, |cell, other| cell.combine(other, op, wraps))
    }

    /// The same with bytes that `work` combines: it changes the first by the second.
    pub fn enter_with(
        &mut self,
        call: [u64; 2],
        bytes: &[u8],
        work: impl Fn(&mut [u8], &[u8]),
    ) -> bool {
        self.climb(call, CellKind::Raw, bytes, |cell, other| cell.combine_with(other, &work))
    }

    fn climb(
        &mut self,
        call: [u64; 2],
        kind: CellKind,
        bytes: &[u8],
        combine: impl Fn(&mut fold::Cell, &fold::Cell),
    ) -> bool {
        self.round += 1;
        // SAFETY: this member's cell; its readers wait until this member has arrived, and have read
        // its former value before that round's successor could end.
        unsafe {
            let cell = self.cell_of(self.rank);
            (*cell).write(call, kind, bytes);
            // SYNC POINT combining_tree/came: with the Acquire in `waits`.
            (*cell).round.store(self.round, Ordering::Release);
        }
        arrive(self.counts(), &self.shape, self.rank, self.round, |node| {
            let child = |nth: usize| {
                let index = if node.lowest { nth } else { self.members + nth };
                // SAFETY: all children have arrived, and nobody writes to their cells any more.
                unsafe { &*self.cell_of(index) }
            };
            // SAFETY: the member that completes a node is alone with its cell.
            let cell = unsafe { &mut *self.cell_of(self.members + node.index) };
            cell.copy(child(node.first));
            for nth in node.first + 1..node.first + node.children {
                combine(cell, child(nth));
            }
        })
    }

    /// The round's combined value; for the last member, or once the round is decided.
    pub fn result(&self) -> &fold::Cell {
        // SAFETY: only the last writes to it, before the decision.
        unsafe { &*self.top() }
    }

    /// A member's value; for the last member, or once the round is decided.
    pub fn cell(&self, member: usize) -> &fold::Cell {
        assert!(member < self.members);
        // SAFETY: it has arrived, and its cell stays as it is until all have read.
        unsafe { &*self.cell_of(member) }
    }

    /// The last member: publish Python's result to all.
    pub fn set_result(&self, kind: CellKind, bytes: &[u8]) {
        let call = self.result().call;
        // SAFETY: the last is alone with the top's cell until the round is decided.
        unsafe { (*self.top()).write(call, kind, bytes) };
    }

    /// The last member: complete the round. False if another member has broken it off meanwhile.
    pub fn conclude(&self) -> bool {
        let done = self.mapping.decision.complete(self.round);
        self.mapping.bell.0.ring();
        done
    }

    /// End the round for all; false if it was decided before.
    pub fn break_off(&self) -> bool {
        let broken = self.mapping.decision.break_off(self.round, self.rank);
        self.mapping.bell.0.ring();
        broken
    }

    /// End the tree for all: this round, or if that is decided, the next one cannot be completed.
    pub fn abandon(&mut self) -> bool {
        if self.is_decided() {
            self.round += 1;
        }
        self.break_off()
    }

    /// The member that has broken off this member's round.
    pub fn broken_by(&self) -> Option<usize> {
        self.mapping.decision.broken_by(self.round)
    }

    /// Whether a member has broken off any round: the tree is no longer used.
    pub fn is_over(&self) -> bool {
        self.mapping.decision.broken_by(u64::MAX).is_some()
    }

    pub fn is_decided(&self) -> bool {
        self.mapping.decision.is_made(self.round)
    }

    /// Spin for a moment: whether the round was decided.
    pub fn spin_briefly(&self) -> bool {
        self.core.spin_briefly_for(|| self.is_decided())
    }

    /// Spin, then sleep, until the round is decided or the endpoint is closed.
    pub fn wait(&self, limit: Duration) -> Woken {
        let news = || self.is_decided() || self.core.is_closed();
        self.core.spin_then_sleep_on(&self.mapping.bell.0, limit, news)
    }

    /// The call of a member that waits for this one in the next round, if it does.
    pub fn waits(&self, member: usize) -> Option<[u64; 2]> {
        let next = self.round + 1;
        let cell = self.cell_in(member, next);
        // SAFETY: the cell lies inside of the mapping, and the round is an atomic.
        let came = unsafe { (*cell).round.load(Ordering::Acquire) } == next;
        // SAFETY: that member writes there again two rounds later, which this member has to join.
        came.then(|| unsafe { (*cell).call })
    }

    /// Members that have not arrived in this round.
    pub fn missing(&self) -> Vec<usize> {
        // SAFETY: an atomic; the rest of a cell may be written just now.
        let came = |member| unsafe { (*self.cell_of(member)).round.load(Ordering::Relaxed) };
        (0..self.members).filter(|member| came(*member) != self.round).collect()
    }

    fn reached(&self) -> &[Reached] {
        // SAFETY: behind the tree's cells, one for each member; atomics.
        unsafe {
            let first = self.mapping.as_ptr().add(self.first_post).cast::<Reached>();
            std::slice::from_raw_parts(first, self.members)
        }
    }

    fn post_cell(&self, member: usize, nth: u64) -> *mut posts::Cell {
        assert!(member < self.members);
        let first = self.first_post + self.members * size_of::<Reached>();
        // SAFETY: inside the mapping, whose length was checked.
        unsafe {
            let cells = self.mapping.as_ptr().add(first).cast::<posts::Cell>();
            cells.add(member * CELLS as usize + posts::index(nth))
        }
    }

    /// This member has come to call `nth`. True if others may sleep until it has: wake them.
    pub fn come_to(&mut self, nth: u64) -> bool {
        let mut half = self.half;
        let wake = self.reached()[self.rank].publish(&mut half, nth, &self.mapping.sleepers);
        self.half = half;
        wake
    }

    /// A member that has not come far enough for a post of this member in call `nth`.
    pub fn behind(&self, nth: u64) -> Option<usize> {
        if nth < self.room_until.load(Ordering::Relaxed) {
            return None;
        }
        let behind = posts::behind(self.reached(), nth);
        if behind.is_none() {
            self.room_until.store(posts::end_of_room(nth), Ordering::Relaxed);
        }
        behind
    }

    /// Post in call `nth`, once no member is `behind`: `write` gets the address of the bytes. True
    /// if others may sleep until this member has posted: wake them.
    pub fn post(
        &self,
        nth: u64,
        call: [u64; 2],
        location: CodeLocation,
        write: impl FnOnce(*mut u8),
    ) -> bool {
        let cell = self.post_cell(self.rank, nth);
        // SAFETY: this member's cell; all have come past the call whose post was in it.
        unsafe {
            ((*cell).call, (*cell).location) = (call, location);
            write((&raw mut (*cell).bytes).cast());
            (*cell).stamp.publish(nth, &self.mapping.sleepers)
        }
    }

    /// A member's post in call `nth`, to which this member has come, and no further.
    pub fn posted(&self, member: usize, nth: u64) -> Option<&posts::Cell> {
        let cell = self.post_cell(member, nth);
        // SAFETY: an atomic; and if the post is that of this call, it stays as it is until this
        // member has come further.
        unsafe { (*cell).stamp.is_of(nth).then(|| &*cell) }
    }

    /// Call before this member sleeps until others post or have come further, and
    /// `sleepers().leave()` after that.
    pub fn sleepers(&self) -> &Sleepers {
        &self.mapping.sleepers
    }
}
