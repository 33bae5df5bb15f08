//! The failures of processes whose collective calls do not fit together, in words.

use std::cmp::Ordering;
use std::sync::Arc;

use sfm_endpoint::calltext::shown;
use sfm_endpoint::sites;
use sfm_native::packet::{Envelope, LIBRARY};

use crate::comm::history::{self, BEGUN};
use crate::comm::{self, Comm};
use crate::engine::{
    self, engine, origin, report, Alike, Collective, Note, Outcome, Pattern, Receiving,
};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::process;

/// The end of a message of a collective.
pub fn checked(outcome: Outcome) -> Answer {
    match outcome.code {
        MPI_SUCCESS => Ok(()),
        code => Err(fail(code, "another process of the communicator has ended")),
    }
}

/// A message of a process (its number), by the context and the tag.
pub type Sent = (usize, u64, c_int);

/// A process that makes another call, or sends something else than is expected.
pub struct Caller {
    process: Option<usize>,
    name: String,
    /// The line of its call, if it is known.
    at: String,
    /// It calls a method of mpi4py that makes a reduction of messages.
    of_objects: bool,
    /// It calls the non-blocking form.
    begins: bool,
}

impl Caller {
    pub fn new(process: usize, at: String) -> Caller {
        let name = match process == process::this().number() as usize {
            true => "this process itself".into(),
            false => process::named(process),
        };
        Caller { process: Some(process), name, at, of_objects: false, begins: false }
    }

    /// One that is not known.
    pub fn another() -> Caller {
        let (name, at) = ("another process of the communicator".into(), String::new());
        Caller { process: None, name, at, of_objects: false, begins: false }
    }

    /// The sender of a message.
    pub fn of((process, context, tag): Sent) -> Caller {
        let by = Caller::new(process, origin::of_message(process, context, tag));
        let of_objects = comm::are_internal(context);
        Caller { of_objects, begins: !of_objects && tag & BEGUN != 0, ..by }
    }

    /// That it calls a function.
    pub fn calls(&self, what: Collective, alike: Alike, comm: Option<&Comm>) -> String {
        let name = match self.begins {
            _ if self.of_objects || alike.are_objects() => what.method(),
            true => what.begun(),
            false => what.name().into(),
        };
        let call = call_text(&name, alike, comm, self.process.unwrap_or_default());
        format!("{} calls {call}{}", self.name, self.at)
    }

    /// That it sends so many bytes where `room` are expected.
    pub fn sends(&self, bytes: usize, room: impl std::fmt::Display) -> String {
        format!("{} sends {bytes} bytes{} where {room} are", self.name, self.at)
    }
}

/// The failure when a process makes another call than this one, or gives other arguments; or has made
/// another one before. `context`: of this call's messages; `mark`: of this call (`history`).
pub fn other_call(
    by: Caller,
    other: (Collective, Alike),
    context: u64,
    (what, alike): (Collective, Alike),
    mark: u32,
) -> Failure {
    let comm = comm::of_messages(engine::messages_of_collectives(context));
    let comm = comm.as_deref();
    let earlier = by.process.and_then(|process| earlier_reduction(process, context));
    let (by, other) = earlier.unwrap_or((by, other));
    let same = match other.0 == what {
        false => "",
        true if other.1.passes_otherwise(alike) || by.of_objects && !other.1.differs(alike) => {
            " (those of objects and those of arrays are two)"
        }
        true => &format!(", with the same root and operation{}", roots_between(comm)),
    };
    // The program's name of its own call, which mpi4py may make of several.
    let own = sites::get(engine::site_of(mark)).map_or(what.name(), |site| &site.call);
    let text = format!(
        "{} where this one calls {}: all processes of a communicator make the same \
         collective calls in the same order{same}",
        by.calls(other.0, other.1, comm),
        call_text(own, alike, comm, process::this().number() as usize)
    );
    fail(MPI_ERR_OTHER, text)
}

/// A reduction of objects that a process has made, and this one has not: its message lies here. The
/// collective calls of the two differ since then.
fn earlier_reduction(process: usize, context: u64) -> Option<(Caller, (Collective, Alike))> {
    let internal = comm::of_messages(engine::messages_of_collectives(context))?.of_objects()?;
    let (context, turn) = (engine::messages(internal.context), internal.history.turn_of_objects());
    let is_one = |envelope: &Envelope| {
        let (note, tag) = (Note::of(envelope), envelope.tag as c_int);
        let is_it = envelope.context == context && note.rank == process;
        let is_it =
            is_it && note.what != Collective::Message && turn < Some(history::of_objects(tag));
        is_it.then(|| (Caller::of((process, context, tag)), (note.what, note.alike())))
    };
    engine().core.take_in_all();
    engine().core.find_queued(|packet| packet.envelope().as_ref().and_then(is_one))
}

/// What else holds for the roots of an intercommunicator.
pub fn roots_between(comm: Option<&Comm>) -> String {
    match comm.is_some_and(|comm| comm.remote.is_some()) {
        false => String::new(),
        true => report::spelled(
            "; the root itself gives MPI_ROOT, the others of its group \
            MPI_PROC_NULL, and those of the other group the root's rank",
        ),
    }
}

/// A call of a process, with what all give alike; `comm`: of the call, if it is known.
pub fn call_text(name: &str, alike: Alike, comm: Option<&Comm>, process: usize) -> String {
    let mut arguments = history::arguments(alike, comm, process);
    report::spell(&mut arguments);
    match arguments.is_empty() {
        true => name.to_owned(),
        false => format!("{name}({})", shown(&arguments)),
    }
}

