//! Making communicators: the processes of a new one, and a context number that no other
//! communicator of a member has.
//!
//! The first process of the new communicator supplies the number, which consists of its own process
//! number and a count. So all numbers differ, in every process, without communication.

pub mod inter;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::collective::presence::complete;
use crate::collective::team::Team;
use crate::collective::words;
use crate::comm::{self, Comm};
use crate::errors::Answer;
use crate::group::Group;
use crate::handles::*;
use crate::process::{self, COUNTING};

static GIVEN: AtomicU64 = AtomicU64::new(comm::FIRST + 1);

/// A new number of this process.
pub fn next() -> u64 {
    let count = GIVEN.fetch_add(1, Ordering::Relaxed) & ((1 << COUNTING) - 1);
    (process::this().number() as u64) << COUNTING | count
}

/// A number for a communicator of exactly this group, in which this process has rank `rank`.
pub fn from_group(group: &Arc<Group>, rank: usize, tag: &str) -> Answer<u64> {
    let team = Team::without_comm(group.clone(), rank, tag);
    complete(&team, agree(&team))
}

/// Agree on a number for a communicator that all of the team make.
pub async fn agree(team: &Team<'_>) -> Answer<u64> {
    match team.near < team.size {
        true => inter::agree(team).await,
        false => number_of(team, 0).await,
    }
}

/// A new number of the leader, known to all of the team.
pub async fn number_of(team: &Team<'_>, leader: usize) -> Answer<u64> {
    let number = if team.rank == leader { next() } else { 0 };
    words::from_root(team, number, leader).await
}

/// A process's arguments in a split.
#[derive(Clone, Copy, Default)]
struct Choice {
    color: c_int,
    key: c_int,
    /// The number of the new communicator, if this process is its first.
    number: u64,
}

/// Split by color, ordered by key and then by rank; None with MPI_UNDEFINED, or if no process of an
/// intercommunicator's remote group has chosen the color.
pub async fn split(comm: &Comm, team: &Team<'_>, color: c_int, key: c_int) -> Answer<Option<Comm>> {
    let (side, choice) = (team.side(), Choice { color, key, number: next() });
    let near = words::one_of_each(&side, choice).await?;
    let far = match &comm.remote {
        Some(remote) => {
            Some((remote, inter::exchange(&side, 0, inter::across(team), &near).await?))
        }
        None => None,
    };
    if color == MPI_UNDEFINED {
        return Ok(None);
    }
    let (group, number) = chosen(&comm.group, &near, color);
    let rank = group.calling_rank().expect("has chosen it, too");
    let Some((remote, far)) = far else {
        return Ok(Some(child(comm, number, group, rank as usize)));
    };
    let (others, their_number) = chosen(remote, &far, color);
    let is_empty = others.size() == 0;
    let both = child(comm, number.min(their_number), group, rank as usize).with_remote(others);
    Ok((!is_empty).then_some(both))
}

/// The processes of a group that have chosen a color, and the number of the first.
fn chosen(group: &Group, choices: &[Choice], color: c_int) -> (Arc<Group>, u64) {
    let chosen = group.members.iter().zip(choices).filter(|(_, choice)| choice.color == color);
    let mut chosen: Vec<_> = chosen.collect();
    chosen.sort_by_key(|(_, choice)| choice.key); // stable: by rank where keys are equal
    let number = chosen.first().map_or(0, |(_, choice)| choice.number);
    (Group::new(chosen.into_iter().map(|(member, _)| *member).collect()), number)
}

/// A communicator of a subset of a team's processes, all of which call this.
pub async fn made(comm: &Comm, team: &Team<'_>, group: Arc<Group>, rank: usize) -> Answer<Comm> {
    let number = agree(&team.subset(group.clone(), rank)).await?;
    Ok(child(comm, number, group, rank))
}

/// A communicator that inherits its parent's error handler and session.
pub fn child(comm: &Comm, number: u64, group: Arc<Group>, rank: usize) -> Comm {
    let mut child = Comm::new(number, group, rank as c_int);
    child.errhandler = comm.errhandler.copy();
    child.session = comm.session;
    child.parent = Some(comm.context);
    child
}

/// The handle; MPI_COMM_NULL for processes that are not members.
pub fn open(comm: Option<Comm>) -> MPI_Comm {
    comm.map_or(MPI_COMM_NULL, comm::open)
}
