//! How the processes of a communicator come to memory that they share: a tree for meetings, with
//! cells for posts.
//!
//! A communicator gets its tree in one of its first small collective calls, in which its processes
//! agree by messages whether all of them could open it. One that cannot wait for these messages
//! (Stop, a dead process) decides for all with the tree itself. A process that leaves a meeting early
//! (Stop, a dead process, a deadlock that was ended) breaks the tree off for good. All others finish
//! the same call by messages, and later calls make another tree; posts do not depend on that, and go
//! on until then.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use sfm_native::combining_tree::CombiningTree;

use super::presence::complete;
use super::reduce;
use super::shared_calls::call_of;
use super::team::Team;
use crate::comm::history::LARGEST;
use crate::comm::meetings::{Meetings, OpenTree, Refused, SharedTree};
use crate::comm::{self, Comm};
use crate::data::UserBuffer;
use crate::engine::{engine, origin, Alike, Collective};
use crate::errors::Answer;
use crate::handles::*;
use crate::op;

/// The processes agree on a tree in a call whose number leaves this remainder when divided by
/// `EVERY`. All processes have the same call number, whatever calls ended early. Only few calls
/// before it go by messages, which is enough for most communicators; and `EVERY` has no factor in
/// common with the usual patterns of calls.
const AGREEING: u64 = 3;
const EVERY: u64 = 7;
/// Where it has failed so often, it is tried again after many more calls.
const OFTEN: u64 = 10 * EVERY;
const SELDOM: u64 = 100 * EVERY;

/// After so many calls another tree is agreed, before their numbers repeat.
const LAST: u64 = LARGEST as u64 / 2;

impl Meetings {
    /// A process that has posted in the next call of this communicator, which this process has
    /// not made: the process, its call, and its line.
    pub fn unread(&self, comm: &Comm) -> Option<(usize, (Collective, Alike), String)> {
        let state = self.turn()?;
        let SharedTree::At(open) = &*state else { return None };
        let nth = open.nth_of(u64::from(comm.collectives.load(Relaxed) & LARGEST));
        let post = |rank| Some((rank, open.tree.posted(rank, nth)?));
        let (rank, cell) = (0..open.tree.members()).find_map(post)?;
        let process = comm.group.members[rank] as usize;
        Some((process, call_of(cell.call), origin::of_location(process, cell.location)))
    }
}

impl SharedTree {
    /// Agree on a tree, if this call is one in which that is done and there is none that can be
    /// used.
    pub fn prepare(&mut self, comm: &Comm, team: &Team) -> Answer {
        let is_usable = match self {
            SharedTree::None(_) => false,
            // That the latest meeting was broken off, all processes know that have come here; they
            // do not all know it of this call's.
            SharedTree::At(open) => open.tree.broken_by().is_none() && open.nth(team) <= LAST,
        };
        if is_usable || !is_for_agreement(team.number()) {
            return Ok(());
        }
        let (state, answer) = agree(comm, team);
        *self = state;
        answer
    }
}

impl OpenTree {
    /// The number of a call, counted from the one in which the tree was agreed.
    pub fn nth(&self, team: &Team) -> u64 {
        self.nth_of(team.number())
    }
}

/// Whether the processes agree on a tree, if they have none, in the call of this number.
fn is_for_agreement(number: u64) -> bool {
    let nth = number.wrapping_sub(comm::first_number().into()) & u64::from(LARGEST);
    nth % (if nth < OFTEN { EVERY } else { SELDOM }) == AGREEING
}

/// Open the tree, and agree whether every process could: all come to the same result, also those
/// that this call fails for, because they are interrupted or another has left.
fn agree(comm: &Comm, team: &Team) -> (SharedTree, Answer) {
    let path = path_of(comm, team, team.process(0), "tree");
    let opened = open(team, &path, &path_of(comm, team, engine().rank, "new"));
    let mut least = c_int::from(opened.as_ref().is_some_and(|open| !open.tree.is_refused()));
    let all = least_of_all(&Team::of(comm, team.what), &mut least);
    let is_agreed = |open: &OpenTree| if all.is_ok() { least == 1 } else { open.tree.decide() };
    let refused = Refused(path);
    let state = match opened.filter(is_agreed) {
        Some(open) => SharedTree::At(open),
        // If the call has not failed, all have looked for it.
        None => SharedTree::None(Some(refused).filter(|_| all.is_err())),
    };
    (state, all)
}

fn least_of_all(team: &Team, least: &mut c_int) -> Answer {
    let items = UserBuffer::new("least", (&raw mut *least).cast(), 1, MPI_INT).items()?;
    // Recursive doubling uses few routes; rings take memory.
    complete(team, reduce::allreduce(team, &op::get(MPI_MIN)?, &items))
}

/// None if this process does not share memory with all others, or if memory is short.
fn open(team: &Team, path: &Path, fresh: &Path) -> Option<OpenTree> {
    let home = &*engine().endpoint;
    let others = (0..team.size).filter(|rank| *rank != team.rank);
    let others: Option<Vec<_>> = others.map(|rank| home.segment(team.process(rank))).collect();
    let (others, core) = (others?, home.core().clone());
    Some(OpenTree {
        tree: CombiningTree::open(core, path, fresh, team.size, team.rank, true).ok()?,
        others,
        first: team.number(),
        epoch: comm::epoch(),
    })
}

/// The path of a file that may be removed when `owner` is dead (endpoint: directory/cleaning.rs).
fn path_of(comm: &Comm, team: &Team, owner: usize, kind: &str) -> PathBuf {
    let home = &*engine().endpoint;
    let (uid, context, number) = (home.uid(owner), comm.context, team.number());
    home.folder().join(format!("{uid:032x}-{context:016x}{number:016x}.{kind}"))
}
