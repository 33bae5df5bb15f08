//! A non-blocking collective: its algorithm, suspended while it waits. Other operations of more
//! than one message are schedules, too.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use sfm_native::sync::lock;

use crate::engine::{engine, report, text_of_loss, Engine, From, Outcome};
use crate::errors::{fail, Answer, Failure};
use crate::group::Group;
use crate::handles::*;

type Algorithm = Pin<Box<dyn Future<Output = Answer>>>;

pub struct Schedule {
    /// None after the end.
    algorithm: Mutex<Option<Algorithm>>,
    ended: Mutex<Option<Answer<Outcome>>>,
    /// The only process that it waits for (rank in the world).
    partner: Option<usize>,
    /// All participants: the death of one ends the schedule.
    members: Option<Arc<Group>>,
    /// The process that it waits for now (rank in the world).
    awaited: AtomicUsize,
    /// The outcome of success.
    end: Outcome,
}

const NOBODY: usize = usize::MAX;

// SAFETY: one thread at a time polls the algorithm, under the lock; its pointers are to memory that
// the user leaves alone until the collective has ended.
unsafe impl Send for Schedule {}
// SAFETY: as above.
unsafe impl Sync for Schedule {}

impl Schedule {
    /// Begin; `algorithm` owns everything it needs except the user's memory.
    pub fn begin(
        members: Arc<Group>,
        algorithm: impl Future<Output = Answer> + 'static,
    ) -> Arc<Schedule> {
        Schedule::new(None, Some(members), Outcome::of_send(), algorithm)
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
        members: Option<Arc<Group>>,
        end: Outcome,
        algorithm: impl Future<Output = Answer> + 'static,
    ) -> Arc<Schedule> {
        let algorithm: Mutex<Option<Algorithm>> = Mutex::new(Some(Box::pin(algorithm)));
        let (ended, awaited) = (Mutex::default(), AtomicUsize::new(NOBODY));
        let schedule = Arc::new(Schedule { algorithm, ended, partner, members, awaited, end });
        if !schedule.poll() {
            engine().add_schedule(schedule.clone());
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
        let Poll::Ready(answer) = polled else { return false };
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

    /// The process whose death makes waiting useless.
    pub fn from(&self) -> From<'static> {
        let awaited = Some(self.awaited.load(Ordering::Relaxed)).filter(|rank| *rank != NOBODY);
        self.partner.or(awaited).map_or(From::Nobody, From::One)
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

impl Engine {
    fn add_schedule(&self, schedule: Arc<Schedule>) {
        lock(&self.schedules).push(schedule);
        self.running.fetch_add(1, Ordering::Release);
    }

    /// End the schedules that have lost a participant.
    pub fn give_up_schedules(&self) {
        let all = lock(&self.schedules).clone();
        for schedule in all {
            let Some(members) = &schedule.members else { continue };
            if let Some(rank) = self.lost_of(From::Any(&members.members)) {
                schedule.give_up(fail(MPI_ERR_PROC_ABORTED, text_of_loss(rank)));
            }
        }
    }

    /// Continue all schedules that have not ended.
    pub fn poll_schedules(&self) {
        let all = lock(&self.schedules).clone();
        for schedule in all {
            if schedule.poll() {
                let mut schedules = lock(&self.schedules);
                let length = schedules.len();
                schedules.retain(|other| !Arc::ptr_eq(other, &schedule));
                self.running.fetch_sub(length - schedules.len(), Ordering::Release);
            }
        }
    }
}
