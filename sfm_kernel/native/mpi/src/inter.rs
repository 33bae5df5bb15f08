//! Intercommunicators: two groups, whose leaders speak for them.

use std::sync::Arc;

use crate::collective::items::Items;
use crate::collective::team::{whole, Team};
use crate::collective::{bcast, words};
use crate::comm::Comm;
use crate::engine::What;
use crate::errors::{fail, Answer};
use crate::group::Group;
use crate::handles::*;
use crate::making;

/// The leader's way to the other leader: a team, and the other's rank in it.
pub type Across<'a> = Option<(&'a Team, usize)>;

/// What the two leaders tell each other, told to the team of each: the other side's words.
pub async fn exchange<T: Copy + Default>(
    team: &Team,
    leader: usize,
    across: Across<'_>,
    own: &[T],
) -> Answer<Vec<T>> {
    let mut length = [own.len()];
    swap(team, leader, across, &mut [own.len()], &mut length).await?;
    let mut theirs = vec![T::default(); length[0]];
    swap(team, leader, across, &mut own.to_vec(), &mut theirs).await?;
    Ok(theirs)
}

/// The same of as many words as both know of.
async fn swap<T: Copy>(
    team: &Team,
    leader: usize,
    across: Across<'_>,
    own: &mut [T],
    theirs: &mut [T],
) -> Answer {
    let (own, theirs) = (words::items(own)?, words::items(theirs)?);
    if let Some((team, other)) = across {
        team.exchange(other, &own.data(), other, theirs.data()).await?;
    }
    bcast::bcast(team, &theirs, leader).await
}

/// Of two numbers that leaders have given, the one of the leader with the lower rank in the world.
fn common(own: c_int, theirs: c_int) -> u32 {
    (own as u32).min(theirs as u32)
}

/// A number of our leader's, known to all of the team.
async fn given(team: &Team, leader: usize) -> Answer<c_int> {
    let mut number = if team.rank == leader { making::next() as c_int } else { 0 };
    let items = Items::of("number", (&raw mut number).cast(), 1, MPI_INT)?;
    bcast::bcast(team, &items, leader).await?;
    Ok(number)
}

/// Join a group with another, of which its leader knows the leader in `peers`.
pub fn create(
    local: &Comm,
    leader: usize,
    peers: Option<(&Comm, usize)>,
    tag: c_int,
) -> Answer<Comm> {
    let team = Team::of(local, What::Making);
    let across = peers.map(|(comm, other)| {
        let before = if comm.remote.is_some() { comm.size() as usize } else { 0 };
        (Team::apart(comm, comm.everybody(), comm.rank as usize, tag), before + other)
    });
    let across = across.as_ref().map(|(team, other)| (team, *other));
    let (own, theirs) = whole(&team, async {
        let own = given(&team, leader).await?;
        let words: Vec<c_int> = [&[own], &local.group.members[..]].concat();
        Ok((own, exchange(&team, leader, across, &words).await?))
    })?;
    let remote = Group::new(theirs[1..].to_vec());
    if remote.members.iter().any(|member| local.group.rank_of(*member).is_some()) {
        return Err(fail(MPI_ERR_COMM, "the two groups have a process in common"));
    }
    let number = common(own, theirs[0]);
    let mut made = making::child(local, number, local.group.clone(), local.rank as usize);
    made.remote = Some(remote);
    Ok(made)
}

/// From side to side of an intercommunicator, for the first process of each.
pub fn across(team: &Team) -> Across<'_> {
    (team.rank == 0).then_some((team, team.near))
}

/// A number for a duplicate.
pub async fn agree(team: &Team) -> Answer<u32> {
    let side = team.side();
    let own = given(&side, 0).await?;
    let theirs = exchange(&side, 0, across(team), &[own]).await?;
    Ok(common(own, theirs[0]))
}

/// Some processes of each side; None for those who are not among them, or where a side has none.
pub async fn subset(comm: &Comm, team: &Team, group: Arc<Group>) -> Answer<Option<Comm>> {
    let side = team.side();
    let own = given(&side, 0).await?;
    let words = [&[own], &group.members[..]].concat();
    let theirs = exchange(&side, 0, across(team), &words).await?;
    let remote = Group::new(theirs[1..].to_vec());
    let Some(rank) = group.own_rank().filter(|_| remote.size() > 0) else { return Ok(None) };
    let mut made = making::child(comm, common(own, theirs[0]), group, rank as usize);
    made.remote = Some(remote);
    Ok(Some(made))
}

/// One group of both; those who say `high` come last.
pub async fn merge(comm: &Comm, team: &Team, high: bool) -> Answer<Comm> {
    let (side, remote) = (team.side(), comm.peers());
    let number = given(&side, 0).await?;
    let said = words::one_of_each(&side, high).await?;
    let words = [c_int::from(said[0]), number];
    let theirs = exchange(&side, 0, across(team), &words).await?;
    if said.contains(&!high) {
        let text = "argument high is true in some processes of this group and false in others";
        return Err(fail(MPI_ERR_ARG, text));
    }
    let (own, theirs, number) = (&comm.group.members, theirs[0] != 0, common(number, theirs[1]));
    let first = if high == theirs { own[0] < remote.members[0] } else { !high };
    let (low, top) = if first { (own, &remote.members) } else { (&remote.members, own) };
    let group = Group::new([&low[..], &top[..]].concat());
    let rank = group.own_rank().expect("a member");
    Ok(making::child(comm, number, group, rank as usize))
}
