//! The description of a waiting call for observers: what only the call itself knows.
//!
//! Its name is known from its entry (sfm_endpoint: callers.rs); its arguments and partners are
//! computed when it is seen to wait. A call that does not wait pays nothing for it.

use std::cell::Cell;
use std::collections::BTreeSet;

use sfm_endpoint::calltext::{self, Begun, Call, Details, EarlierCall, Waits};
use sfm_endpoint::{callers, sites, Name};

use super::wait::From;
use super::{engine, messages_beside, Pattern, Sending};
use crate::collective::team::Team;
use crate::comm::{self, Comm};
use crate::handles::*;
use crate::process::shown;

/// The most members of a communicator that observers are told.
const MEMBERS: usize = 8;

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

fn call(arguments: Arguments, waits: Waits, details: Details) -> Call {
    call_on(None, arguments, waits, details)
}

/// The present call; `comm`: the communicator of the messages that it waits for.
fn call_on(comm: Option<&Comm>, arguments: Arguments, waits: Waits, details: Details) -> Call {
    let mut call = Call { name: String::new(), arguments, waits, details };
    if let Some(comm) = comm.filter(|comm| comm.is_internal) {
        let parent = comm.made_of();
        call.arguments = parent.iter().filter_map(|parent| communicator(parent)).collect();
        call.details = parent.map_or_else(Details::default, |parent| Details {
            group: Some(group(&parent)),
            on: Some(key(&parent)),
            turn: comm.history.turn_of_objects(),
            members: members(&parent),
            made: made(&parent),
            ..Details::default()
        });
        call.waits = match call.waits {
            Waits::Message { peers, .. } | Waits::Others(peers) => {
                Waits::Members(peers.unwrap_or_default())
            }
            members => members,
        };
    }
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

/// The latest collective calls on a communicator, with reductions of objects.
fn made(comm: &Comm) -> Vec<(u64, EarlierCall)> {
    let of_objects = comm.of_objects().map(|internal| internal.history.of_objects());
    let calls = of_objects.into_iter().flatten().chain(comm.history.latest(comm));
    maker(comm).into_iter().chain(calls).collect()
}

/// The number of the call that has made a communicator, among those on it.
const MAKER: u64 = 1 << 42;

/// The call that has made a communicator without a name.
fn maker(comm: &Comm) -> Option<(u64, EarlierCall)> {
    let is_unnamed = comm.given_name().is_empty() && sites::get(comm.maker).is_some();
    is_unnamed.then(|| (MAKER, earlier_call(comm.maker, "", vec![])))
}

/// A call of which only the processes are known whose death would end it.
pub fn some(arguments: Arguments, from: From<'_>) -> Call {
    call(arguments, Waits::Others(peers(from)), Details::default())
}

/// A call that waits for the `open` ones among `count` requests; without peers if the peer of any of
/// them is unknown.
pub fn requests(count: usize, open: Vec<Begun>, peers: Option<&[c_int]>) -> Call {
    let names = peers.map(|peers| {
        let once: BTreeSet<_> = peers.iter().map(|rank| *rank as usize).collect();
        once.into_iter().map(shown).collect()
    });
    let contexts = names_of_contexts(&contexts_of(&open));
    let details = Details { open, count, contexts, ..Details::default() };
    call(vec![("count", count.to_string())], Waits::Others(names), details)
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
    let waits = Waits::Message { peers, source, tag, context_id: pattern.context };
    let made = made(comm);
    let (on, contexts) = (Some(key(comm)), names_of_contexts(&[pattern.context]));
    call_on(Some(comm), arguments, waits, Details { on, made, contexts, ..Details::default() })
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
    call_on(Some(comm), arguments, Waits::Others(Some(vec![shown(rank)])), Details::default())
}

/// A collective call, which waits for one of its processes at a time.
pub fn collective(team: &Team, arguments: Arguments) -> Call {
    collective_of(team, arguments, awaited().into_iter())
}

/// A collective call that waits for all of these processes.
pub fn collective_of(
    team: &Team,
    mut arguments: Arguments,
    missing: impl Iterator<Item = usize>,
) -> Call {
    let (waits, comm) = (Waits::Members(missing.map(shown).collect()), team.comm());
    arguments.extend(comm.iter().filter_map(|comm| communicator(comm)));
    let details = comm.as_ref().map_or_else(Details::default, |comm| Details {
        group: (!team.is_apart()).then(|| group(comm)),
        on: team.is_apart().then(|| key(comm)),
        turn: Some(team.number()),
        members: members(comm),
        made: made(comm),
        ..Details::default()
    });
    call_on(comm.as_deref(), arguments, waits, details)
}

/// The details of a call that waits for one operation that was begun before, perhaps a collective
/// of this number.
pub fn of_begun(comm: &Comm, open: Begun, collective: Option<u64>) -> Details {
    let open = vec![open];
    let contexts = names_of_contexts(&contexts_of(&open));
    let details = Details { open, contexts, ..Details::default() };
    match collective {
        None => details,
        turn => {
            let made = made(comm);
            Details { group: Some(group(comm)), turn, members: members(comm), made, ..details }
        }
    }
}

/// The communicator as the group of a collective call: a key that all its processes have, and its
/// name.
fn group(comm: &Comm) -> (String, String) {
    (key(comm), comm.name())
}

/// The processes of a communicator that is not too large.
fn members(comm: &Comm) -> Vec<Name> {
    let all = &comm.everybody().members;
    all.iter().filter(|_| all.len() <= MEMBERS).map(|process| shown(*process as usize)).collect()
}

fn key(comm: &Comm) -> String {
    format!("{:x}", comm.context)
}

/// The contexts of receives.
fn contexts_of(open: &[Begun]) -> Vec<u64> {
    open.iter().filter_map(|begun| begun.receive.map(|(.., context)| context)).collect()
}

/// The communicators whose messages lie in the inbox in words, by their contexts. mpi4py's own
/// messages have none. `own`: the contexts in which the call receives; another communicator may have
/// the same name.
fn names_of_contexts(own: &[u64]) -> Vec<(u64, String)> {
    let is_own_name = |context: u64, name: &str| {
        let others = own.iter().filter(|own| **own != context);
        others.filter_map(|own| comm::of_messages(*own)).any(|comm| comm.name() == name)
    };
    let in_words = |context: u64, comm: &Comm| {
        let (name, is_named) = (comm.name(), !comm.given_name().is_empty());
        match (is_named, is_own_name(context, &name)) {
            (true, false) => format!("communicator {name}"),
            (true, true) => format!("another communicator named {name}"),
            (false, false) => name,
            (false, true) => name.replacen('a', "another", 1),
        }
    };
    let mut contexts = BTreeSet::new();
    engine().core.find_queued(|packet| {
        let context = packet.envelope().map(|envelope| envelope.context);
        contexts.extend(context.filter(|context| messages_beside(*context) == Some(*context)));
        None::<()>
    });
    let named = |context| Some((context, comm::of_messages(context)?));
    let named = contexts.into_iter().filter_map(named).filter(|(_, comm)| !comm.is_internal);
    named.map(|(context, comm)| (context, in_words(context, &comm))).collect()
}

/// A call that waits for the action of one process after the other.
pub fn one_by_one(arguments: Arguments) -> Call {
    let peers = awaited().map(|rank| vec![shown(rank)]);
    call(arguments, Waits::Others(peers), Details::default())
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
