//! A non-blocking collective: its algorithm, stopped where it has to wait. So are other operations
//! of more than one message.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::engine::{Engine, From, Outcome};
use crate::errors::Answer;

type Algorithm = Pin<Box<dyn Future<Output = Answer>>>;

pub struct Schedule {
    /// None once it has ended.
    algorithm: Mutex<Option<Algorithm>>,
    outcome: Mutex<Option<Outcome>>,
    /// The only process that it waits for, in the world.
    partner: Option<usize>,
    /// How it ends if all is well.
    end: Outcome,
}

// SAFETY: an algorithm is polled by one thread at a time, under the lock; what it points to is the
// user's, who leaves it alone until the collective has ended.
unsafe impl Send for Schedule {}
// SAFETY: as above.
unsafe impl Sync for Schedule {}

impl Schedule {
    /// Begin; `algorithm` owns all that it needs but the user's memory.
    pub fn begin(
        engine: &Engine,
        algorithm: impl Future<Output = Answer> + 'static,
    ) -> Arc<Schedule> {
        Schedule::with(engine, None, Outcome::of_send(), algorithm)
    }

    /// The same of what waits for this process only, and ends so.
    pub fn with(
        engine: &Engine,
        partner: Option<usize>,
        end: Outcome,
        algorithm: impl Future<Output = Answer> + 'static,
    ) -> Arc<Schedule> {
        let algorithm: Mutex<Option<Algorithm>> = Mutex::new(Some(Box::pin(algorithm)));
        let schedule = Arc::new(Schedule { algorithm, outcome: Mutex::default(), partner, end });
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
        let Poll::Ready(answer) = running.as_mut().poll(&mut context) else { return false };
        let outcome = match answer {
            Ok(()) => self.end,
            Err(failure) => Outcome { code: failure.code, ..self.end },
        };
        *algorithm = None;
        *self.outcome.lock().expect("no panic under the lock") = Some(outcome);
        true
    }

    pub fn outcome(&self) -> Option<Outcome> {
        *self.outcome.lock().expect("no panic under the lock")
    }

    /// Whose death makes waiting for it useless.
    pub fn from(&self) -> From<'static> {
        self.partner.map_or(From::Nobody, From::One)
    }

    pub fn is_done(&self) -> bool {
        self.outcome().is_some()
    }

    /// End it as failed.
    pub fn give_up(&self, outcome: Outcome) {
        // What it was about to receive into stays the user's: nothing comes there any more.
        *self.algorithm.lock().expect("no panic under the lock") = None;
        self.outcome.lock().expect("no panic under the lock").get_or_insert(outcome);
    }
}

impl Engine {
    fn add_schedule(&self, schedule: Arc<Schedule>) {
        self.schedules.lock().expect("no panic under the lock").push(schedule);
        self.running.fetch_add(1, Ordering::Release);
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
