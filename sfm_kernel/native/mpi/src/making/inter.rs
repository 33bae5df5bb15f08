//! Intercommunicators: two groups, whose leaders communicate for them.

use std::sync::Arc;

use crate::collective::items::Items;
use crate::collective::presence::complete_described;
use crate::collective::team::Team;
use crate::collective::{bcast, words};
use crate::comm::Comm;
use crate::engine::report::Arguments;
use crate::engine::Collective;
use crate::errors::{fail, Answer};
use crate::group::Group;
use crate::handles::*;
use crate::making;

/// The leader's connection to the other leader: a team, and the other leader's rank in it. None for
/// processes that are not leaders.
pub type Across<'a> = Option<(&'a Team<'a>, usize)>;

/// Exchange values between the two leaders; returns the other leader's values to all of the team.
pub async fn exchange<T: Copy + Default>(
    team: &Team<'_>,
    leader: usize,
    across: Across<'_>,
    values: &[T],
) -> Answer<Vec<T>> {
    let mut length = [values.len()];
    swap(team, leader, across, &mut [values.len()], &mut length).await?;
    let mut received = vec![T::default(); length[0]];
    swap(team, leader, across, &mut values.to_vec(), &mut received).await?;
    Ok(received)
}

/// The same for a number of values that both leaders know.
async fn swap<T: Copy>(
    team: &Team<'_>,
    leader: usize,
    across: Across<'_>,
    sent: &mut [T],
    received: &mut [T],
) -> Answer {
    let (sent, received) = (Items::of_bytes(sent)?, Items::of_bytes(received)?);
    if let Some((team, other)) = across {
        team.exchange(other, &sent.data(), other, received.data()).await?;
    }
    bcast::bcast(team, &received, leader).await
}

/// Connect a group with another one, whose leader our leader knows in `peers`.
pub fn create(
    local: &Comm,
    leader: usize,
    peers: Option<(&Comm, usize)>,
    tag: c_int,
) -> Answer<Comm> {
    let team = Team::of(local, Collective::Making);
    let across = peers.map(|(comm, other)| {
        let before = if comm.remote.is_some() { comm.size() as usize } else { 0 };
        (Team::apart(comm, comm.everybody().into_owned(), comm.rank as usize, tag), before + other)
    });
    let across = across.as_ref().map(|(team, other)| (team, *other));
    let mut arguments = vec![("local_leader", leader.to_string())];
    if let Some((comm, other)) = peers {
        arguments.extend([("peer_comm", comm.name()), ("remote_leader", other.to_string())]);
    }
    arguments.push(("tag", tag.to_string()));
    let (number, remote) = meet(&team, &local.group, leader, across, arguments)?;
    let made = making::child(local, number, local.group.clone(), local.rank as usize);
    Ok(made.with_remote(remote))
}

/// The same without communicators; our leader knows the process number `far` of the other leader.
pub fn from_groups(
    local: &Arc<Group>,
    rank: usize,
    leader: usize,
    far: Option<c_int>,
    tag: &str,
) -> Answer<Comm> {
    let team = Team::without_comm(local.clone(), rank, tag);
    let across = far.map(|far| {
        let ours = local.members[leader];
        let leaders = Group::new(vec![ours.min(far), ours.max(far)]);
        let nth = leaders.rank_of(ours).expect("one of them") as usize;
        (Team::without_comm(leaders, nth, tag), 1 - nth)
    });
    let across = across.as_ref().map(|(team, other)| (team, *other));
    let (number, remote) = meet(&team, local, leader, across, vec![])?;
    Ok(Comm::new(number, local.clone(), rank as c_int).with_remote(remote))
}

/// Agree on a number for the new communicator, the lower of the two leaders' numbers, and exchange
/// the groups. `arguments`: of the call, for observers.
fn meet(
    team: &Team,
    local: &Group,
    leader: usize,
    across: Across<'_>,
    arguments: Arguments,
) -> Answer<(u64, Arc<Group>)> {
    let call = || team.call_waiting(arguments.clone());
    let (number, received) = complete_described(team, &call, async {
        let number = making::number_of(team, leader).await?;
        Ok((number, exchange(team, leader, across, &words_of(number, local)).await?))
    })?;
    let remote = group_of(&received);
    if remote.members.iter().any(|member| local.rank_of(*member).is_some()) {
        return Err(fail(MPI_ERR_COMM, "the two groups have a process in common"));
    }
    Ok((number.min(received[0]), remote))
}

/// The message about a group: its number for the new communicator, and its members.
fn words_of(number: u64, group: &Group) -> Vec<u64> {
    let members = group.members.iter().map(|member| *member as u64);
    std::iter::once(number).chain(members).collect()
}

fn group_of(words: &[u64]) -> Arc<Group> {
    Group::new(words[1..].iter().map(|member| *member as c_int).collect())
}

/// The connection between the groups of an intercommunicator: between the first processes of the
/// two.
pub fn across<'a>(team: &'a Team<'a>) -> Across<'a> {
    (team.rank == 0).then_some((team, team.near))
}

/// Agree on a number for a duplicate.
pub async fn agree(team: &Team<'_>) -> Answer<u64> {
    let side = team.side();
    let number = making::number_of(&side, 0).await?;
    let received = exchange(&side, 0, across(team), &[number]).await?;
    Ok(number.min(received[0]))
}

/// An intercommunicator of some processes of each group; None for processes outside it, or if a
/// group has none.
pub async fn subset(comm: &Comm, team: &Team<'_>, group: Arc<Group>) -> Answer<Option<Comm>> {
    let side = team.side();
    let number = making::number_of(&side, 0).await?;
    let received = exchange(&side, 0, across(team), &words_of(number, &group)).await?;
    let remote = group_of(&received);
    let Some(rank) = group.calling_rank().filter(|_| remote.size() > 0) else { return Ok(None) };
    let made = making::child(comm, number.min(received[0]), group, rank as usize);
    Ok(Some(made.with_remote(remote)))
}

/// Merge the two groups into one; the group with `high` comes last.
pub async fn merge(comm: &Comm, team: &Team<'_>, high: bool) -> Answer<Comm> {
    let side = team.side();
    let number = making::number_of(&side, 0).await?;
    let highs = words::one_of_each(&side, high).await?;
    let words = [u64::from(highs[0]), number];
    let received = exchange(&side, 0, across(team), &words).await?;
    if highs.contains(&!high) {
        let one = |high| highs.iter().position(|other| *other == high).unwrap_or_default();
        let text = format!(
            "argument high is true in process {} of this group and false in process {}; it must be \
             the same in a group",
            one(true),
            one(false)
        );
        return Err(fail(MPI_ERR_ARG, text));
    }
    let (local, remote) = (&comm.group.members, &comm.peers().members);
    let is_first = if high == (received[0] != 0) { local[0] < remote[0] } else { !high };
    let (low, top) = if is_first { (local, remote) } else { (remote, local) };
    let group = Group::new([&low[..], &top[..]].concat());
    let rank = group.calling_rank().expect("a member");
    Ok(making::child(comm, number.min(received[1]), group, rank as usize))
}
