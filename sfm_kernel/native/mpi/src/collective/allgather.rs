//! Allgather and its v-form: direct exchange for small blocks, a ring for large ones.
//!
//! Source for the ring: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective
//! communication operations in MPICH, IJHPCA 19 (2005), section 4.1. A direct exchange sends many
//! small messages in one round and wakes each process once; the rounds of a tree wake it again and
//! again. With more processes than cores that decides.

use super::items::Items;
use super::team::{all_come, all_gone, Team};
use crate::errors::Answer;

/// Blocks of at least this many bytes on average go round the ring.
const RING_FROM: usize = 16 << 10;

/// `blocks`: the receive position of each process's items. `local`: this process's items, or None
/// if they are already in their block. The other processes receive them from `local`, so that the
/// copy made meanwhile touches memory that is in no other cache.
pub async fn allgather(team: &Team<'_>, local: Option<&Items>, blocks: &[Items]) -> Answer {
    let bytes: usize = blocks.iter().map(Items::bytes).sum();
    match team.size == 1 || bytes / team.size < RING_FROM {
        true => directly(team, local, blocks).await,
        false => ring(team, local, blocks).await,
    }
}

/// Every process sends to every other process.
pub async fn directly(team: &Team<'_>, local: Option<&Items>, blocks: &[Items]) -> Answer {
    let others = || (1..team.size).map(|distance| (team.rank + distance) % team.size);
    let coming = others().map(|rank| team.receive(rank, blocks[rank].data())).collect();
    let out = local.unwrap_or(&blocks[team.rank]).data();
    let going = others().map(|rank| team.send(rank, &out)).collect();
    store(team, local, blocks)?;
    all_come(coming).await?;
    all_gone(going).await
}

/// Each block goes from process to process.
pub async fn ring(team: &Team<'_>, local: Option<&Items>, blocks: &[Items]) -> Answer {
    let (next, last) = ((team.rank + 1) % team.size, (team.rank + team.size - 1) % team.size);
    let mut out = local.unwrap_or(&blocks[team.rank]);
    for step in 0..team.size.saturating_sub(1) {
        let into = &blocks[(last + team.size - step) % team.size];
        let coming = team.receive(last, into.data());
        let going = team.send(next, &out.data());
        if step == 0 {
            store(team, local, blocks)?;
        }
        coming.come().await?;
        going.gone().await?;
        out = into;
    }
    Ok(())
}

fn store(team: &Team, local: Option<&Items>, blocks: &[Items]) -> Answer {
    // SAFETY: the user's buffers, which do not overlap.
    local.map_or(Ok(()), |local| unsafe { local.hand_to(&blocks[team.rank]) })
}
