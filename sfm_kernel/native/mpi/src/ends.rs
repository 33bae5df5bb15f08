//! The ends of a communicator's messages in the engine's terms.

use crate::comm::Comm;
use crate::engine::{self, From, Pattern, To};
use crate::errors::Answer;
use crate::handles::*;
use crate::{checks, object_reductions};

/// The destination of a send; None for MPI_PROC_NULL.
pub fn to(comm: &Comm, dest: c_int, tag: c_int) -> Answer<Option<To>> {
    checks::destination(comm, dest)?;
    checks::tag(tag)?;
    if dest == MPI_PROC_NULL {
        return Ok(None);
    }
    let rank = comm.peers().members[dest as usize] as usize;
    let ((what, _), mark) = object_reductions::of(comm, tag);
    Ok(Some(To {
        context: engine::messages(comm.context),
        rank,
        source: comm.rank,
        tag,
        what,
        mark,
    }))
}

/// The messages that a receive matches; None for MPI_PROC_NULL.
pub fn pattern(comm: &Comm, source: c_int, tag: c_int) -> Answer<Option<Pattern>> {
    checks::source(comm, source)?;
    checks::tag_or_any(tag)?;
    if source == MPI_PROC_NULL {
        return Ok(None);
    }
    let members = &comm.peers().members;
    let from = (source != MPI_ANY_SOURCE).then(|| members[source as usize] as usize);
    let ((what, alike), _) = object_reductions::of(comm, tag);
    Ok(Some(Pattern { context: engine::messages(comm.context), source, tag, from, what, alike }))
}

/// The processes whose death makes waiting for such a message useless.
pub fn from<'a>(comm: &'a Comm, pattern: &Pattern) -> From<'a> {
    match pattern.from {
        Some(rank) => From::One(rank),
        None => From::Any(&comm.peers().members),
    }
}
