//! Calls in shared memory, as words of a cell, and the failures when they do not fit together.

use sfm_native::code_location::current;
use sfm_native::combining_tree::posts;

use super::mismatch::{self, fits, other_call, Caller};
use super::team::Team;
use crate::comm::meetings::OpenTree;
use crate::engine::{engine, origin, Alike, Collective};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;

const ALIKE_AT: u32 = 32;
const BYTES_AT: u32 = 8;

/// A call at the tree: its number and arguments, its kind and bytes.
pub fn about(team: &Team, bytes: usize) -> [u64; 2] {
    let (what, alike) = team.call();
    let first = team.number() | u64::from(alike.word()) << ALIKE_AT;
    [first, what as u64 | (bytes as u64) << BYTES_AT]
}

fn number_of(about: [u64; 2]) -> u64 {
    about[0] & ((1 << ALIKE_AT) - 1)
}

/// True if two calls cannot be the same.
fn differ(one: (Collective, Alike), other: (Collective, Alike)) -> bool {
    one.0 != other.0 || one.1.differs(other.1)
}

/// True if two calls can be the same: one of them may not know how mpi4py passes its data.
pub fn can_be_same(one: [u64; 2], other: [u64; 2]) -> bool {
    let rest = |about: [u64; 2]| [about[0] & !(u64::from(Alike::PASSES) << ALIKE_AT), about[1]];
    let otherwise = || call_of(one).1.passes_otherwise(call_of(other).1);
    one == other || rest(one) == rest(other) && !otherwise()
}

/// The call in the words of a cell.
pub fn call_of(about: [u64; 2]) -> (Collective, Alike) {
    (Collective::of(about[1] as u8), Alike::of((about[0] >> ALIKE_AT) as u32))
}

impl OpenTree {
    /// The failure, if a process is in a different call of this number, at the tree or with a post.
    pub fn other_call(&self, team: &Team, bytes: Option<usize>) -> Option<Failure> {
        let waiting = (0..team.size).filter_map(|rank| Some((rank, self.tree.waits(rank)?)));
        let mut same = waiting.filter(|(_, about)| number_of(*about) == team.number());
        if let Some((rank, call)) = same.next().filter(|_| !self.tree.is_over()) {
            let at = origin::of_blocked(team.process(rank)); // it still waits in that call
            return Some(mismatch_with(team, rank, call, None, at));
        }
        self.other_post(team, bytes)
    }

    /// The failure, if a process has posted in a different call of this number.
    pub fn other_post(&self, team: &Team, bytes: Option<usize>) -> Option<Failure> {
        let (ours, nth) = (about(team, bytes.unwrap_or(0)), self.nth(team));
        let posts = (0..team.size).filter_map(|rank| Some((rank, self.tree.posted(rank, nth)?)));
        let mut different = posts.filter(|(_, cell)| !can_be_same(cell.call, ours));
        different.next().map(|(rank, cell)| different_post(team, rank, cell, bytes))
    }
}

/// Err if another process has sent a message of this call number: its call goes another way, so it is
/// not this call.
pub fn other_message(team: &Team, bytes: usize) -> Answer {
    team.other_message().map_or(Ok(()), |(sent, call, length)| {
        Err(differs(team, || Caller::of(sent), call, length, Some(bytes)))
    })
}

/// The failure when all processes have entered, but with calls that differ.
pub fn mismatch_of_all(open: &OpenTree, team: &Team, ours: [u64; 2]) -> Failure {
    let (tree, nth) = (&open.tree, open.nth(team));
    let bytes = (ours[1] >> BYTES_AT) as usize;
    // Each tells the others its line, which the tree does not have.
    let location = current();
    engine().core.shared().codes.note(location);
    tree.post(nth, ours, location, |_| {});
    if let Err(failure) = other_message(team, bytes) {
        return failure;
    }
    let is_other = |rank: &usize| tree.cell(*rank).call != ours;
    let rank = (0..team.size).find(is_other).unwrap_or(team.rank);
    let theirs = tree.cell(rank).call;
    let line = || Some(origin::of_location(team.process(rank), tree.posted(rank, nth)?.location));
    let at = match number_of(theirs) == team.number() {
        true => origin::patiently(line),
        false => String::new(),
    };
    mismatch_with(team, rank, theirs, Some(bytes), at)
}

/// The failure when a process has posted in a different call of this number; `bytes`: of this one.
pub fn different_post(
    team: &Team,
    rank: usize,
    cell: &posts::Cell,
    bytes: Option<usize>,
) -> Failure {
    let process = team.process(rank);
    let by = || Caller::new(process, origin::of_location(process, cell.location));
    let length = (cell.call[1] >> BYTES_AT) as usize;
    differs(team, by, call_of(cell.call), length, bytes)
}

/// The failure when a process is in another call than this one, with `length` bytes; `bytes`: of this
/// one, if they are comparable.
fn differs(
    team: &Team,
    by: impl Fn() -> Caller,
    theirs: (Collective, Alike),
    length: usize,
    bytes: Option<usize>,
) -> Failure {
    let room = bytes.filter(|_| !differ(theirs, team.call()));
    let sizes = room.and_then(|room| fits(&by, length, room).err());
    // Of the same kind and size they differ by an operation of the program's own.
    sizes.unwrap_or_else(|| other_call(by(), theirs, team.context, team.call(), team.mark()))
}

/// The failure when a process has entered the tree with `call`, which is not this process's call;
/// `bytes`: of this one, if it is at the tree; `at`: the line of its call.
fn mismatch_with(
    team: &Team,
    rank: usize,
    about: [u64; 2],
    bytes: Option<usize>,
    at: String,
) -> Failure {
    let number = number_of(about);
    let theirs = call_of(about);
    let what = theirs.0;
    let by = Caller::new(team.process(rank), at);
    if what != team.what || number == team.number() && differ(theirs, team.call()) {
        other_call(by, theirs, team.context, team.call(), team.mark())
    } else if number != team.number() {
        let which = if number > team.number() { "more" } else { "fewer" };
        let text = format!(
            "{} after {} {which} collective calls than this process: all processes of a \
            communicator make the same collective calls in the same order",
            by.calls(what, theirs.1, team.comm().as_deref()),
            number.abs_diff(team.number())
        );
        fail(MPI_ERR_OTHER, text)
    } else {
        let theirs = (about[1] >> BYTES_AT) as usize;
        let here = bytes.map_or("others".into(), |bytes| bytes.to_string());
        let text = by.sends(theirs, here);
        mismatch::mismatch(MPI_ERR_COUNT, &text)
    }
}
