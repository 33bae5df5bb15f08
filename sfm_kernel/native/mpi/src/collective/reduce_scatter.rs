//! Reduce-scatter: a ring for what is large and commutes; else a reduction, whose result is scattered.

use super::gather::scatter;
use super::items::{Items, Scratch};
use super::reduce::{combine_round, reduce};
use super::team::Team;
use crate::errors::Answer;
use crate::op::Op;

const RING_FROM: usize = 64 << 10;

/// `from`: all parts; `counts`: how many items each process gets; `into`: where ours go.
pub async fn reduce_scatter(
    team: &Team,
    op: &Op,
    from: &Items,
    counts: &[usize],
    into: &Items,
) -> Answer {
    // SAFETY: the user's.
    let work = unsafe { Scratch::copy_of(from) };
    let parts = work.items.parts(counts);
    if op.commutes() && from.bytes() >= RING_FROM {
        combine_round(team, op, &parts).await?;
        // SAFETY: our own and the user's.
        unsafe { parts[team.rank].copy_to(into) };
        return Ok(());
    }
    let result = (team.rank == 0).then_some(&work.items);
    reduce(team, op, from, result, 0).await?;
    scatter(team, &parts, Some(into), 0).await
}
