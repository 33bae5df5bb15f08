//! A non-blocking collective: its algorithm, suspended while it waits. Other operations of more
//! than one message are schedules, too.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use sfm_native::sync::lock;

use super::team::Team;
use crate::engine::{engine, report, text_of_loss, Outcome, Stepwise};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;

type Algorithm = Pin<Box<dyn Future<Output = Answer>>>;

pub struct Schedule {
    /// None after the end.
    algorithm: Mutex<Option<Algorithm>>,
    ended: Mutex<Option<Answer<Outcome>>>,
    /// The only process that it waits for (rank in the world).
    partner: Option<usize>,
    /// Its participants, if it is a collective.
    team: Option<Team<'static>>,
    /// The process that it waits for now (rank in the world).
    awaited: AtomicUsize,
    /// The outcome of success.
    end: Outcome,
}

const NOBODY: usize = usize::MAX;

// SAFETY: one thread at a time polls the algorithm, under the lock; its pointers are to memory that
// the user leaves alone until the collective has ended.
unsafe impl Send for Schedule {}
// SAFETY: one thread at a time polls the algorithm, under the lock, whoever has a reference.
unsafe impl Sync for Schedule {}

impl Schedule {
    /// Begin a collective; `algorithm` owns everything it needs except the user's memory.
    pub fn begin(
        team: Team<'static>,
        algorithm: impl Future<Output = Answer> + 'static,
    ) -> Arc<Schedule> {
        Schedule::new(None, Some(team), Outcome::of_send(), algorithm)
    }

    /// Begin an operation that waits for `partner` only, and ends with `end`.
    pub fn with(
        partner: Option<usize>,
        end: Outcome,
        algorithm: impl Future<Output = Answer> + 'static,
    ) -> Arc<Schedule> {
        Schedule::new(partner, None, end, algorithm)
    }

    fn new(
        partner: Option<usize>,
        team: Option<Team<'static>>,
        end: Outcome,
        algorithm: impl Future<Output = Answer> + 'static,
    ) -> Arc<Schedule> {
        let algorithm: Mutex<Option<Algorithm>> = Mutex::new(Some(Box::pin(algorithm)));
        let (ended, awaited) = (Mutex::default(), AtomicUsize::new(NOBODY));
        let schedule = Arc::new(Schedule { algorithm, ended, partner, team, awaited, end });
        if !schedule.poll() {
            engine().add_stepwise(schedule.clone());
        }
        schedule
    }

    /// Continue as far as possible without waiting; true if it has ended.
    pub fn poll(&self) -> bool {
        // Another thread polls it, or this thread does further up its stack.
        let Ok(mut algorithm) = self.algorithm.try_lock() else { return false };
        let Some(running) = &mut *algorithm else { return true };
        let mut context = Context::from_waker(Waker::noop());
        let (polled, awaited) = report::awaiting(|| running.as_mut().poll(&mut context));
        self.awaited.store(awaited.unwrap_or(NOBODY), Ordering::Relaxed);
        let answer = match (polled, &self.team) {
            (Poll::Ready(answer), _) => answer,
            (Poll::Pending, None) => return false,
            (Poll::Pending, Some(team)) => match team.check_presence() {
                Ok(()) => return false,
                left => left,
            },
        };
        *algorithm = None;
        *self.ended() = Some(answer.map(|()| self.end));
        true
    }

    fn ended(&self) -> MutexGuard<'_, Option<Answer<Outcome>>> {
        lock(&self.ended)
    }

    pub fn outcome(&self) -> Option<Outcome> {
        let of = |ended: &Answer<Outcome>| match ended {
            Ok(outcome) => *outcome,
            Err(failure) => Outcome::failed(failure.code),
        };
        self.ended().as_ref().map(of)
    }

    /// The reason why it failed.
    pub fn failure(&self) -> Option<Failure> {
        let ended = self.ended();
        let failure = ended.as_ref()?.as_ref().err()?;
        Some(fail(failure.code, failure.text.clone()))
    }

    /// The process that it waits for at the moment, whose end makes waiting useless.
    pub fn needed(&self) -> Option<usize> {
        let awaited = Some(self.awaited.load(Ordering::Relaxed)).filter(|rank| *rank != NOBODY);
        self.partner.or(awaited)
    }

    /// The participant that has ended before its part was done; what it had sent has come.
    fn lost(&self) -> Option<usize> {
        let lost = || self.needed().filter(|rank| engine().has_lost(*rank));
        lost()?;
        engine().core.take_in_all();
        engine().advance();
        drop(lock(&self.algorithm)); // another thread may be polling it
        lost().filter(|_| !self.is_done())
    }

    pub fn is_done(&self) -> bool {
        self.ended().is_some()
    }

    pub fn give_up(&self, failure: Failure) {
        // Dropping the algorithm is safe: nothing writes to the receive buffer any more.
        *lock(&self.algorithm) = None;
        self.ended().get_or_insert(Err(failure));
    }
}

impl Stepwise for Schedule {
    fn poll(&self) -> bool {
        Schedule::poll(self)
    }

    fn give_up_if_lost(&self) {
        let Some(team) = &self.team else { return };
        if let Some(lost) = self.lost() {
            team.leave_for(lost);
            self.give_up(fail(MPI_ERR_PROC_ABORTED, text_of_loss(lost)));
        }
    }
}
