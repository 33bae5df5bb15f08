//! A blocking collective of processes that may share memory: at the tree, by posts, or by messages.
//!
//! Mismatched collective calls are reported whichever way they go: a process that waits in one way
//! checks now and then whether others are in a call of the same number that goes another way.

use std::cell::{Cell, OnceCell};
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::task::Poll;

use sfm_endpoint::calltext::Call as CallText;

use super::barrier::barrier;
use super::calls::Call;
use super::meeting::Contribution;
use super::posting::{Posting, Posts};
use super::presence::complete_described;
use super::shared_calls::other_message;
use super::team::Team;
use crate::comm::meetings::{OpenTree, SharedTree, Turn};
use crate::comm::Comm;
use crate::engine::report::Arguments;
use crate::errors::{Answer, Failure};

/// How a call's data goes if its processes have a tree. All processes that make the same call get
/// the same answer.
enum Route<'a> {
    Tree(Contribution),
    Posts(Posting<'a>),
    Messages,
}

impl Route<'_> {
    fn of<'a>(call: &'a Call, team: &Team) -> Route<'a> {
        match Posting::of(call, team) {
            Some(posting) => Route::Posts(posting),
            None => Contribution::of(call).map_or(Route::Messages, Route::Tree),
        }
    }
}

/// Run a blocking collective.
pub fn run(comm: &Comm, team: &Team, call: &Call, mut state: Turn<'_>) -> Answer {
    let arguments = || call.arguments(comm);
    // Processes of several sites share no memory, nor do those of an intercommunicator agree on it.
    if team.size == 1 || team.near < team.size || team.sites.is_some() {
        let other = || team.contradicted().filter(|_| team.near < team.size);
        return complete_beside(None, team, arguments, other, call.run(team));
    }
    let route = Route::of(call, team);
    if !matches!(route, Route::Messages) {
        state.prepare(comm, team).inspect_err(|failure| team.leave(failure))?;
    }
    let SharedTree::At(open) = &mut *state else {
        return complete_beside(None, team, arguments, || None, call.run(team));
    };
    if open.tree.come_to(open.nth(team)) {
        open.wake_others();
    }
    if let Route::Tree(contribution) = &route {
        if let Some(answer) = open.meet(team, contribution, arguments) {
            return answer;
        }
    }
    let (open, bytes) = (&*open, call.bytes());
    let other = || open.other_call(team, bytes);
    if let Route::Posts(posting) = &route {
        let bytes = bytes.unwrap_or(0);
        let other = || other().or_else(|| other_message(team, bytes).err());
        let posts = Posts::new(open, team, bytes);
        return complete_beside(Some(open), team, arguments, other, posts.run(posting));
    }
    complete_beside(Some(open), team, arguments, other, call.run(team))
}

/// Run an algorithm. `other`: the failure, if a process that it waits for is in another call;
/// `arguments`: of the call, for observers.
fn complete_beside(
    open: Option<&OpenTree>,
    team: &Team,
    arguments: impl Fn() -> Arguments,
    other: impl Fn() -> Option<Failure>,
    algorithm: impl Future<Output = Answer>,
) -> Answer {
    let slept = Cell::new(false);
    let sleeper = OnceCell::new();
    let call = || -> CallText {
        slept.set(true);
        sleeper.get_or_init(|| open.map(Sleeper::new));
        team.call_waiting(arguments())
    };
    let mut algorithm = pin!(algorithm);
    let both = poll_fn(|context| match algorithm.as_mut().poll(context) {
        Poll::Pending if slept.take() => match other() {
            None => Poll::Pending,
            Some(failure) => Poll::Ready(Err(failure)),
        },
        polled => polled,
    });
    complete_described(team, &call, both)
}

/// The calls of MPI_Finalize's barrier.
pub fn last_barrier(comm: &Comm, team: &Team) -> Answer {
    let state = comm.meetings.take_turn()?;
    let open = if let SharedTree::At(open) = &*state { Some(open) } else { None };
    let other = || open.and_then(|open| open.other_call(team, None));
    complete_beside(open, team, Vec::new, other, barrier(team))
}

/// This process may sleep, and those that post have to wake it.
struct Sleeper<'a>(&'a OpenTree);

impl<'a> Sleeper<'a> {
    fn new(open: &'a OpenTree) -> Sleeper<'a> {
        open.tree.sleepers().enter();
        Sleeper(open)
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.0.tree.sleepers().leave();
    }
}
