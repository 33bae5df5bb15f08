//! What observers are told of a call that waits: what only the call itself knows of it.
//!
//! Its name is known from its entry (sfm_endpoint: callers.rs), its arguments and its partners are
//! asked for when it is seen to wait. Nothing of this costs a call that does not.

use std::cell::Cell;
use std::collections::BTreeSet;

use sfm_endpoint::calltext::{Call, Waits};
use sfm_endpoint::{callers, Name};

use super::wait::From;
use super::{engine, Sending, Wanted};
use crate::comm::Comm;
use crate::handles::*;
use crate::process::shown;

/// Arguments as they are shown, by their names in the standard.
pub type Arguments = Vec<(&'static str, String)>;

thread_local! {
    /// The process for which a call of this thread waits that waits for one after the other.
    static AWAITED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// A call cannot go on before this process of the world has done its part.
/// None: it is not known which.
pub fn awaits(rank: impl Into<Option<usize>>) {
    AWAITED.set(rank.into());
}

pub fn awaited() -> Option<usize> {
    AWAITED.get()
}

/// Do something; with it, for whose part that waits.
pub fn awaiting<T>(work: impl FnOnce() -> T) -> (T, Option<usize>) {
    let before = AWAITED.take();
    let done = work();
    (done, AWAITED.replace(before))
}

fn call(mut arguments: Arguments, waits: Waits) -> Call {
    let Some(name) = engine().endpoint.surroundings().call() else {
        return Call { name: callers::name().into(), arguments, waits };
    };
    for (_, said) in &mut arguments {
        *said = said.replace("MPI_ANY_", "MPI.ANY_"); // as Python has it
    }
    Call { name, arguments, waits }
}

/// A call of which no more is known than whose death would end it.
pub fn some(arguments: Arguments, from: From<'_>) -> Call {
    call(arguments, Waits::Others(peers(from)))
}

/// One that waits for requests; without peers if any of them may be anybody's.
pub fn requests(arguments: Arguments, peers: Option<&[c_int]>) -> Call {
    let names = peers.map(|peers| {
        let once: BTreeSet<_> = peers.iter().map(|rank| *rank as usize).collect();
        once.into_iter().map(shown).collect()
    });
    call(arguments, Waits::Others(names))
}

/// The numbers of a receive.
pub fn wanted(source: c_int, tag: c_int) -> Arguments {
    let said = |number: c_int, any: c_int, name: &str| match number == any {
        true => name.to_owned(),
        false => number.to_string(),
    };
    let source = said(source, MPI_ANY_SOURCE, "MPI_ANY_SOURCE");
    vec![("source", source), ("tag", said(tag, MPI_ANY_TAG, "MPI_ANY_TAG"))]
}

/// A receive or a probe.
pub fn receive(comm: &Comm, wanted: &Wanted) -> Call {
    let known = |number: c_int, any: c_int| (number != any).then_some(i64::from(number));
    let (source, tag) = (known(wanted.source, MPI_ANY_SOURCE), known(wanted.tag, MPI_ANY_TAG));
    let mut arguments = self::wanted(wanted.source, wanted.tag);
    arguments.extend(communicator(comm));
    let everybody = comm.peers().members.len() == engine().size();
    let peers = match wanted.from {
        Some(rank) => Some(vec![shown(rank)]),
        None if everybody => None,
        None => peers(From::Any(&comm.peers().members)),
    };
    call(arguments, Waits::Message { peers, source, tag, context_id: wanted.context })
}

/// A send, which waits for its receiver.
pub fn send(comm: &Comm, dest: c_int, tag: c_int, count: MPI_Count, rank: usize) -> Call {
    sent(comm, vec![("dest", dest.into()), ("tag", tag.into()), ("count", count)], rank)
}

/// A send that was begun before.
pub fn sending(comm: &Comm, sending: &Sending) -> Call {
    let dest = comm.peers().members.iter().position(|rank| *rank as usize == sending.dest);
    let dest = dest.map_or(MPI_PROC_NULL, |dest| dest as c_int);
    sent(comm, vec![("dest", dest.into()), ("tag", sending.tag().into())], sending.dest)
}

fn sent(comm: &Comm, numbers: Vec<(&'static str, MPI_Count)>, rank: usize) -> Call {
    let numbers = numbers.into_iter().map(|(name, number)| (name, number.to_string()));
    let arguments = numbers.chain(communicator(comm)).collect();
    call(arguments, Waits::Others(Some(vec![shown(rank)])))
}

/// A collective call, which waits for one of its processes at a time.
pub fn collective() -> Call {
    collective_with(vec![])
}

pub fn collective_with(arguments: Arguments) -> Call {
    call(arguments, Waits::Members(awaited().map(shown).into_iter().collect()))
}

/// One that waits for all of these.
pub fn collective_of(missing: impl Iterator<Item = usize>) -> Call {
    call(vec![], Waits::Members(missing.map(shown).collect()))
}

/// A call that waits until one process after the other has done something.
pub fn one_by_one(arguments: Arguments) -> Call {
    call(arguments, Waits::Others(awaited().map(|rank| vec![shown(rank)])))
}

/// The communicator's name, where it is not the one that goes without saying.
pub fn communicator(comm: &Comm) -> Option<(&'static str, String)> {
    let name = comm.name();
    (name != "MPI_COMM_WORLD").then_some(("comm", name))
}

fn peers(from: From<'_>) -> Option<Vec<Name>> {
    match from {
        From::Nobody => None,
        From::One(rank) => Some(vec![shown(rank)]),
        From::Any(ranks) => {
            let own = engine().rank as c_int;
            let others = ranks.iter().filter(|rank| **rank != own);
            Some(others.map(|rank| shown(*rank as usize)).collect())
        }
    }
}
