//! The failures of processes whose collective calls do not fit together, in words.

use std::cmp::Ordering;

use sfm_endpoint::calltext::shown;
use sfm_endpoint::sites;

use super::history;
use crate::comm;
use crate::engine::{self, origin, report, Alike, Engine, Outcome, What};
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
    name: String,
    /// The line of its call, if it is known.
    at: String,
    /// It calls a method of mpi4py that makes a reduction of messages.
    of_objects: bool,
}

impl Caller {
    pub fn new(process: usize, at: String) -> Caller {
        Caller { name: process::named(process), at, of_objects: false }
    }

    /// One that is not known.
    pub fn another() -> Caller {
        let (name, at) = ("another process of the communicator".into(), String::new());
        Caller { name, at, of_objects: false }
    }

    /// The sender of a message.
    pub fn of((process, context, tag): Sent) -> Caller {
        let by = Caller::new(process, origin::of_message(process, context, tag));
        Caller { of_objects: comm::are_internal(context), ..by }
    }

    /// That it calls a function.
    pub fn calls(&self, what: What, alike: Alike) -> String {
        let call = match self.of_objects {
            true => call_text(&what.method(), alike),
            false => call_text(what.name(), alike),
        };
        format!("{} calls {call}{}", self.name, self.at)
    }

    /// That it sends so many bytes where `room` are expected.
    pub fn sends(&self, bytes: usize, room: impl std::fmt::Display) -> String {
        format!("{} sends {bytes} bytes{} where {room} are", self.name, self.at)
    }
}

/// The failure when a process makes another call than this one, or gives other arguments. `mark`: of
/// this call (`history`).
pub fn other_call(
    by: &Caller,
    other: (What, Alike),
    (what, alike): (What, Alike),
    mark: u32,
) -> Failure {
    let same = match other.0 == what {
        true => ", with the same root and operation",
        false => "",
    };
    // The program's name of its own call, which mpi4py may make of several.
    let own = sites::get(history::site_of(mark)).map_or(what.name(), |site| &site.call);
    let text = format!(
        "{} where this one calls {}: all processes of a communicator make the same \
         collective calls in the same order{same}",
        by.calls(other.0, other.1),
        call_text(own, alike)
    );
    fail(MPI_ERR_OTHER, text)
}

/// A call with what all processes give alike.
pub fn call_text(name: &str, alike: Alike) -> String {
    let mut arguments = alike.arguments();
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
    let is_python = |engine: &Engine| !engine.endpoint.surroundings().has_addresses();
    let of_python = match engine::running().is_some_and(is_python) {
        true => " (bcast and Bcast are two)",
        false => "",
    };
    let text = format!(
        "{sent} expected here: do all processes call the same collective{of_python}, with matching \
         counts and datatypes?"
    );
    fail(code, text)
}
