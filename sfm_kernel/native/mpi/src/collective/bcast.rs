//! Broadcast: a binomial tree.
//!
//! Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations
//! in MPICH, IJHPCA 19 (2005), section 4.2. Large messages are fetched by the children from their
//! parent's memory, all at the same time, so that one message for each is all there is to gain.

use super::items::Items;
use super::team::{all_gone, Team};
use crate::errors::Answer;
use crate::handles::*;

pub async fn bcast(team: &Team, items: &Items, root: usize) -> Answer {
    let (data, own) = (items.data(), (team.rank + team.size - root) % team.size);
    let process = |number: usize| (number + root) % team.size;
    // The lowest bit of our number says whose child we are; those below it, who our children are.
    let mut bit = 1;
    while bit < team.size && own & bit == 0 {
        bit <<= 1;
    }
    if own != 0 {
        team.receive(process(own - bit), data.clone()).come().await?;
    }
    let mut going = Vec::new();
    while bit > 1 {
        bit >>= 1;
        if own + bit < team.size {
            going.push(team.send(process(own + bit), &data));
        }
    }
    all_gone(going).await
}

/// The root's text, known to all.
pub async fn text(team: &Team, text: String, root: usize) -> Answer<String> {
    let mut bytes = text.into_bytes();
    let mut length = bytes.len() as u64;
    bcast(team, &Items::of("length", (&raw mut length).cast(), 1, MPI_UINT64_T)?, root).await?;
    bytes.resize(length as usize, 0);
    bcast(team, &Items::own(&mut bytes)?, root).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
