//! Intercommunicators: two groups, whose leaders speak for them.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use crate::collective::bcast;
use crate::collective::items::Items;
use crate::collective::team::{whole, Team};
use crate::comm::Comm;
use crate::engine::What;
use crate::errors::{fail, Answer};
use crate::group::Group;
use crate::handles::*;
use crate::making;

/// The leader's way to the other leader: a team, and the other's rank in it.
type Across<'a> = Option<(&'a Team, usize)>;

/// What the two leaders tell each other, told to the team of each: the other side's words.
async fn exchange(
    team: &Team,
    leader: usize,
    across: Across<'_>,
    own: &[u64],
) -> Answer<Vec<u64>> {
    let ints =
        |at: &mut [u64]| Items::of("words", at.as_mut_ptr().cast(), at.len() as c_int, MPI_UINT64_T);
    let (mut own, mut length) = (own.to_vec(), [0]);
    if let Some((team, other)) = across {
        let mut mine = [own.len() as u64];
        team.exchange(other, &ints(&mut mine)?.data(), other, ints(&mut length)?.data()).await?;
    }
    bcast::bcast(team, &ints(&mut length)?, leader).await?;
    let mut theirs = vec![0; length[0] as usize];
    if let Some((team, other)) = across {
        team.exchange(other, &ints(&mut own)?.data(), other, ints(&mut theirs)?.data()).await?;
    }
    bcast::bcast(team, &ints(&mut theirs)?, leader).await?;
    Ok(theirs)
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
        (Team::apart(comm, comm.group.clone(), comm.rank as usize, tag), other)
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
        let members = local.members.iter().map(|member| *member as u64);
        let words: Vec<u64> = std::iter::once(own).chain(members).collect();
        Ok((own, exchange(team, leader, across, &words).await?))
    })?;
    let remote = Group::new(theirs[1..].iter().map(|member| *member as c_int).collect());
    if remote.members.iter().any(|member| local.rank_of(*member).is_some()) {
        return Err(fail(MPI_ERR_COMM, "the two groups have a process in common"));
    }
    Ok((own.min(theirs[0]), remote))
}

/// The two sides of an intercommunicator: our own team, and the leader's way across.
struct Sides {
    local: Team,
    both: Team,
    remote: Arc<Group>,
}

impl Sides {
    fn of(comm: &Comm) -> Sides {
        let remote = comm.remote.clone().expect("an intercommunicator");
        let tag = comm.collectives.fetch_add(1, Ordering::Relaxed) as c_int;
        let (group, rank) = (comm.group.clone(), comm.rank as usize);
        let all = Group::new([&group.members[..], &remote.members[..]].concat());
        let local = Team::apart(comm, group, rank, tag);
        Sides { local, both: Team::apart(comm, all, rank, tag), remote }
    }

    fn across(&self) -> Across<'_> {
        (self.local.rank == 0).then_some((&self.both, self.local.size))
    }
}

/// A number for a duplicate.
pub fn agree(comm: &Comm) -> Answer<u64> {
    let sides = Sides::of(comm);
    whole(&sides.both, async {
        let own = given(&sides.local, 0).await?;
        let theirs = exchange(&sides.local, 0, sides.across(), &[own]).await?;
        Ok(own.min(theirs[0]))
    })
}

/// One group of both; those who say `high` come last.
pub fn merge(comm: &Comm, high: bool) -> Answer<Comm> {
    let sides = Sides::of(comm);
    let (own, remote) = (&comm.group.members, &sides.remote.members);
    let (theirs, number) = whole(&sides.both, async {
        let number = given(&sides.local, 0).await?;
        let words = [u64::from(high), number];
        let theirs = exchange(&sides.local, 0, sides.across(), &words).await?;
        Ok((theirs[0] != 0, number.min(theirs[1])))
    })?;
    let first = if high == theirs { own[0] < remote[0] } else { !high };
    let (low, top) = if first { (own, remote) } else { (remote, own) };
    let group = Group::new([&low[..], &top[..]].concat());
    let rank = group.own_rank().expect("a member");
    Ok(making::child(comm, number, group, rank as usize))
}
