//! Calls on a communicator as observers see them: what only the call itself knows.

use std::collections::BTreeSet;

use sfm_endpoint::calltext::{Begun, Call, Details, EarlierCall, Waits};
use sfm_endpoint::{sites, Name};

use super::{of_messages, Comm};
use crate::engine::report::{call, earlier_call, pattern, peers, Arguments};
use crate::engine::{engine, messages_beside, From, Pattern, Sending};
use crate::group::Group;
use crate::handles::*;
use crate::process::shown;

/// The most members of a communicator that observers are told.
const MEMBERS: usize = 8;

/// The present call; `comm`: the communicator of the messages that it waits for.
pub fn call_on(
    comm: Option<&Comm>,
    mut arguments: Arguments,
    mut waits: Waits,
    mut details: Details,
) -> Call {
    if let Some(comm) = comm.filter(|comm| comm.is_internal) {
        let parent = comm.made_of();
        arguments = parent.iter().filter_map(|parent| communicator(parent)).collect();
        details = parent.map_or_else(Details::default, |parent| Details {
            group: Some(group(&parent)),
            on: Some(key(&parent)),
            turn: comm.history.turn_of_objects(),
            members: members(&parent),
            made: made(&parent),
            ..Details::default()
        });
        waits = match waits {
            Waits::Message { peers, .. } | Waits::Others(peers) => {
                Waits::Members(peers.unwrap_or_default())
            }
            members => members,
        };
    }
    call(arguments, waits, details)
}

/// The latest collective calls on a communicator, with reductions of objects.
pub fn made(comm: &Comm) -> Vec<(u64, EarlierCall)> {
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

/// A receive or a probe.
pub fn receive(comm: &Comm, wanted: &Pattern) -> Call {
    let known = |number: c_int, any: c_int| (number != any).then_some(i64::from(number));
    let (source, tag) = (known(wanted.source, MPI_ANY_SOURCE), known(wanted.tag, MPI_ANY_TAG));
    let mut arguments = pattern(wanted.source, wanted.tag);
    arguments.extend(communicator(comm));
    let everybody = comm.peers().members.len() == engine().size();
    let peers = match wanted.from {
        Some(rank) => Some(vec![shown(rank)]),
        None if everybody => None,
        None => peers(From::Any(&comm.peers().members)),
    };
    let waits = Waits::Message { peers, source, tag, context_id: wanted.context };
    let made = made(comm);
    let (on, contexts) = (Some(key(comm)), names_of_contexts(&[wanted.context]));
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
pub fn group(comm: &Comm) -> (String, String) {
    (key(comm), comm.name())
}

/// The processes of a communicator that is not too large.
pub fn members(comm: &Comm) -> Vec<Name> {
    let all = &comm.everybody().members;
    all.iter().filter(|_| all.len() <= MEMBERS).map(|process| shown(*process as usize)).collect()
}

pub fn key(comm: &Comm) -> String {
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
        others.filter_map(|own| of_messages(*own)).any(|comm| comm.name() == name)
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
    let named = |context| Some((context, of_messages(context)?));
    let named = contexts.into_iter().filter_map(named).filter(|(_, comm)| !comm.is_internal);
    named.map(|(context, comm)| (context, in_words(context, &comm))).collect()
}

/// The communicator's name, unless it is MPI_COMM_WORLD.
pub fn communicator(comm: &Comm) -> Option<(&'static str, String)> {
    let name = comm.name();
    (name != "MPI_COMM_WORLD").then_some(("comm", name))
}

impl Comm {
    /// The name in sentences.
    pub fn name(&self) -> String {
        let name = self.given_name();
        if !name.is_empty() {
            return name;
        }
        if let Some(remote) = &self.remote {
            let [near, far] = [&self.group, remote].map(|group| members_shown(group));
            return format!("an intercommunicator of {near} with {far}");
        }
        match self.made_of() {
            Some(parent) if parent.everybody().members == self.everybody().members => {
                format!("a duplicate of {}", parent.name())
            }
            Some(parent) => {
                format!("a part of {} with {}", parent.name(), members_shown(&self.group))
            }
            None => "a communicator without a name".into(),
        }
    }
}

/// The names of a group's first processes, and the number of the others.
fn members_shown(group: &Group) -> String {
    const SHOWN: usize = 4;
    let name = |member: &c_int| match shown(*member as usize) {
        Name::Text(text) => text,
        rank => rank.to_string(),
    };
    let mut names: Vec<_> = group.members.iter().take(SHOWN).map(name).collect();
    let last = match group.members.len() - names.len() {
        0 => names.pop().unwrap_or_default(),
        others => format!("{others} more"),
    };
    match names.is_empty() {
        true => last,
        false => format!("{} and {last}", names.join(", ")),
    }
}
