//! Requests as observers see them.

use sfm_endpoint::calltext::{Begun, Call};
use sfm_native::sync::lock;

use super::partitioned::Side;
use super::{Partner, Request, Work};
use crate::comm::{self, history, Comm};
use crate::engine::report::Arguments;
use crate::engine::{engine, report, From};
use crate::handles::*;

impl Request {
    /// The arguments that observers see beside the call that has begun it.
    pub fn arguments(&self) -> Arguments {
        let on = comm::get(self.comm).ok();
        let comm = on.iter().filter_map(|comm| comm::shown::communicator(comm));
        let numbers = match self.partner {
            Partner::All(_, alike) => {
                history::arguments(alike, on.as_ref().map(|on| &***on), engine().rank)
            }
            Partner::To(dest, tag) => vec![("dest", dest.to_string()), ("tag", tag.to_string())],
            Partner::From(source, tag) => report::pattern(source, tag),
            // It may belong to no communicator at all, such as a file's.
            Partner::Others if self.comm == MPI_COMM_SELF => return vec![],
            Partner::Others => vec![],
        };
        let missing = self.side.as_ref().and_then(Side::missing);
        numbers.into_iter().chain(missing).chain(comm).collect()
    }

    /// The description of a call that waits for it, for observers.
    pub fn described(&self) -> Call {
        let Ok(comm) = comm::get(self.comm) else {
            return report::some(vec![], From::of(self.needed()));
        };
        let number = match self.partner {
            Partner::All(number, _) => Some(number),
            _ => None,
        };
        let begun = self.begun();
        let mut call = lock(&self.work).described(&comm);
        call.details = comm::shown::of_begun(&comm, begun, number);
        call
    }

    /// The operation with the call that has begun it.
    pub fn begun(&self) -> Begun {
        let receive = match &*lock(&self.work) {
            Work::Receiving(receiving) => Some(receiving.pattern.numbers_and_context()),
            _ => None,
        };
        // Of a persistent one, the call that has made it says what it is.
        let site = self.maker.unwrap_or_else(|| self.site());
        Begun { call: report::earlier_call(site, "an operation", self.arguments()), receive }
    }
}

impl Work {
    fn described(&self, comm: &Comm) -> Call {
        match self {
            Work::Sending(sending) => comm::shown::sending(comm, sending),
            Work::Receiving(receiving) => comm::shown::receive(comm, &receiving.pattern),
            Work::After(sending, rest) => match sending.iter().find(|send| !send.end.is_done()) {
                Some(send) => comm::shown::sending(comm, send),
                None => rest.described(comm),
            },
            _ => report::some(vec![], From::of(self.needed())),
        }
    }
}
