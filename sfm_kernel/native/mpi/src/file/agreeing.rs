//! What the processes of a file tell each other. All of them make the same calls in the same order.

use crate::collective::items::Items;
use crate::collective::team::{whole, Team};
use crate::collective::{allgather, bcast};
use crate::comm::Comm;
use crate::engine::What;
use crate::errors::{fail, Answer};
use crate::handles::*;

/// What each process says, by rank. Nobody returns before all have come here.
pub fn all<T: Copy>(comm: &Comm, own: T) -> Answer<Vec<T>> {
    let team = Team::of(comm, What::File);
    let mut told = vec![own; team.size];
    let items = Items::own(&mut told)?;
    let each = std::mem::size_of::<T>();
    let parts: Vec<Items> = (0..team.size).map(|nth| items.part(nth * each, each)).collect();
    whole(&team, allgather::allgather(&team, None, &parts))?;
    Ok(told)
}

/// What rank 0 finds out, and the others hear.
pub fn from_first<T: Copy + Default>(comm: &Comm, own: impl FnOnce() -> T) -> Answer<T> {
    let team = Team::of(comm, What::File);
    let mut told = [if team.rank == 0 { own() } else { T::default() }];
    let items = Items::own(&mut told)?;
    whole(&team, bcast::bcast(&team, &items, 0))?;
    Ok(told[0])
}

/// Refuse, in all processes, an argument that is not the same in all.
pub fn same(comm: &Comm, name: &str, own: MPI_Offset) -> Answer {
    let told = all(comm, own)?;
    match told.iter().position(|one| *one != told[0]) {
        None => Ok(()),
        Some(rank) => {
            let text = format!(
                "argument {name} is {} in process 0 and {} in process {rank} of the file's \
                 communicator; it has to be the same in all",
                told[0], told[rank]
            );
            Err(fail(MPI_ERR_NOT_SAME, text))
        }
    }
}
