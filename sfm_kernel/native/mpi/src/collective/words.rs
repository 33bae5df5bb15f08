//! Values of this library that the processes of a team exchange.

use super::allgather::allgather;
use super::items::Items;
use super::team::Team;
use super::{bcast, gather};
use crate::errors::Answer;

/// One value of each process, by rank.
pub async fn one_of_each<T: Copy>(team: &Team<'_>, value: T) -> Answer<Vec<T>> {
    let mut all = vec![value; team.size];
    share(team, &mut all, &vec![1; team.size]).await?;
    Ok(all)
}

/// The root's value, broadcast.
pub async fn from_root<T: Copy>(team: &Team<'_>, value: T, root: usize) -> Answer<T> {
    let mut values = [value];
    bcast::bcast(team, &Items::of_bytes(&mut values)?, root).await?;
    Ok(values[0])
}

/// Like `one_of_each`, but the first process returns before the others: it gathers, then
/// broadcasts. Windows use it, because programs often let the first process write initial values
/// and forget the barrier before the others read them.
pub async fn first_knows_first<T: Copy>(team: &Team<'_>, value: T) -> Answer<Vec<T>> {
    let mut all = vec![value; team.size];
    let items = Items::of_bytes(&mut all)?;
    let blocks = items.split(&vec![size_of::<T>(); team.size]);
    let other = (team.rank != 0).then(|| &blocks[team.rank]);
    gather::gather(team, other, &blocks, 0).await?;
    bcast::bcast(team, &items, 0).await?;
    Ok(all)
}

/// The values of all processes, concatenated by rank.
pub async fn all<T: Copy + Default>(team: &Team<'_>, values: &[T]) -> Answer<Vec<T>> {
    let counts = one_of_each(team, values.len()).await?;
    let before: usize = counts[..team.rank].iter().sum();
    let mut all = vec![T::default(); counts.iter().sum()];
    all[before..before + values.len()].copy_from_slice(values);
    share(team, &mut all, &counts).await?;
    Ok(all)
}

async fn share<T: Copy>(team: &Team<'_>, all: &mut [T], counts: &[usize]) -> Answer {
    let bytes: Vec<usize> = counts.iter().map(|count| count * size_of::<T>()).collect();
    allgather(team, None, &Items::of_bytes(all)?.split(&bytes)).await
}
