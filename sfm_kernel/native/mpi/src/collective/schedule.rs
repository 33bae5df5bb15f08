//! A non-blocking collective: its algorithm, stopped where it has to wait. So are other operations
//! of more than one message.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use crate::engine::{text_of_loss, told, Engine, From, Outcome};
use crate::errors::{fail, Answer, Failure};
use crate::group::Group;
use crate::handles::*;

type Algorithm = Pin<Box<dyn Future<Output = Answer>>>;

pub struct Schedule {
    /// None once it has ended.
    algorithm: Mutex<Option<Algorithm>>,
    ended: Mutex<Option<Answer<Outcome>>>,
    /// The only process that it waits for, in the world.
    partner: Option<usize>,
    /// All that take part: none of them may die.
    members: Option<Arc<Group>>,
    /// The process whose part it waits for now, in the world.
    awaited: AtomicUsize,
    /// How it ends if all is well.
    end: Outcome,
}

const NOBODY: usize = usize::MAX;

// SAFETY: an algorithm is polled by one thread at a time, under the lock; what it points to is the
// user's, who leaves it alone until the collective has ended.
unsafe impl Send for Schedule {}
// SAFETY: as above.
unsafe impl Sync for Schedule {}

impl Schedule {
    /// Begin; `algorithm` owns all that it needs but the user's memory.
    pub fn begin(
        engine: &Engine,
        members: Arc<Group>,
        algorithm: impl Future<Output = Answer> + 'static,
    ) -> Arc<Schedule> {
        Schedule::new(engine, None, Some(members), Outcome::of_send(), algorithm)
    }

    /// The same of what waits for this process only, and ends so.
    pub fn with(
        engine: &Engine,
        partner: Option<usize>,
        end: Outcome,
        algorithm: impl Future<Output = Answer> + 'static,
    ) -> Arc<Schedule> {
        Schedule::new(engine, partner, None, end, algorithm)
    }

    fn new(
        engine: &Engine,
        partner: Option<usize>,
        members: Option<Arc<Group>>,
        end: Outcome,
        algorithm: impl Future<Output = Answer> + 'static,
    ) -> Arc<Schedule> {
        let algorithm: Mutex<Option<Algorithm>> = Mutex::new(Some(Box::pin(algorithm)));
        let (ended, awaited) = (Mutex::default(), AtomicUsize::new(NOBODY));
        let schedule = Arc::new(Schedule { algorithm, ended, partner, members, awaited, end });
        if !schedule.poll() {
            engine.add_schedule(schedule.clone());
        }
        schedule
    }

    /// Go on as far as that goes now; whether it has ended.
    pub fn poll(&self) -> bool {
        // Somebody else is at it, perhaps this same thread further up.
        let Ok(mut algorithm) = self.algorithm.try_lock() else { return false };
        let Some(running) = &mut *algorithm else { return true };
        let mut context = Context::from_waker(Waker::noop());
        let (polled, awaited) = told::awaiting(|| running.as_mut().poll(&mut context));
        self.awaited.store(awaited.unwrap_or(NOBODY), Ordering::Relaxed);
        let Poll::Ready(answer) = polled else { return false };
        *algorithm = None;
        *self.ended() = Some(answer.map(|()| self.end));
        true
    }

    fn ended(&self) -> MutexGuard<'_, Option<Answer<Outcome>>> {
        self.ended.lock().expect("no panic under the lock")
    }

    pub fn outcome(&self) -> Option<Outcome> {
        let of = |ended: &Answer<Outcome>| match ended {
            Ok(outcome) => *outcome,
            Err(failure) => Outcome::failed(failure.code),
        };
        self.ended().as_ref().map(of)
    }

    /// Why it has failed.
    pub fn failure(&self) -> Option<Failure> {
        let ended = self.ended();
        let failure = ended.as_ref()?.as_ref().err()?;
        Some(fail(failure.code, failure.text.clone()))
    }

    /// Whose death makes waiting for it useless.
    pub fn from(&self) -> From<'static> {
        let awaited = Some(self.awaited.load(Ordering::Relaxed)).filter(|rank| *rank != NOBODY);
        self.partner.or(awaited).map_or(From::Nobody, From::One)
    }

    pub fn is_done(&self) -> bool {
        self.ended().is_some()
    }

    /// End it as failed.
    pub fn give_up(&self, failure: Failure) {
        // What it was about to receive into stays the user's: nothing comes there any more.
        *self.algorithm.lock().expect("no panic under the lock") = None;
        self.ended().get_or_insert(Err(failure));
    }
}

impl Engine {
    fn add_schedule(&self, schedule: Arc<Schedule>) {
        self.schedules.lock().expect("no panic under the lock").push(schedule);
        self.running.fetch_add(1, Ordering::Release);
    }

    /// End those of which somebody has died.
    pub fn give_up_schedules(&self) {
        let all = self.schedules.lock().expect("no panic under the lock").clone();
        for one in all {
            let Some(members) = &one.members else { continue };
            if let Some(rank) = self.lost_of(From::Any(&members.members)) {
                one.give_up(fail(MPI_ERR_PROC_ABORTED, text_of_loss(rank)));
            }
        }
    }

    /// Go on with all that are under way.
    pub fn poll_schedules(&self) {
        let all = self.schedules.lock().expect("no panic under the lock").clone();
        for one in all {
            if one.poll() {
                let mut schedules = self.schedules.lock().expect("no panic under the lock");
                let length = schedules.len();
                schedules.retain(|other| !Arc::ptr_eq(other, &one));
                self.running.fetch_sub(length - schedules.len(), Ordering::Release);
            }
        }
    }
}
