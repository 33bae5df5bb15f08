//! Where messages of a communicator go to and come from, as the engine says it.

use crate::checks;
use crate::comm::Comm;
use crate::engine::{self, From, To, Wanted, What};
use crate::errors::Answer;
use crate::handles::*;
use crate::left;

/// The other end of a send; None for MPI_PROC_NULL.
pub fn to(comm: &Comm, dest: c_int, tag: c_int) -> Answer<Option<To>> {
    checks::destination(comm, dest)?;
    checks::tag(tag)?;
    if dest == MPI_PROC_NULL {
        return Ok(None);
    }
    let rank = comm.peers().members[dest as usize] as usize;
    Ok(Some(To {
        context: engine::messages(comm.context),
        rank,
        source: comm.rank,
        tag,
        what: What::Message,
        site: left::site(),
    }))
}

/// Which messages a receive takes; None for MPI_PROC_NULL.
pub fn wanted(comm: &Comm, source: c_int, tag: c_int) -> Answer<Option<Wanted>> {
    checks::source(comm, source)?;
    checks::tag_or_any(tag)?;
    if source == MPI_PROC_NULL {
        return Ok(None);
    }
    let members = &comm.peers().members;
    let from = (source != MPI_ANY_SOURCE).then(|| members[source as usize] as usize);
    Ok(Some(Wanted {
        context: engine::messages(comm.context),
        source,
        tag,
        from,
        what: What::Message,
    }))
}

/// Whose death makes waiting for such a message useless.
pub fn from<'a>(comm: &'a Comm, wanted: &Wanted) -> From<'a> {
    match wanted.from {
        Some(rank) => From::One(rank),
        None => From::Any(&comm.peers().members),
    }
}
