//! Requests: operations that the program has begun and not yet completed.

pub mod partitioned;
mod shown;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use sfm_endpoint::sites::NOWHERE;
use sfm_native::segment::Activity;
use sfm_native::sync::lock;

use crate::collective::mismatch;
use crate::collective::schedule::Schedule;
use crate::engine::{self, engine, Alike, Outcome, Receiving, Sending};
use crate::errors::{fail, Answer, Failure, On};
use crate::generalized::Generalized;
use crate::handles::*;
use crate::objects;
use crate::table::Table;

use partitioned::Side;

/// The operation of a request.
#[derive(Clone)]
pub enum Work {
    /// Ended, or nothing to do.
    Ended(Outcome),
    Sending(Arc<Sending>),
    Receiving(Arc<Receiving>),
    /// Sends, and another operation: all of them have to end, and the outcome is the latter's.
    After(Vec<Arc<Sending>>, Box<Work>),
    Generalized(Arc<Generalized>),
    /// A collective.
    Schedule(Arc<Schedule>),
    /// A persistent request that is not started, or was completed.
    Inactive,
}

/// Starts a persistent request.
pub type Start = Box<dyn Fn() -> Answer<Work> + Send + Sync>;

/// Rank and tag of a request's message, as the program has given them.
#[derive(Clone, Copy)]
pub enum Partner {
    To(c_int, c_int),
    From(c_int, c_int),
    /// The processes of a collective call, which has this number.
    All(u64, Alike),
    /// No message, or several.
    Others,
}

pub struct Request {
    pub comm: MPI_Comm,
    partner: Partner,
    /// The call that has begun it, by number (`unfinished`).
    site: AtomicU32,
    work: Mutex<Work>,
    start: Option<Start>,
    /// The call that has made a persistent request.
    maker: Option<u32>,
    /// For partitioned requests only.
    pub side: Option<Side>,
}

static REQUESTS: Table<Request> = Table::new(0xac00_0000);

impl Request {
    fn new(site: u32, comm: MPI_Comm, partner: Partner, work: Work) -> Request {
        let site = AtomicU32::new(site);
        let work = Mutex::new(work);
        Request { comm, partner, site, work, start: None, maker: None, side: None }
    }
}

/// The handle of an operation in progress.
///
/// Takes in what has come, as `Request::start` does: the operation may end with it.
pub fn open(comm: MPI_Comm, partner: Partner, work: Work) -> MPI_Request {
    open_at(engine::site(), comm, partner, work)
}

/// The same for an operation begun by the call of this number (`unfinished`).
pub fn open_at(site: u32, comm: MPI_Comm, partner: Partner, work: Work) -> MPI_Request {
    engine().advance();
    REQUESTS.insert(Arc::new(Request::new(site, comm, partner, work)))
}

/// The handle of a persistent request, which `start` begins each time.
pub fn persistent(comm: MPI_Comm, partner: Partner, start: Start) -> MPI_Request {
    let inactive = Request::new(NOWHERE, comm, partner, Work::Inactive);
    let maker = Some(engine::site());
    REQUESTS.insert(Arc::new(Request { start: Some(start), maker, ..inactive }))
}

/// The same for a partitioned message.
pub fn partitioned(comm: MPI_Comm, partner: Partner, side: Side) -> MPI_Request {
    let (inactive, started) = (Request::new(NOWHERE, comm, partner, Work::Inactive), side.clone());
    let start: Option<Start> = Some(Box::new(move || Ok(started.start())));
    let maker = Some(engine::site());
    REQUESTS.insert(Arc::new(Request { start, maker, side: Some(side), ..inactive }))
}

/// All requests that were not completed or freed.
pub fn all() -> Vec<Arc<Request>> {
    REQUESTS.all()
}

/// None for MPI_REQUEST_NULL.
pub fn get(handle: MPI_Request) -> Answer<Option<Arc<Request>>> {
    if handle == MPI_REQUEST_NULL {
        return Ok(None);
    }
    REQUESTS.get(handle).map(Some).ok_or_else(|| wrong(handle))
}

