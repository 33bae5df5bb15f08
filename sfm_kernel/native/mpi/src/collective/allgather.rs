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

/// `parts`: where each process's items go. `own`: None where ours are there already. The others get
/// them from where they are: what is copied meanwhile is then in nobody else's cache.
pub async fn allgather(team: &Team, own: Option<&Items>, parts: &[Items]) -> Answer {
    let bytes: usize = parts.iter().map(Items::bytes).sum();
    match team.size == 1 || bytes / team.size < RING_FROM {
        true => directly(team, own, parts).await,
        false => ring(team, own, parts).await,
    }
}

/// Everybody to everybody.
pub async fn directly(team: &Team, own: Option<&Items>, parts: &[Items]) -> Answer {
    let others = || (1..team.size).map(|distance| (team.rank + distance) % team.size);
    let coming = others().map(|rank| team.receive(rank, parts[rank].data())).collect();
    let out = own.unwrap_or(&parts[team.rank]).data();
    let going = others().map(|rank| team.send(rank, &out)).collect();
    place(team, own, parts)?;
    all_come(coming).await?;
    all_gone(going).await
}

/// Each part goes from process to process.
pub async fn ring(team: &Team, own: Option<&Items>, parts: &[Items]) -> Answer {
    let (next, last) = ((team.rank + 1) % team.size, (team.rank + team.size - 1) % team.size);
    let mut out = own.unwrap_or(&parts[team.rank]);
    for step in 0..team.size.saturating_sub(1) {
        let into = &parts[(last + team.size - step) % team.size];
        let coming = team.receive(last, into.data());
        let going = team.send(next, &out.data());
        if step == 0 {
            place(team, own, parts)?;
        }
        coming.come().await?;
        going.gone().await?;
        out = into;
    }
    Ok(())
}

fn place(team: &Team, own: Option<&Items>, parts: &[Items]) -> Answer {
    // SAFETY: the user's, and not the same.
    own.map_or(Ok(()), |own| unsafe { own.hand_to(&parts[team.rank]) })
}
