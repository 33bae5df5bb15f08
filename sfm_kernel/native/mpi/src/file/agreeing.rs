//! Agreement among the processes of a file, all of which make the same calls in the same order.

use crate::collective::items::Items;
use crate::collective::team::{complete, Team};
use crate::collective::{allgather, bcast};
use crate::comm::Comm;
use crate::engine::What;
use crate::errors::{fail, Answer};
use crate::handles::*;

/// The values of all processes, by rank. No process returns before all have come.
pub fn all<T: Copy>(comm: &Comm, value: T) -> Answer<Vec<T>> {
    let team = Team::of(comm, What::File);
    let mut values = vec![value; team.size];
    let items = Items::of_bytes(&mut values)?;
    let each = std::mem::size_of::<T>();
    let blocks: Vec<Items> = (0..team.size).map(|nth| items.slice(nth * each, each)).collect();
    complete(&team, allgather::allgather(&team, None, &blocks))?;
    Ok(values)
}

/// A value that rank 0 computes and broadcasts.
pub fn from_first<T: Copy + Default>(comm: &Comm, compute: impl FnOnce() -> T) -> Answer<T> {
    let team = Team::of(comm, What::File);
    let mut values = [if team.rank == 0 { compute() } else { T::default() }];
    let items = Items::of_bytes(&mut values)?;
    complete(&team, bcast::bcast(&team, &items, 0))?;
    Ok(values[0])
}

/// Refuse, at all processes, an argument that is not the same at all.
pub fn same(comm: &Comm, name: &str, value: MPI_Offset) -> Answer {
    let values = all(comm, value)?;
    match values.iter().position(|one| *one != values[0]) {
        None => Ok(()),
        Some(rank) => {
            let text = format!(
                "argument {name} is {} in process 0 and {} in process {rank} of the file's \
                communicator; it must be the same at all processes",
                values[0], values[rank]
            );
            Err(fail(MPI_ERR_NOT_SAME, text))
        }
    }
}
