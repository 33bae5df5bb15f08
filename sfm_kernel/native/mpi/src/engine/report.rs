//! The description of a waiting call for observers: what only the call itself knows.
//!
//! Its name is known from its entry (sfm_endpoint: callers.rs); its arguments and partners are
//! computed when it is seen to wait. A call that does not wait pays nothing for it.

use std::cell::Cell;
use std::collections::BTreeSet;

use sfm_endpoint::calltext::{Call, Waits};
use sfm_endpoint::{callers, Name};

use super::wait::From;
use super::{engine, Pattern, Sending};
use crate::comm::Comm;
use crate::handles::*;
use crate::process::shown;

/// Arguments as observers see them, by their names in the standard.
pub type Arguments = Vec<(&'static str, String)>;

thread_local! {
    /// The process that a call of this thread waits for, if it waits for one after the other.
    static AWAITED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Note that a call cannot continue before this process of the world has acted. None: unknown.
pub fn awaits(rank: impl Into<Option<usize>>) {
    AWAITED.set(rank.into());
}

pub fn awaited() -> Option<usize> {
    AWAITED.get()
}

/// The process that the call waits for, if it is known; otherwise any of these may be.
pub fn awaited_or(members: &[c_int]) -> Vec<usize> {
    let all = || members.iter().map(|rank| *rank as usize).collect();
    awaited().map_or_else(all, |rank| vec![rank])
}

/// Do `work`; return its result and the process that it waits for.
pub fn awaiting<T>(work: impl FnOnce() -> T) -> (T, Option<usize>) {
    let before = AWAITED.take();
    let done = work();
    (done, AWAITED.replace(before))
}

fn call(mut arguments: Arguments, waits: Waits) -> Call {
    let Some(name) = engine().endpoint.surroundings().call() else {
        return Call { name: callers::name().into(), arguments, waits };
    };
    for (_, shown_as) in &mut arguments {
        *shown_as = shown_as.replace("MPI_ANY_", "MPI.ANY_"); // as Python spells it
    }
    Call { name, arguments, waits }
}

/// A call of which only the processes are known whose death would end it.
pub fn some(arguments: Arguments, from: From<'_>) -> Call {
    call(arguments, Waits::Others(peers(from)))
}

/// A call that waits for requests; without peers if the peer of any of them is unknown.
pub fn requests(arguments: Arguments, peers: Option<&[c_int]>) -> Call {
    let names = peers.map(|peers| {
        let once: BTreeSet<_> = peers.iter().map(|rank| *rank as usize).collect();
        once.into_iter().map(shown).collect()
    });
    call(arguments, Waits::Others(names))
}

/// The source and tag of a receive.
pub fn pattern(source: c_int, tag: c_int) -> Arguments {
    let shown_as = |number: c_int, any: c_int, name: &str| match number == any {
        true => name.to_owned(),
        false => number.to_string(),
    };
    let source = shown_as(source, MPI_ANY_SOURCE, "MPI_ANY_SOURCE");
    vec![("source", source), ("tag", shown_as(tag, MPI_ANY_TAG, "MPI_ANY_TAG"))]
}

/// A receive or a probe.
pub fn receive(comm: &Comm, pattern: &Pattern) -> Call {
    let known = |number: c_int, any: c_int| (number != any).then_some(i64::from(number));
    let (source, tag) = (known(pattern.source, MPI_ANY_SOURCE), known(pattern.tag, MPI_ANY_TAG));
    let mut arguments = self::pattern(pattern.source, pattern.tag);
    arguments.extend(communicator(comm));
    let everybody = comm.peers().members.len() == engine().size();
    let peers = match pattern.from {
        Some(rank) => Some(vec![shown(rank)]),
        None if everybody => None,
        None => peers(From::Any(&comm.peers().members)),
    };
    call(arguments, Waits::Message { peers, source, tag, context_id: pattern.context })
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

/// A collective call that waits for all of these processes.
pub fn collective_of(missing: impl Iterator<Item = usize>) -> Call {
    call(vec![], Waits::Members(missing.map(shown).collect()))
}

/// A call that waits for the action of one process after the other.
pub fn one_by_one(arguments: Arguments) -> Call {
    call(arguments, Waits::Others(awaited().map(|rank| vec![shown(rank)])))
}

/// The communicator's name, unless it is MPI_COMM_WORLD.
pub fn communicator(comm: &Comm) -> Option<(&'static str, String)> {
    let name = comm.name();
    (name != "MPI_COMM_WORLD").then_some(("comm", name))
}

fn peers(from: From<'_>) -> Option<Vec<Name>> {
    match from {
        From::Nobody => None,
        From::One(rank) => Some(vec![shown(rank)]),
        From::Now(needed) => Some(needed().into_iter().map(shown).collect()),
        From::Any(ranks) => {
            let this = engine().rank as c_int;
            let others = ranks.iter().filter(|rank| **rank != this);
            Some(others.map(|rank| shown(*rank as usize)).collect())
        }
    }
}
