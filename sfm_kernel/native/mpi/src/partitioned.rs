//! Partitioned communication: a persistent message whose parts go one by one, as the sender has
//! them ready.
//!
//! Each part is a message of its own. Once, when it is made, the sender's side says how it cuts and
//! which tags its parts have; in the order in which both sides were made, the receiver's side finds
//! that. So the sender never waits for it, and the receiver may cut otherwise: both have the same
//! bytes in the same order, and its partition is there when all parts are that reach into it.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use crate::collective::schedule::Schedule;
use crate::comm::Comm;
use crate::data::Data;
use crate::engine::{self, engine, Mode, Outcome, Receiving, Sending, To, Wanted};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::request::Work;

/// Either side of it.
#[derive(Clone)]
pub enum Side {
    Sending(Arc<Outgoing>),
    Receiving(Arc<Incoming>),
}

impl Side {
    /// Begin a round.
    pub fn start(&self) -> Work {
        match self {
            Side::Sending(own) => own.start(),
            Side::Receiving(own) => own.start(),
        }
    }
}

/// How the sender cuts. Its parts have tags from `first` on, which no other of this sender has.
#[derive(Clone, Copy)]
struct Cut {
    parts: u64,
    bytes: u64,
    first: u64,
}

/// A `Cut` as it is sent.
type Words = [AtomicU64; 3];

fn as_data(words: &Words) -> Data {
    Data::bytes(words.as_ptr().cast_mut().cast(), size_of::<Words>())
}

impl Cut {
    fn tag(&self, nth: usize) -> c_int {
        (self.first.wrapping_add(nth as u64) & c_int::MAX as u64) as c_int
    }

    /// Of all bytes, those of one part.
    fn range(&self, nth: usize) -> Range<usize> {
        let bytes = self.bytes as usize;
        nth * bytes..(nth + 1) * bytes
    }

    fn words(&self) -> Words {
        [self.parts, self.bytes, self.first].map(AtomicU64::new)
    }

