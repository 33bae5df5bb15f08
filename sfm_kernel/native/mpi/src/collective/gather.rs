//! Gather and scatter, with their v-forms: every process exchanges directly with the root.
//!
//! On one machine a tree leaves the root as much work, and its inner nodes would copy the data once
//! more.

use super::items::Items;
use super::team::{all_come, all_gone, Team};
use crate::errors::Answer;

/// `blocks`: at the root, the receive position of each process's items. `local`: this process's
/// items, or None if they are already in their block.
pub async fn gather(
    team: &Team<'_>,
    local: Option<&Items>,
    blocks: &[Items],
    root: usize,
) -> Answer {
    if team.rank != root {
        let local = local.expect("only the root's may be in place");
        return team.send(root, &local.data()).gone().await;
    }
    let others = (0..team.size).filter(|rank| *rank != root);
    let coming = others.map(|rank| team.receive(rank, blocks[rank].data())).collect();
    if let Some(local) = local {
        // SAFETY: the user's buffers, which do not overlap.
        unsafe { local.hand_to(&blocks[root])? };
    }
    all_come(coming).await
}

/// `blocks`: at the root, the items for each process. `local`: the receive position, or None if the
/// root's block stays in place.
pub async fn scatter(
    team: &Team<'_>,
    blocks: &[Items],
    local: Option<&Items>,
    root: usize,
) -> Answer {
    if team.rank != root {
        let local = local.expect("only the root's may be in place");
        return team.receive(root, local.data()).come().await;
    }
    let others = (0..team.size).filter(|rank| *rank != root);
    let going = others.map(|rank| team.send(rank, &blocks[rank].data())).collect();
    if let Some(local) = local {
        // SAFETY: the user's buffers, which do not overlap.
        unsafe { blocks[root].hand_to(local)? };
    }
    all_gone(going).await
}
