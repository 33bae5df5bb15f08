//! Gather and scatter, with their v-forms: everybody and the root, directly.
//!
//! On one machine the root's work is the same in a tree, where others would copy the data once more.

use super::items::Items;
use super::team::{all_come, all_gone, Team};
use crate::errors::Answer;

/// `parts`: at the root, where each process's items go. `own`: None where they are there already.
pub async fn gather(team: &Team, own: Option<&Items>, parts: &[Items], root: usize) -> Answer {
    if team.rank != root {
        let own = own.expect("only the root's may be in place");
        return team.send(root, &own.data()).gone().await;
    }
    let others = (0..team.size).filter(|rank| *rank != root);
    let coming = others.map(|rank| team.receive(rank, parts[rank].data())).collect();
    if let Some(own) = own {
        // SAFETY: the user's, and not the same.
        unsafe { own.hand_to(&parts[root])? };
    }
    all_come(coming).await
}

/// `parts`: at the root, where each process's items are. `own`: None where they stay there.
pub async fn scatter(team: &Team, parts: &[Items], own: Option<&Items>, root: usize) -> Answer {
    if team.rank != root {
        let own = own.expect("only the root's may be in place");
        return team.receive(root, own.data()).come().await;
    }
    let others = (0..team.size).filter(|rank| *rank != root);
    let going = others.map(|rank| team.send(rank, &parts[rank].data())).collect();
    if let Some(own) = own {
        // SAFETY: the user's, and not the same.
        unsafe { parts[root].hand_to(own)? };
    }
    all_gone(going).await
}
