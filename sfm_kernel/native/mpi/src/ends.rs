//! The ends of a communicator's messages in the engine's terms.

use crate::comm::Comm;
use crate::engine::{self, From, Pattern, To};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::{checks, object_reductions};

/// The destination of a send; None for MPI_PROC_NULL.
pub fn to(comm: &Comm, dest: c_int, tag: c_int) -> Answer<Option<To>> {
    destination(comm, dest)?;
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
    self::source(comm, source)?;
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

/// The destination of a message: a rank, or MPI_PROC_NULL.
fn destination(comm: &Comm, dest: c_int) -> Answer {
    if (0..comm.peers().size()).contains(&dest) || dest == MPI_PROC_NULL {
        return Ok(());
    }
    Err(wrong_rank("dest", dest, comm))
}

/// The source of a message: a rank, MPI_PROC_NULL or MPI_ANY_SOURCE.
fn source(comm: &Comm, source: c_int) -> Answer {
    if (0..comm.peers().size()).contains(&source)
        || [MPI_ANY_SOURCE, MPI_PROC_NULL].contains(&source)
    {
        return Ok(());
    }
    Err(wrong_rank("source", source, comm))
}

#[cold]
fn wrong_rank(name: &str, rank: c_int, comm: &Comm) -> Failure {
    let (size, on) = (comm.peers().size(), comm.name());
    let text = match size {
        1 => format!("argument {name} is {rank}, but {on} has one process: rank 0"),
        _ => {
            let last = size - 1;
            format!("argument {name} is {rank}, but {on} has {size} processes: ranks 0 to {last}")
        }
    };
    fail(MPI_ERR_RANK, text)
}

/// The root of a collective; for an intercommunicator also MPI_ROOT and MPI_PROC_NULL.
pub fn root(comm: &Comm, root: c_int) -> Answer {
    let is_side = [MPI_ROOT, MPI_PROC_NULL].contains(&root);
    if (0..comm.peers().size()).contains(&root) || is_side && comm.remote.is_some() {
        return Ok(());
    }
    let mut wrong = wrong_rank("root", root, comm);
    wrong.code = MPI_ERR_ROOT;
    if is_side {
        wrong.text += "; MPI_ROOT and MPI_PROC_NULL are roots of intercommunicators only";
    }
    Err(wrong)
}
