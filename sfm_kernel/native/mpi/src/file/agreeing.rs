//! Agreement among the processes of a file, all of which make the same calls in the same order.

use crate::collective::presence::complete;
use crate::collective::team::Team;
use crate::collective::words;
use crate::comm::Comm;
use crate::engine::Collective;
use crate::errors::{fail, Answer};
use crate::handles::*;

/// The values of all processes, by rank. No process returns before all have come.
pub fn all<T: Copy>(comm: &Comm, value: T) -> Answer<Vec<T>> {
    let team = Team::of(comm, Collective::File);
    complete(&team, words::one_of_each(&team, value))
}

/// A value that rank 0 computes and broadcasts.
pub fn from_first<T: Copy + Default>(comm: &Comm, compute: impl FnOnce() -> T) -> Answer<T> {
    let team = Team::of(comm, Collective::File);
    let value = if team.rank == 0 { compute() } else { T::default() };
    complete(&team, words::from_root(&team, value, 0))
}

/// Refuse, at all processes, an argument that is not the same at all.
pub fn same(comm: &Comm, name: &str, value: MPI_Offset) -> Answer {
    let values = all(comm, value)?;
    match values.iter().position(|other| *other != values[0]) {
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
