//! Allgather and its v-form: everybody to everybody for what is small, a ring for what is large.
//!
//! Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations
//! in MPICH, IJHPCA 19 (2005), section 4.1, for the ring. One round of many small messages wakes each
//! process once, where a tree's rounds do so again and again: with more processes than cores that
//! decides.

use super::items::Items;
use super::team::{all_come, all_gone, Team};
use crate::errors::Answer;

/// Parts of so many bytes on average go round.
const RING_FROM: usize = 16 << 10;

/// `parts`: where each process's items go. `own`: None where ours are there already.
pub async fn allgather(team: &Team, own: Option<&Items>, parts: &[Items]) -> Answer {
    if let Some(own) = own {
        // SAFETY: the user's, and not the same.
        unsafe { own.hand_to(&parts[team.rank])? };
    }
    let bytes: usize = parts.iter().map(Items::bytes).sum();
    match bytes / team.size < RING_FROM {
        true => directly(team, parts).await,
        false => ring(team, parts).await,
    }
}

async fn directly(team: &Team, parts: &[Items]) -> Answer {
    let others = || (1..team.size).map(|distance| (team.rank + distance) % team.size);
    let coming = others().map(|rank| team.receive(rank, parts[rank].data())).collect();
    let own = parts[team.rank].data();
    let going = others().map(|rank| team.send(rank, &own)).collect();
    all_come(coming).await?;
    all_gone(going).await
}

/// Each part goes from process to process.
pub async fn ring(team: &Team, parts: &[Items]) -> Answer {
    let (next, last) = ((team.rank + 1) % team.size, (team.rank + team.size - 1) % team.size);
    for step in 0..team.size.saturating_sub(1) {
        let out = &parts[(team.rank + team.size - step) % team.size];
        let into = &parts[(last + team.size - step) % team.size];
        team.exchange(next, &out.data(), last, into.data()).await?;
    }
    Ok(())
}