/// The same, but an error for MPI_REQUEST_NULL.
pub fn existing(handle: MPI_Request) -> Answer<Arc<Request>> {
    get(handle)?.ok_or_else(|| fail(MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL"))
}

#[cold]
fn wrong(handle: MPI_Request) -> Failure {
    let text = format!(
        "{handle:#010x} is not a request, or was completed or freed; set unused requests to \
        MPI_REQUEST_NULL"
    );
    fail(MPI_ERR_REQUEST, text)
}

/// Free the handle; the operation continues.
pub fn release(handle: MPI_Request) -> Answer<Arc<Request>> {
    REQUESTS.release(handle).ok_or_else(|| wrong(handle))
}

impl Request {
    /// The object whose error handler gets a failure.
    pub fn on(&self) -> On {
        On::Comm(self.comm)
    }

    pub fn is_persistent(&self) -> bool {
        self.start.is_some()
    }

    /// Start this persistent request.
    pub fn start(&self) -> Answer {
        let Some(start) = &self.start else {
            let text = "the request is not persistent: only requests of MPI_Send_init, \
                MPI_Recv_init and the like can be started";
            return Err(fail(MPI_ERR_REQUEST, text).on(self.on()));
        };
        if !matches!(*lock(&self.work), Work::Inactive) {
            let text = "the request is active; complete it (MPI_Wait) before starting it again";
            return Err(fail(MPI_ERR_REQUEST, text).on(self.on()));
        }
        let work = start()?;
        *lock(&self.work) = work;
        self.site.store(engine::site(), Relaxed);
        engine().advance();
        Ok(())
    }

    pub fn is_active(&self) -> bool {
        !matches!(*lock(&self.work), Work::Inactive)
    }

    pub fn site(&self) -> u32 {
        self.site.load(Relaxed)
    }

    /// True if it still has to be completed. With `dropped`, a send that was complete at once need
    /// not be, nor a cancelled operation, since the program cannot miss anything of it.
    pub fn is_unfinished(&self, dropped: bool) -> bool {
        let work = lock(&self.work);
        let is_over = match &*work {
            Work::Inactive => return false,
            Work::Ended(_) => matches!(self.partner, Partner::To(..)),
            Work::Sending(sending) => {
                sending.end.get().is_some_and(|end| end.status.is_cancelled())
            }
            Work::Receiving(receiving) => {
                receiving.end.get().is_some_and(|end| end.status.is_cancelled())
            }
            _ => false,
        };
        !(dropped && is_over)
    }

    /// True if it has ended; makes no progress.
    pub fn is_done(&self) -> bool {
        lock(&self.work).is_done()
    }

    /// The outcome. The request must be done.
    pub fn outcome(&self) -> Outcome {
        // a generalized request calls the program: not under the lock
        let work = lock(&self.work).clone();
        work.outcome()
    }

    /// The operation of MPI_Grequest_start.
    pub fn generalized(&self) -> Option<Arc<Generalized>> {
        match &*lock(&self.work) {
            Work::Generalized(generalized) => Some(generalized.clone()),
            _ => None,
        }
    }

    /// Complete it: returns the outcome and the failure. A persistent request becomes inactive, any
    /// other is freed.
    pub fn complete(&self, handle: &mut MPI_Request) -> (Outcome, Option<Failure>) {
        let work = std::mem::replace(&mut *lock(&self.work), Work::Inactive);
        // a generalized request calls the program: not under the lock
        let mut outcome = work.outcome();
        if let Work::Generalized(generalized) = &work {
            let code = generalized.free();
            if outcome.code == MPI_SUCCESS {
                outcome.code = code;
            }
        }
        if !self.is_persistent() {
            REQUESTS.release(*handle);
            *handle = MPI_REQUEST_NULL;
        }
        if let (Work::Receiving(receiving), MPI_SUCCESS) = (&work, outcome.code) {
            // SAFETY: it has ended, and the program has not got its memory back yet.
            unsafe { objects::expect_object(receiving, self.site()) };
        }
        let why = |_| work.failure(&outcome).on(self.on());
        (outcome, Some(outcome.code).filter(|code| *code != MPI_SUCCESS).map(why))
    }

    /// The process that it waits for at the moment, whose end makes waiting useless; None if that
    /// is unknown.
    pub fn needed(&self) -> Option<usize> {
        lock(&self.work).needed()
    }

    /// The state of the process while it waits for it.
    pub fn activity(&self) -> Activity {
        match *lock(&self.work) {
            Work::Sending(_) => Activity::Sending,
            _ => Activity::Receiving,
        }
    }

    /// End it, because a process that it needs has died.
    pub fn give_up(&self) {
        lock(&self.work).give_up();
    }

    /// Cancel a receive whose message has not come, or a send that is not matched. A send that has
    /// ended is not cancelled.
    pub fn cancel(&self) -> Answer {
        let work = lock(&self.work).clone();
        match work.cancel() {
            MPI_SUCCESS => Ok(()),
            code => {
                let text = format!("the program's function that cancels a request returned {code}");
                Err(fail(code, text).on(self.on()))
            }
        }
    }
}

impl Work {
    /// These sends, and then another operation that has to end, too.
    pub fn after(sending: impl IntoIterator<Item = Arc<Sending>>, rest: Work) -> Work {
        let sending: Vec<_> = sending.into_iter().collect();
        match sending.is_empty() {
            true => rest,
            false => Work::After(sending, Box::new(rest)),
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Work::Ended(_) | Work::Inactive => true,
            Work::Sending(sending) => sending.end.is_done(),
            Work::Receiving(receiving) => receiving.end.is_done(),
            Work::After(sending, rest) => {
                rest.is_done() && sending.iter().all(|send| send.end.is_done())
            }
            Work::Generalized(generalized) => generalized.is_done(),
            Work::Schedule(schedule) => schedule.is_done(),
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Work::Ended(outcome) => *outcome,
            Work::Inactive => Outcome::of_send(),
            Work::Sending(sending) => sending.end.get().expect("done"),
            Work::Receiving(receiving) => receiving.end.get().expect("done"),
            Work::After(sending, rest) => {
                let mut all = sending.iter().filter_map(|send| send.end.get());
                all.find(|outcome| outcome.code != MPI_SUCCESS).unwrap_or_else(|| rest.outcome())
            }
            Work::Generalized(generalized) => generalized.query(),
            Work::Schedule(schedule) => schedule.outcome().expect("done"),
        }
    }

    fn needed(&self) -> Option<usize> {
        match self {
            Work::Sending(sending) => Some(sending.dest),
            Work::Receiving(receiving) => receiving.pattern.from,
            Work::After(sending, rest) => {
                let open = sending.iter().find(|send| !send.end.is_done());
                open.map_or_else(|| rest.needed(), |send| Some(send.dest))
            }
            Work::Ended(_) | Work::Inactive | Work::Generalized(_) => None,
            Work::Schedule(schedule) => schedule.needed(),
        }
    }

    fn give_up(&mut self) {
        let outcome = Outcome::failed(MPI_ERR_PROC_ABORTED);
        match self {
            Work::Receiving(receiving) => {
                engine().cancel_receive(receiving, outcome);
            }
            Work::Sending(_) => *self = Work::Ended(outcome),
            Work::After(_, rest) => {
                // Nothing may arrive any more in memory that is released.
                rest.give_up();
                *self = Work::Ended(outcome);
            }
            Work::Schedule(schedule) => schedule.give_up(outcome.failure()),
            Work::Ended(_) | Work::Inactive | Work::Generalized(_) => {}
        }
    }

    /// The reason for this outcome.
    fn failure(&self, outcome: &Outcome) -> Failure {
        match self {
            Work::Schedule(schedule) => schedule.failure(),
            Work::Receiving(receiving) => Some(mismatch::of_receive(receiving, outcome)),
            _ => None,
        }
        .unwrap_or_else(|| outcome.failure())
    }

    fn cancel(&self) -> c_int {
        match self {
            Work::Receiving(receiving) => {
                engine().cancel_receive(receiving, Outcome::cancelled());
            }
            Work::Sending(sending) => engine().cancel_send(sending),
            Work::Generalized(generalized) => return generalized.cancel(),
            // The standard does not allow cancelling these.
            Work::After(..) | Work::Ended(_) | Work::Inactive | Work::Schedule(_) => {}
        }
        MPI_SUCCESS
    }
}

/// The result of a call that completes one operation with `outcome`.
///
/// # Safety
/// `status` is MPI_STATUS_IGNORE or points to a status.
pub unsafe fn finish(outcome: &Outcome, comm: MPI_Comm, status: *mut MPI_Status) -> Answer {
    outcome.status.put(status);
    match outcome.code {
        MPI_SUCCESS => Ok(()),
        _ => Err(outcome.failure().on(On::Comm(comm))),
    }
}
