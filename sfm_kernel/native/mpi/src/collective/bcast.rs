//! Broadcast: a binomial tree.
//!
//! Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication
//! operations in MPICH, IJHPCA 19 (2005), section 4.2. The children copy a large message from their
//! parent's memory at the same time, so splitting it into more messages would gain nothing.

use super::items::Items;
use super::team::{all_gone, Team};
use super::words;
use crate::errors::Answer;

pub async fn bcast(team: &Team<'_>, items: &Items, root: usize) -> Answer {
    let (data, relative) = (items.data(), (team.rank + team.size - root) % team.size);
    let process = |number: usize| (number + root) % team.size;
    // The lowest set bit of our number identifies our parent; the bits below it, our children.
    let mut bit = 1;
    while bit < team.size && relative & bit == 0 {
        bit <<= 1;
    }
    if relative != 0 {
        team.receive(process(relative - bit), data.clone()).come().await?;
    }
    let mut going = Vec::new();
    while bit > 1 {
        bit >>= 1;
        if relative + bit < team.size {
            going.push(team.send(process(relative + bit), &data));
        }
    }
    all_gone(going).await
}

/// Broadcast the root's text to all processes.
pub async fn text(team: &Team<'_>, text: String, root: usize) -> Answer<String> {
    let mut bytes = text.into_bytes();
    let length = words::from_root(team, bytes.len(), root).await?;
    bytes.resize(length, 0);
    bcast(team, &Items::of_bytes(&mut bytes)?, root).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
