//! Scan and exscan: each round doubles the number of preceding processes whose operands a
//! process has combined.
//!
//! Source: W. D. Hillis, G. L. Steele, Data parallel algorithms, CACM 29 (1986).

use super::items::{Items, Scratch};
use super::team::Team;
use crate::errors::Answer;
use crate::op::Op;

/// Combine into `items` the operands of all ranks up to this one.
pub async fn scan(team: &Team<'_>, op: &Op, items: &Items) -> Answer {
    let (data, received) = (items.data(), Scratch::like(items));
    let mut distance = 1;
    while distance < team.size {
        let before = team.rank.checked_sub(distance);
        let coming = before.map(|rank| team.receive(rank, received.items.data()));
        if team.rank + distance < team.size {
            team.send(team.rank + distance, &data).gone().await?;
        }
        if let Some(coming) = coming {
            coming.come().await?;
            // SAFETY: both are valid: one is ours, the other the user leaves to the call until it
            // has ended.
            unsafe { received.items.combine_into(items, op)? };
        }
        distance *= 2;
    }
    Ok(())
}

/// Scan without this process's operand, into `into`, which rank 0 leaves unchanged.
pub async fn exscan(team: &Team<'_>, op: &Op, from: &Items, into: &Items) -> Answer {
    // SAFETY: the user leaves the buffer to the call until it has ended.
    let work = unsafe { Scratch::copy_of(from) };
    scan(team, op, &work.items).await?;
    let coming = team.rank.checked_sub(1).map(|rank| team.receive(rank, into.data()));
    if team.rank + 1 < team.size {
        team.send(team.rank + 1, &work.items.data()).gone().await?;
    }
    match coming {
        Some(coming) => coming.come().await,
        None => Ok(()),
    }
}
