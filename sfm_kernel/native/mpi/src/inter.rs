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
    let (own, theirs) = (Items::own(own)?, Items::own(theirs)?);
    if let Some((team, other)) = across {
        team.exchange(other, &own.data(), other, theirs.data()).await?;
    }
    bcast::bcast(team, &theirs, leader).await
}

/// A number of our leader's, known to all of the team. Of the two that leaders have given, both sides
/// take the lower one.
async fn given(team: &Team, leader: usize) -> Answer<u64> {
    let mut number = if team.rank == leader { making::next() } else { 0 };
    let items = Items::of("number", (&raw mut number).cast(), 1, MPI_UINT64_T)?;
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
    let (number, remote) = meet(&team, &local.group, leader, across)?;
    let mut made = making::child(local, number, local.group.clone(), local.rank as usize);
    made.remote = Some(remote);
    Ok(made)
}

/// The same without communicators; our leader knows the other one (`far`, a process).
pub fn from_groups(
    local: &Arc<Group>,
    rank: usize,
    leader: usize,
    far: Option<c_int>,
    tag: &str,
) -> Answer<Comm> {
    let team = Team::without_comm(local.clone(), rank, tag);
    let across = far.map(|far| {
        let own = local.members[leader];
        let leaders = Group::new(vec![own.min(far), own.max(far)]);
        let nth = leaders.rank_of(own).expect("one of them") as usize;
        (Team::without_comm(leaders, nth, tag), 1 - nth)
    });
    let across = across.as_ref().map(|(team, other)| (team, *other));
    let (number, remote) = meet(&team, local, leader, across)?;
    let mut made = Comm::new(number, local.clone(), rank as c_int);
    made.remote = Some(remote);
    Ok(made)
}

/// What both sides agree on: a number for the new communicator, and who the others are.
fn meet(
    team: &Team,
    local: &Group,
    leader: usize,
    across: Across<'_>,
) -> Answer<(u64, Arc<Group>)> {
    let (own, theirs) = whole(team, async {
        let own = given(team, leader).await?;
        Ok((own, exchange(team, leader, across, &words_of(own, local)).await?))
    })?;
    let remote = group_of(&theirs);
    if remote.members.iter().any(|member| local.rank_of(*member).is_some()) {
        return Err(fail(MPI_ERR_COMM, "the two groups have a process in common"));
    }
    Ok((own.min(theirs[0]), remote))
}

/// What a side says of itself: its number for the new communicator, and who is in it.
fn words_of(number: u64, group: &Group) -> Vec<u64> {
    let members = group.members.iter().map(|member| *member as u64);
    std::iter::once(number).chain(members).collect()
}

fn group_of(words: &[u64]) -> Arc<Group> {
    Group::new(words[1..].iter().map(|member| *member as c_int).collect())
}

/// From side to side of an intercommunicator, for the first process of each.
pub fn across(team: &Team) -> Across<'_> {
    (team.rank == 0).then_some((team, team.near))
}

/// A number for a duplicate.
pub async fn agree(team: &Team) -> Answer<u64> {
    let side = team.side();
    let own = given(&side, 0).await?;
    let theirs = exchange(&side, 0, across(team), &[own]).await?;
    Ok(own.min(theirs[0]))
}

/// Some processes of each side; None for those who are not among them, or where a side has none.
pub async fn subset(comm: &Comm, team: &Team, group: Arc<Group>) -> Answer<Option<Comm>> {
    let side = team.side();
    let own = given(&side, 0).await?;
    let theirs = exchange(&side, 0, across(team), &words_of(own, &group)).await?;
    let remote = group_of(&theirs);
    let Some(rank) = group.own_rank().filter(|_| remote.size() > 0) else { return Ok(None) };
    let mut made = making::child(comm, own.min(theirs[0]), group, rank as usize);
    made.remote = Some(remote);
    Ok(Some(made))
}

/// One group of both; those who say `high` come last.
pub async fn merge(comm: &Comm, team: &Team, high: bool) -> Answer<Comm> {
    let (side, remote) = (team.side(), comm.peers());
    let number = given(&side, 0).await?;
    let said = words::one_of_each(&side, high).await?;
    let words = [u64::from(said[0]), number];
    let theirs = exchange(&side, 0, across(team), &words).await?;
    if said.contains(&!high) {
        let text = "argument high is true in some processes of this group and false in others";
        return Err(fail(MPI_ERR_ARG, text));
    }
    let (own, theirs, number) = (&comm.group.members, theirs[0] != 0, number.min(theirs[1]));
    let first = if high == theirs { own[0] < remote.members[0] } else { !high };
    let (low, top) = if first { (own, &remote.members) } else { (&remote.members, own) };
    let group = Group::new([&low[..], &top[..]].concat());
    let rank = group.own_rank().expect("a member");
    Ok(making::child(comm, number, group, rank as usize))
}
