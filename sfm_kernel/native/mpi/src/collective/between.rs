//! Collectives on intercommunicators: what one side has goes to the other.
//!
//! Where each process has something for each of the other side it sends it there; where that is one
//! thing for all of a side it goes from the first process of one to the first of the other, and on
//! from there.

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

/// Roots count in `team`: this process's side, and then the other one.
pub async fn run(call: &Call, team: &Team) -> Answer {
    let side = team.side();
    let (first, is_first) = (team.near, team.rank == 0);
    let is_root = |root: &usize| *root == team.rank;
    match call {
        Call::Nothing => Ok(()),
        Call::Barrier => {
            barrier(&side).await?;
            if is_first {
                let nothing = Data::bytes(std::ptr::null_mut(), 0);
                team.exchange(first, &nothing, first, nothing.clone()).await?;
            }
            // Only after that may anybody go on.
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
        Call::Gather { parts, root, .. } if is_root(root) => {
            exchange(team, &[], &each(team, parts)).await
        }
        Call::Gather { own, root, .. } => exchange(team, &to(*root, own), &[]).await,
        Call::Scatter { parts, root, .. } if is_root(root) => {
            exchange(team, &each(team, parts), &[]).await
        }
        Call::Scatter { own, root, .. } => exchange(team, &[], &to(*root, own)).await,
        Call::Allgather { own, parts } => {
            let own = own.as_ref().expect("never in place");
            let out: Vec<_> = team.far().map(|rank| (rank, own.clone())).collect();
            exchange(team, &out, &each(team, parts)).await
        }
        Call::Alltoall { out, into } => {
            let out = out.as_ref().expect("never in place");
            exchange(team, &each(team, out), &each(team, into)).await
        }
        Call::Reduce { into: Some(into), .. } => team.receive(first, into.data()).come().await,
        Call::Reduce { op, from, root, .. } => match reduced(&side, op, from).await? {
            Some(own) => team.send(*root, &own.items.data()).gone().await,
            None => Ok(()),
        },
        Call::Allreduce { op, from, into } => {
            if let Some(own) = reduced(&side, op, from).await? {
                team.exchange(first, &own.items.data(), first, into.data()).await?;
            }
            bcast(&side, into, 0).await
        }
        Call::ReduceScatter { op, from, counts, into } => {
            let mut parts = Vec::new();
            let theirs;
            if let Some(own) = reduced(&side, op, from).await? {
                theirs = Scratch::like(&own.items);
                team.exchange(first, &own.items.data(), first, theirs.items.data()).await?;
                parts = theirs.items.parts(counts);
            }
            scatter(&side, &parts, Some(into), 0).await
        }
        Call::Scan { .. } | Call::Exscan { .. } | Call::Neighbors { .. } => {
            unreachable!("refused on intercommunicators")
        }
    }
}

/// What belongs to each process of the other side.
fn each(team: &Team, parts: &[Items]) -> Vec<(usize, Items)> {
    team.far().zip(parts.iter().cloned()).collect()
}

fn to(root: usize, own: &Option<Items>) -> [(usize, Items); 1] {
    [(root, own.clone().expect("never in place"))]
}

/// What all of a side have comes to; its first process has it.
async fn reduced(side: &Team, op: &Op, from: &Option<Items>) -> Answer<Option<Scratch>> {
    let from = from.as_ref().expect("never in place");
    let result = (side.rank == 0).then(|| Scratch::like(from));
    reduce(side, op, from, result.as_ref().map(|result| &result.items), 0).await?;
    Ok(result)
}
