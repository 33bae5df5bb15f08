//! Numbers of the library's own that the processes of a team tell each other.

use super::allgather::allgather;
use super::items::Items;
use super::team::Team;
use crate::errors::Answer;

/// One of each process, by rank.
pub async fn one_of_each<T: Copy>(team: &Team, own: T) -> Answer<Vec<T>> {
    let mut all = vec![own; team.size];
    gather(team, &mut all, &vec![1; team.size]).await?;
    Ok(all)
}

/// Those of all processes, one behind the other.
pub async fn all<T: Copy + Default>(team: &Team, own: &[T]) -> Answer<Vec<T>> {
    let counts = one_of_each(team, own.len()).await?;
    let before: usize = counts[..team.rank].iter().sum();
    let mut all = vec![T::default(); counts.iter().sum()];
    all[before..before + own.len()].copy_from_slice(own);
    gather(team, &mut all, &counts).await?;
    Ok(all)
}

async fn gather<T: Copy>(team: &Team, all: &mut [T], counts: &[usize]) -> Answer {
    let bytes: Vec<usize> = counts.iter().map(|count| count * size_of::<T>()).collect();
    allgather(team, None, &Items::own(all)?.parts(&bytes)).await
}