/// All processes must agree on the size of each message: an error unless `bytes` equal `room`.
pub fn fits(sender: impl FnOnce() -> Caller, bytes: usize, room: usize) -> Answer {
    let code = match bytes.cmp(&room) {
        Ordering::Equal => return Ok(()),
        Ordering::Less => MPI_ERR_COUNT,
        Ordering::Greater => MPI_ERR_TRUNCATE,
    };
    Err(mismatch(code, &sender().sends(bytes, room)))
}

pub fn mismatch(code: c_int, sent: &str) -> Failure {
    let of_python = match engine::is_python() {
        true => " (bcast and Bcast are two)",
        false => "",
    };
    let text = format!(
        "{sent} expected here: do all processes call the same collective{of_python}, with matching \
         counts and datatypes?"
    );
    fail(code, text)
}

/// At the end of the program: a sentence about a collective call of another process that this one
/// has not made, or has made differently. All calls have returned nevertheless.
pub fn unreceived_collective() -> Option<String> {
    unreceived_message().or_else(unread_post)
}

fn unreceived_message() -> Option<String> {
    let of_collective = |envelope: &Envelope| {
        let note = Note::of(envelope);
        let is_known = || engine().is_known_left(envelope.context, envelope.tag as u32);
        let is_one =
            envelope.context & LIBRARY != 0 && note.what != Collective::Message && !is_known();
        is_one.then_some((note, envelope.context, envelope.tag as c_int))
    };
    let (note, context, tag) =
        engine().core.find_queued(|packet| packet.envelope().as_ref().and_then(of_collective))?;
    let comm = comm::of_messages(engine::messages_of_collectives(context));
    let made = comm.iter().flat_map(|comm| comm.history.latest(comm));
    let here = made.filter(|(number, _)| *number == tag as u64).map(|(_, call)| call).next();
    let here = here.map_or("has not".into(), |call| {
        let is_made = call.text.split('(').next().is_some_and(|name| name.ends_with("_init"));
        let does = if is_made { "has not so often started" } else { "has called" };
        format!("{does} {}{}", call.text, origin::in_words(&call.code, call.line))
    });
    // mpi4py broadcasts on its own communicator in this method alone.
    let theirs = match comm::are_internal(engine::messages_of_collectives(context)) {
        true => "allreduce".into(),
        false => call_text(note.what.name(), note.alike(), comm.as_deref(), note.rank),
    };
    let at = origin::of_message(note.rank, context, tag);
    Some(difference(note.rank, &theirs, &at, &here, &rule(note.what, comm.as_deref())))
}

fn unread_post() -> Option<String> {
    let unread = |comm: Arc<Comm>| comm.meetings.unread(&comm);
    let (process, (what, alike), at) = comm::all().into_iter().find_map(unread)?;
    let theirs = call_text(what.name(), alike, None, process);
    Some(difference(process, &theirs, &at, "has not", &rule(what, None)))
}

fn difference(process: usize, theirs: &str, at: &str, here: &str, rule: &str) -> String {
    let process = process::named(process);
    format!("{process} has called {theirs}{at}, and this process {here}: {rule}")
}

/// The rule that two processes break whose calls differ.
fn rule(what: Collective, comm: Option<&Comm>) -> String {
    if what == Collective::CommCreateGroup {
        return "all processes of the group call it, with the same tag".into();
    }
    let rule = "all processes of a communicator make the same collective calls in the same order, \
        with the same root";
    format!("{rule}{}", roots_between(comm))
}

/// The line in which the message of a receive was sent, " in a.py, line 3", if it is known.
pub fn origin_of(receiving: &Receiving, status: &MPI_Status) -> String {
    let pattern = &receiving.pattern;
    let sender = || {
        let source = usize::try_from(status.MPI_SOURCE).ok()?;
        comm::of_messages(pattern.context)?.peers().members.get(source).map(|rank| *rank as usize)
    };
    let at = |process| origin::of_message(process, pattern.context, status.MPI_TAG);
    pattern.from.or_else(sender).map_or_else(String::new, at)
}

/// The error of a receive of the program that has failed.
pub fn of_receive(receiving: &Receiving, outcome: &Outcome) -> Failure {
    match outcome.code {
        MPI_ERR_TRUNCATE => {}
        MPI_ERR_OTHER => {
            let mark = engine::mark(engine::site(), receiving.pattern.alike);
            return refused(&receiving.pattern, outcome, mark);
        }
        _ => return outcome.failure(),
    }
    let (rank, tag) = (outcome.status.MPI_SOURCE, outcome.status.MPI_TAG);
    let at = origin_of(receiving, &outcome.status);
    let text = format!(
        "rank {rank} has sent {} bytes with tag {tag}{at}, and the receive buffer has only {}; \
         give it a larger count",
        receiving.sent(),
        receiving.room()
    );
    fail(MPI_ERR_TRUNCATE, text)
}

/// The error of a receive that was refused a message; `mark`: of its call (`engine::mark`).
pub fn refused(pattern: &Pattern, refused: &Outcome, mark: u32) -> Failure {
    let (rank, call) = (refused.status.MPI_SOURCE, refused.status.MPI_TAG);
    let theirs = (Collective::of(call as u8), Alike::of(refused.status.bytes() as u32));
    let Pattern { context, tag, what, alike, .. } = *pattern;
    other_call(Caller::of((rank as usize, context, tag)), theirs, context, (what, alike), mark)
}
