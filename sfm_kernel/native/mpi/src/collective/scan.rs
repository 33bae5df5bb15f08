//! Scan and exscan: in each round everybody hears of twice as many processes before it.
//!
//! Source: W. D. Hillis, G. L. Steele, Data parallel algorithms, CACM 29 (1986).

use super::items::{Items, Scratch};
use super::team::Team;
use crate::errors::Answer;
use crate::op::Op;

/// Combine in `items` what all processes up to this one have there.
pub async fn scan(team: &Team, op: &Op, items: &Items) -> Answer {
    let (data, theirs) = (items.data(), Scratch::like(items));
    let mut distance = 1;
    while distance < team.size {
        let before = team.rank.checked_sub(distance);
        let coming = before.map(|rank| team.receive(rank, theirs.items.data()));
        if team.rank + distance < team.size {
            team.send(team.rank + distance, &data).gone().await?;
        }
        if let Some(coming) = coming {
            coming.come().await?;
            // SAFETY: our own and the user's.
            unsafe { theirs.items.combine_into(items, op)? };
        }
        distance *= 2;
    }
    Ok(())
}

/// The same without this process's own, into `into`, which rank 0 leaves as it is.
pub async fn exscan(team: &Team, op: &Op, from: &Items, into: &Items) -> Answer {
    // SAFETY: the user's.
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
