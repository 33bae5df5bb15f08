//! Alltoall and its v- and w-forms: all receives are posted, then everybody sends to the next, the
//! one after it, and so on, so that nobody is sent everything at once.

use super::items::{Items, Scratch};
use super::team::{all_come, all_gone, Team};
use crate::errors::Answer;

/// `out`: what each process gets; None where that stands where what comes is to go.
pub async fn alltoall(team: &Team, out: Option<&[Items]>, into: &[Items]) -> Answer {
    let copies: Vec<Scratch>;
    let copied: Vec<Items>;
    let out = match out {
        Some(out) => out,
        None => {
            // SAFETY: the user's.
            copies = into.iter().map(|one| unsafe { Scratch::copy_of(one) }).collect();
            copied = copies.iter().map(|copy| copy.items.clone()).collect();
            &copied
        }
    };
    let (rank, size) = (team.rank, team.size);
    let coming = (1..size)
        .map(|distance| (rank + size - distance) % size)
        .map(|other| team.receive(other, into[other].data()))
        .collect();
    let going = (1..size)
        .map(|distance| (rank + distance) % size)
        .map(|other| team.send(other, &out[other].data()))
        .collect();
    // SAFETY: the user's, or a copy of it.
    unsafe { out[rank].hand_to(&into[rank])? };
    all_come(coming).await?;
    all_gone(going).await
}
