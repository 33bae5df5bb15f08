//! The description of a waiting call for observers: what only the call itself knows.
//!
//! Its name is known from its entry (sfm_endpoint: callers.rs); its arguments and partners are
//! computed when it is seen to wait. A call that does not wait pays nothing for it.

use std::cell::Cell;

use sfm_endpoint::calltext::{self, Call, Details, EarlierCall, Waits};
use sfm_endpoint::{callers, sites, Name};

use super::engine;
use super::wait::From;
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

/// Write constants as the program's language does.
pub fn spell(arguments: &mut Arguments) {
    // Names of objects are the program's.
    for (_, shown_as) in arguments.iter_mut().filter(|(name, _)| *name != "comm") {
        *shown_as = spelled(shown_as);
    }
}

/// A text with constants, as the program's language writes them.
pub fn spelled(text: &str) -> String {
    match engine().endpoint.surroundings().has_addresses() {
        true => text.into(),
        false => text.replace("MPI_", "MPI."),
    }
}

/// The call of the program with this number (`unfinished`); `name`: of a function, where the program's
/// own name of it is unknown.
pub fn earlier_call(site: u32, name: &str, mut arguments: Arguments) -> EarlierCall {
    let site = sites::get(site);
    spell(&mut arguments);
    EarlierCall {
        text: format!("{}({})", site.map_or(name, |site| &site.call), calltext::shown(&arguments)),
        code: site.map_or_else(String::new, |site| site.code.clone()),
        line: site.map_or(0, |site| site.line),
    }
}

/// True if the program's present call is one of those that mpi4py makes of its own messages, on a
/// communicator of its own: the reductions of objects.
pub fn is_made_by_mpi4py() -> bool {
    let surroundings = engine().endpoint.surroundings();
    let site = sites::get(surroundings.site()).filter(|_| !surroundings.has_addresses());
    let reductions = ["reduce", "allreduce", "scan", "exscan"];
    site.is_some_and(|site| {
        site.call.rsplit_once('.').is_some_and(|(_, method)| reductions.contains(&method))
    })
}

/// True if mpi4py pickles the objects that the call of this text is given: then the counts that MPI
/// gets say nothing.
pub fn is_of_objects(text: &str) -> bool {
    let method = text.rsplit('.').next().unwrap_or_default();
    method.starts_with(|letter: char| letter.is_ascii_lowercase())
}

/// The present call.
pub fn call(arguments: Arguments, waits: Waits, details: Details) -> Call {
    let mut call = Call { name: String::new(), arguments, waits, details };
    let Some(program) = engine().endpoint.surroundings().call() else {
        call.name = callers::name().trim_end_matches("_c").into();
        return call;
    };
    spell(&mut call.arguments);
    if is_of_objects(&program.text) {
        call.arguments
            .retain(|(name, _)| !name.ends_with("count") || !call.details.open.is_empty());
    }
    for (name, value) in program.given {
        let known = ["op", "root"].into_iter().find(|known| *known == name);
        let at = call.arguments.iter().position(|(name, _)| *name == "comm");
        let at = at.unwrap_or(call.arguments.len());
        if let Some(name) = known {
            call.arguments.insert(at, (name, value));
        }
    }
    call.name = program.text;
    call
}

/// A call of which only the processes are known whose death would end it.
pub fn some(arguments: Arguments, from: From<'_>) -> Call {
    call(arguments, Waits::Others(peers(from)), Details::default())
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

/// A call that waits for the action of one process after the other.
pub fn one_by_one(arguments: Arguments) -> Call {
    let peers = awaited().map(|rank| vec![shown(rank)]);
    call(arguments, Waits::Others(peers), Details::default())
}

/// The names of the processes whose end would end the call.
pub fn peers(from: From<'_>) -> Option<Vec<Name>> {
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
