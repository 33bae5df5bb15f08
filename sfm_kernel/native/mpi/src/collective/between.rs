//! Collectives on intercommunicators: data goes from one group to the other.
//!
//! If a process has a block for each process of the remote group, it sends them directly. If one
//! group has one result for the whole other group, the result goes from the first process of the
//! one to the first process of the other, and from there to the rest.

use super::barrier::barrier;
use super::bcast::bcast;
use super::calls::Call;
use super::gather::scatter;
use super::items::{Items, Scratch};
use super::neighbors::exchange;
use super::reduce::reduce;
use super::team::Team;
use crate::data::Data;
use crate::errors::Answer;
use crate::op::Op;

/// A root is a rank of `team`, which counts the local group first, then the remote group.
pub async fn run(call: &Call, team: &Team<'_>) -> Answer {
    let side = team.side();
    let (first, is_first) = (team.near, team.rank == 0);
    let is_root = |root: &usize| *root == team.rank;
    match call {
        Call::Nothing(_) => Ok(()),
        Call::Barrier => {
            barrier(&side).await?;
            if is_first {
                team.exchange(first, &Data::nothing(), first, Data::nothing()).await?;
            }
            // No process may go on before this point.
            barrier(&side).await
        }
        Call::Bcast { items, root } if is_root(root) => {
            team.send(first, &items.data()).gone().await
        }
        Call::Bcast { items, root } => {
            if is_first {
                team.receive(*root, items.data()).come().await?;
            }
            bcast(&side, items, 0).await
        }
        Call::Gather { blocks, root, .. } if is_root(root) => {
            exchange(team, &[], &each(team, blocks)).await
        }
        Call::Gather { local, root, .. } => exchange(team, &to(*root, local), &[]).await,
        Call::Scatter { blocks, root, .. } if is_root(root) => {
            exchange(team, &each(team, blocks), &[]).await
        }
        Call::Scatter { local, root, .. } => exchange(team, &[], &to(*root, local)).await,
        Call::Allgather { local, blocks } => {
            let local = local.as_ref().expect("never in place");
            let out: Vec<_> = team.far().map(|rank| (rank, local.clone())).collect();
            exchange(team, &out, &each(team, blocks)).await
        }
        Call::Alltoall { out, into } => {
            let out = out.as_ref().expect("never in place");
            exchange(team, &each(team, out), &each(team, into)).await
        }
        Call::Reduce { into: Some(into), .. } => team.receive(first, into.data()).come().await,
        Call::Reduce { op, from, root, .. } => match reduced(&side, op, from).await? {
            Some(local) => team.send(*root, &local.items.data()).gone().await,
            None => Ok(()),
        },
        Call::Allreduce { op, from, into } => {
            if let Some(local) = reduced(&side, op, from).await? {
                team.exchange(first, &local.items.data(), first, into.data()).await?;
            }
            bcast(&side, into, 0).await
        }
        Call::ReduceScatter { op, from, counts, into } => {
            let mut blocks = Vec::new();
            let received;
            if let Some(local) = reduced(&side, op, from).await? {
                received = Scratch::like(&local.items);
                team.exchange(first, &local.items.data(), first, received.items.data()).await?;
                blocks = received.items.split(counts);
            }
            scatter(&side, &blocks, Some(into), 0).await
        }
        Call::Scan { .. } | Call::Exscan { .. } | Call::Neighbors { .. } => {
            unreachable!("refused on intercommunicators")
        }
    }
}

/// Pair each process of the remote group with its block.
fn each(team: &Team, blocks: &[Items]) -> Vec<(usize, Items)> {
    team.far().zip(blocks.iter().cloned()).collect()
}

fn to(root: usize, local: &Option<Items>) -> [(usize, Items); 1] {
    [(root, local.clone().expect("never in place"))]
}

/// Reduce the local group's operands to its first process, which gets the result.
async fn reduced(side: &Team<'_>, op: &Op, from: &Option<Items>) -> Answer<Option<Scratch>> {
    let from = from.as_ref().expect("never in place");
    let result = (side.rank == 0).then(|| Scratch::like(from));
    reduce(side, op, from, result.as_ref().map(|result| &result.items), 0).await?;
    Ok(result)
}
