//! Running a collective to its end, or until a process is missing that it needs.
//!
//! Who has ended matters to a call only if something is still to come from it: in a collective on an
//! intercommunicator, a process may have done its part and ended while others wait for each other.
//! So a process looks only at the one that it waits for at the moment. If that one has ended, or if
//! this process is interrupted, it leaves the call and tells all others, because they may wait for
//! this process.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use sfm_endpoint::calltext::{Call, Details, Waits};

use super::mismatch::{other_call, Caller};
use super::team::{Team, APART};
use crate::comm::history::BEGUN;
use crate::comm::shown::{call_on, communicator, group, key, made, members};
use crate::engine::report::Arguments;
use crate::engine::{engine, report, text_of_loss, About, Alike};
use crate::errors::{fail, Answer, Failure, INTERRUPTED};
use crate::handles::*;
use crate::process;

impl Team<'_> {
    /// A collective call, which waits for one of its processes at a time.
    pub fn call_waiting(&self, arguments: Arguments) -> Call {
        self.call_waiting_for(arguments, report::awaited().into_iter())
    }

    /// A collective call that waits for all of these processes.
    pub fn call_waiting_for(
        &self,
        mut arguments: Arguments,
        missing: impl Iterator<Item = usize>,
    ) -> Call {
        let (waits, comm) = (Waits::Members(missing.map(process::shown).collect()), self.comm());
        arguments.extend(comm.iter().filter_map(|comm| communicator(comm)));
        let details = comm.as_ref().map_or_else(Details::default, |comm| Details {
            group: (!self.is_apart()).then(|| group(comm)),
            on: self.is_apart().then(|| key(comm)),
            turn: Some(self.number()),
            members: members(comm),
            made: made(comm),
            ..Details::default()
        });
        call_on(comm.as_deref(), arguments, waits, details)
    }

    /// The call has failed here: tell the others, who may wait for this process, if they cannot know.
    pub fn leave(&self, failure: &Failure) {
        match failure.code {
            INTERRUPTED if self.tag & (BEGUN | APART) == 0 => self.tell(None),
            MPI_ERR_PROC_ABORTED => {
                let members = self.group.members.iter().map(|rank| *rank as usize);
                let mut suspects = report::awaited().into_iter().chain(members);
                if let Some(lost) = suspects.find(|rank| engine().has_lost(*rank)) {
                    self.leave_for(lost);
                }
            }
            _ => {}
        }
    }

    /// The same, because this process has ended.
    pub fn leave_for(&self, lost: usize) {
        if !engine().is_known_left(self.context, self.tag as u32) {
            self.tell(Some(lost));
        }
    }

    fn tell(&self, lost: Option<usize>) {
        let call = (self.context, self.tag as u32);
        engine().leave_call(self.what, call, lost, &self.group.members);
    }

    /// Err if another process has left the collective.
    pub fn check_presence(&self) -> Answer {
        let left = engine().leaver_of(self.context, self.tag as u32, &self.group);
        let Some(departed) = left else { return Ok(()) };
        if departed.what != self.what {
            let by = Caller::new(departed.rank, String::new());
            let theirs = (departed.what, Alike::default());
            return Err(other_call(by, theirs, self.context, self.call(), self.mark()));
        }
        let text = match departed.lost {
            Some(lost) => text_of_loss(lost),
            None => format!(
                "{} was interrupted in this call and has left it, so it cannot complete",
                process::named(departed.rank)
            ),
        };
        Err(fail(MPI_ERR_PROC_ABORTED, text))
    }
}

/// Run an algorithm to its end.
pub fn complete<T>(team: &Team, algorithm: impl Future<Output = Answer<T>>) -> Answer<T> {
    complete_described(team, &|| team.call_waiting(vec![]), algorithm)
}

/// Like `complete`; `call` gives observers the description of the call.
pub fn complete_described<T>(
    team: &Team,
    call: &dyn Fn() -> Call,
    algorithm: impl Future<Output = Answer<T>>,
) -> Answer<T> {
    let mut algorithm = pin!(algorithm);
    let mut context = Context::from_waker(Waker::noop());
    let mut result = Poll::Pending;
    report::awaits(None);
    let now = || report::awaited_or(&team.group.members);
    let waited = engine().wait(About::collective(&now, call), || {
        result = algorithm.as_mut().poll(&mut context);
        if result.is_pending() {
            if let Err(failure) = team.check_presence() {
                result = Poll::Ready(Err(failure));
            }
        }
        result.is_ready()
    });
    let answer = waited.and_then(|()| match result {
        Poll::Ready(answer) => answer,
        Poll::Pending => unreachable!("waited for"),
    });
    answer.inspect_err(|failure| team.leave(failure))
}
