//! Alltoall and its v- and w-forms: each process posts all receives, then sends to the next
//! rank, the one after it, and so on, so that no process receives everything at once.

use super::items::{Items, Scratch};
use super::team::{all_come, all_gone, Team};
use crate::errors::Answer;

/// `out`: the block for each process, or None if it is in `into` (MPI_IN_PLACE).
pub async fn alltoall(team: &Team<'_>, out: Option<&[Items]>, into: &[Items]) -> Answer {
    let copies: Vec<Scratch>;
    let copied: Vec<Items>;
    let out = match out {
        Some(out) => out,
        None => {
            // SAFETY: the user leaves the buffer to the call until it has ended.
            copies = into.iter().map(|items| unsafe { Scratch::copy_of(items) }).collect();
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
    // SAFETY: the user leaves the buffers to the call until it has ended, and a copy is ours.
    unsafe { out[rank].hand_to(&into[rank])? };
    all_come(coming).await?;
    all_gone(going).await
}
