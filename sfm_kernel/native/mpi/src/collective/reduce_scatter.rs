//! Reduce-scatter: a ring for large data and operations that commute; otherwise a reduction
//! whose result is scattered.

use super::gather::scatter;
use super::items::{Items, Scratch};
use super::reduce::{combine_round, reduce};
use super::team::Team;
use crate::errors::Answer;
use crate::op::Op;

const RING_FROM: usize = 64 << 10;

/// `from`: the blocks of all processes; `counts`: the number of items of each block; `into`: this
/// process's result.
pub async fn reduce_scatter(
    team: &Team<'_>,
    op: &Op,
    from: &Items,
    counts: &[usize],
    into: &Items,
) -> Answer {
    // SAFETY: the user leaves the buffer to the call until it has ended.
    let work = unsafe { Scratch::copy_of(from) };
    let blocks = work.items.split(counts);
    if op.commutes() && from.bytes() >= RING_FROM {
        combine_round(team, op, &blocks).await?;
        // SAFETY: both are valid: one is ours, the other the user leaves to the call until it has
        // ended.
        unsafe { blocks[team.rank].copy_to(into) };
        return Ok(());
    }
    let result = (team.rank == 0).then_some(&work.items);
    reduce(team, op, from, result, 0).await?;
    scatter(team, &blocks, Some(into), 0).await
}
