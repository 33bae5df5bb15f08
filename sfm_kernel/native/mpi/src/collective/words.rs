//! Numbers of the library's own that the processes of a team tell each other.

use super::allgather::allgather;
use super::items::Items;
use super::team::Team;
use super::{bcast, gather};
use crate::errors::Answer;

/// One of each process, by rank.
pub async fn one_of_each<T: Copy>(team: &Team, own: T) -> Answer<Vec<T>> {
    let mut all = vec![own; team.size];
    share(team, &mut all, &vec![1; team.size]).await?;
    Ok(all)
}

/// The same, where the first process goes on before the others do: it collects, and then tells them.
/// So it is with windows, as programs often let it write their first values, and forget the barrier
/// that the others need before they reach for those.
pub async fn first_knows_first<T: Copy>(team: &Team, own: T) -> Answer<Vec<T>> {
    let mut all = vec![own; team.size];
    let whole = Items::own(&mut all)?;
    let parts = whole.parts(&vec![size_of::<T>(); team.size]);
    let other = (team.rank != 0).then(|| &parts[team.rank]);
    gather::gather(team, other, &parts, 0).await?;
    bcast::bcast(team, &whole, 0).await?;
    Ok(all)
}

/// Those of all processes, one behind the other.
pub async fn all<T: Copy + Default>(team: &Team, own: &[T]) -> Answer<Vec<T>> {
    let counts = one_of_each(team, own.len()).await?;
    let before: usize = counts[..team.rank].iter().sum();
    let mut all = vec![T::default(); counts.iter().sum()];
    all[before..before + own.len()].copy_from_slice(own);
    share(team, &mut all, &counts).await?;
    Ok(all)
}

async fn share<T: Copy>(team: &Team, all: &mut [T], counts: &[usize]) -> Answer {
    let bytes: Vec<usize> = counts.iter().map(|count| count * size_of::<T>()).collect();
    allgather(team, None, &Items::own(all)?.parts(&bytes)).await
}