    fn of(words: &Words) -> Cut {
        let [parts, bytes, first] = [0, 1, 2].map(|nth: usize| words[nth].load(Relaxed));
        Cut { parts, bytes, first }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Outgoing {
    /// Where the parts go; None for MPI_PROC_NULL.
    to: Option<To>,
    data: Data,
    cut: Cut,
    round: Mutex<Sent>,
}

#[derive(Default)]
struct Sent {
    ready: Vec<bool>,
    /// Parts that are not ready, or not yet on their way.
    left: usize,
    going: Vec<Arc<Sending>>,
}

impl Sent {
    fn mark(&mut self, partition: c_int) -> Answer {
        let nth = checked(partition, self.ready.len())?;
        match std::mem::replace(&mut self.ready[nth], true) {
            true => {
                let text = format!("partition {nth} was made ready before in this round");
                Err(fail(MPI_ERR_ARG, text))
            }
            false => Ok(()),
        }
    }
}

impl Outgoing {
    /// # Safety
    /// The data is there in every round, from the moment when a part of it is ready.
    pub unsafe fn new(comm: &Comm, to: Option<To>, data: Data, parts: usize) -> Outgoing {
        static TAGS: AtomicU32 = AtomicU32::new(0);
        let (parts, bytes) = (parts as u64, (data.len() / parts) as u64);
        let cut = Cut { parts, bytes, first: TAGS.fetch_add(parts as u32, Relaxed).into() };
        let context = engine::partitioned(comm.context);
        if let Some(to) = to {
            let to = To { context, ..to };
            // SAFETY: the words are there.
            unsafe { engine().send_copy(to, Mode::Standard, &as_data(&cut.words())) };
        }
        let to = to.map(|to| To { context: engine::parts(comm.context), ..to });
        Outgoing { to, data, cut, round: Mutex::default() }
    }

    fn start(self: &Arc<Outgoing>) -> Work {
        let left = self.cut.parts as usize;
        *lock(&self.round) = Sent { ready: vec![false; left], left, going: Vec::new() };
        let (own, to) = (self.clone(), self.to.map(|to| to.rank));
        let algorithm = poll_fn(move |_| own.sent());
        Work::Schedule(Schedule::with(engine(), to, Outcome::of_send(), algorithm))
    }

    /// Whether all parts have gone.
    fn sent(&self) -> Poll<Answer> {
        let round = lock(&self.round);
        match round.left {
            0 => all_ended(round.going.iter().map(|one| one.end.get())),
            _ => Poll::Pending,
        }
    }

    /// These parts are ready: send them.
    pub fn ready(&self, parts: impl Iterator<Item = c_int> + Clone) -> Answer {
        {
            let mut round = lock(&self.round);
            for (at, nth) in parts.clone().enumerate() {
                if let Err(failure) = round.mark(nth) {
                    parts.take(at).for_each(|nth| round.ready[nth as usize] = false);
                    return Err(failure);
                }
            }
        }
        for nth in parts.map(|nth| nth as usize) {
            let part = self.data.part(self.cut.range(nth));
            let to = self.to.map(|to| To { tag: self.cut.tag(nth), ..to });
            // SAFETY: the program has said that it is there.
            let going = to.and_then(|to| unsafe { engine().send(to, Mode::Standard, &part) });
            let mut round = lock(&self.round);
            round.going.extend(going);
            round.left -= 1;
            if round.left == 0 {
                engine().core.wake(); // another thread may wait for it
            }
        }
        engine().advance();
        Ok(())
    }
}

pub struct Incoming {
    /// The sender's parts; None for MPI_PROC_NULL.
    wanted: Option<Wanted>,
    data: Data,
    parts: usize,
    /// How the sender cuts, when that has come.
    cut: Option<(Arc<Receiving>, Arc<Words>)>,
    /// The sender's parts of this round; none until it is known how it cuts.
    round: Mutex<Vec<Arc<Receiving>>>,
}

impl Incoming {
    /// # Safety
    /// The memory is there, and this one's, in every round until it has ended.
    pub unsafe fn new(comm: &Comm, wanted: Option<Wanted>, data: Data, parts: usize) -> Incoming {
        let cut = wanted.map(|wanted| {
            let words = Arc::<Words>::default();
            let wanted = Wanted { context: engine::partitioned(comm.context), ..wanted };
            // SAFETY: `drop` takes the receive back before the memory goes.
            (unsafe { engine().receive(&wanted, as_data(&words)) }, words)
        });
        let wanted = wanted.map(|wanted| Wanted { context: engine::parts(comm.context), ..wanted });
        Incoming { wanted, data, parts, cut, round: Mutex::default() }
    }

    fn start(self: &Arc<Incoming>) -> Work {
        lock(&self.round).clear();
        let Some(wanted) = self.wanted else {
            let status = MPI_Status::of_no_process();
            return Work::Ended(Outcome { status, code: MPI_SUCCESS });
        };
        let status = MPI_Status::new(wanted.source, wanted.tag, self.data.len() as u64);
        let (end, own) = (Outcome { status, code: MPI_SUCCESS }, self.clone());
        let algorithm = async move { own.receive(wanted).await };
        Work::Schedule(Schedule::with(engine(), wanted.from, end, algorithm))
    }

    async fn receive(&self, wanted: Wanted) -> Answer {
        let cut = poll_fn(|_| self.cut()).await?;
        let (parts, bytes) = (cut.parts as usize, cut.bytes as usize);
        let code = match (parts * bytes).cmp(&self.data.len()) {
            std::cmp::Ordering::Equal => MPI_SUCCESS,
            std::cmp::Ordering::Less => MPI_ERR_COUNT,
            std::cmp::Ordering::Greater => MPI_ERR_TRUNCATE,
        };
        if code != MPI_SUCCESS {
            let text = "the sender of a partitioned message sends another number of bytes";
            return Err(fail(code, text));
        }
        let part = |nth| {
            let wanted = Wanted { tag: cut.tag(nth), ..wanted };
            // SAFETY: the memory is the program's until all have ended, or `Posted` is dropped.
            unsafe { engine().receive(&wanted, self.data.part(cut.range(nth))) }
        };
        let posted = Posted((0..parts).map(part).collect());
        lock(&self.round).clone_from(&posted.0);
        poll_fn(|_| all_ended(posted.0.iter().map(|one| one.end.get()))).await
    }

    /// How the sender cuts.
    fn cut(&self) -> Poll<Answer<Cut>> {
        let Some((receiving, words)) = &self.cut else { return Poll::Pending };
        let Some(outcome) = receiving.end.get() else { return Poll::Pending };
        Poll::Ready(ended(outcome).map(|()| Cut::of(words)))
    }

    /// Whether what goes into this partition has come.
    pub fn has_arrived(&self, partition: c_int) -> Answer<bool> {
        let nth = checked(partition, self.parts)?;
        if self.wanted.is_none() {
            return Ok(true);
        }
        let round = lock(&self.round);
        let theirs = round.len();
        // Both cut the same bytes into equal parts, so that fractions say what reaches into what.
        let reach = nth * theirs / self.parts..((nth + 1) * theirs).div_ceil(self.parts);
        Ok(theirs > 0 && round[reach].iter().all(|one| one.end.is_done()))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some((receiving, _)) = &self.cut {
            engine().take_back(receiving, Outcome::cancelled());
        }
    }
}

/// Receives of a round. If that is given up, nothing may come any more into memory that goes.
struct Posted(Vec<Arc<Receiving>>);

impl Drop for Posted {
    fn drop(&mut self) {
        for one in self.0.iter().filter(|one| !one.end.is_done()) {
            engine().take_back(one, Outcome::cancelled());
        }
    }
}

fn checked(partition: c_int, parts: usize) -> Answer<usize> {
    match usize::try_from(partition) {
        Ok(nth) if nth < parts => Ok(nth),
        _ => {
            let text =
                format!("there is no partition {partition}: they are from 0 to {}", parts - 1);
            Err(fail(MPI_ERR_ARG, text))
        }
    }
}

fn ended(outcome: Outcome) -> Answer {
    match outcome.code {
        MPI_SUCCESS => Ok(()),
        code => Err(fail(code, "the other side of a partitioned message has ended")),
    }
}

fn all_ended(all: impl Iterator<Item = Option<Outcome>>) -> Poll<Answer> {
    for one in all {
        match one.map(ended) {
            None => return Poll::Pending,
            Some(Err(failure)) => return Poll::Ready(Err(failure)),
            Some(Ok(())) => {}
        }
    }
    Poll::Ready(Ok(()))
}
