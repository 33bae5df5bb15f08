//! Partitioned communication: a persistent message whose partitions are sent one by one, when the
//! sender marks them ready.
//!
//! Each partition is a message of its own. When the request is made, the sender sends the number
//! and size of its partitions and their tags; requests on both sides match in the order in which
//! they were made. So the sender never waits for the receiver, and the receiver may have other
//! partitions: both have the same bytes in the same order, and a partition of the receiver has
//! arrived when all of the sender's partitions that overlap it have.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use sfm_native::sync::lock;

use crate::collective::schedule::Schedule;
use crate::comm::Comm;
use crate::data::Data;
use crate::engine::{self, engine, Mode, Outcome, Pattern, Receiving, Sending, To};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::request::Work;

/// The most partitions that observers are told.
const MISSING: usize = 6;

/// The sending or the receiving side.
#[derive(Clone)]
pub enum Side {
    Sending(Arc<Outgoing>),
    Receiving(Arc<Incoming>),
}

impl Side {
    pub fn start(&self) -> Work {
        match self {
            Side::Sending(this) => this.start(),
            Side::Receiving(this) => this.start(),
        }
    }

    /// The partitions that it waits for, if they are few, for observers.
    pub fn missing(&self) -> Option<(&'static str, String)> {
        let (name, all) = match self {
            Side::Sending(this) => ("not_ready", this.not_ready()),
            Side::Receiving(this) => ("not_arrived", this.not_there()),
        };
        (1..=MISSING).contains(&all.len()).then(|| (name, format!("{all:?}")))
    }
}

/// The sender's partitions. Their tags begin with `first`, and no other partition of this sender
/// has them.
#[derive(Clone, Copy)]
struct Partitioning {
    partitions: u64,
    bytes: u64,
    first: u64,
}

/// A `Partitioning` as it is sent.
type Words = [AtomicU64; 3];

fn as_data(words: &Words) -> Data {
    Data::bytes(words.as_ptr().cast_mut().cast(), size_of::<Words>())
}

impl Partitioning {
    fn tag(&self, nth: usize) -> c_int {
        (self.first.wrapping_add(nth as u64) & c_int::MAX as u64) as c_int
    }

    /// The bytes of one partition.
    fn range(&self, nth: usize) -> Range<usize> {
        let bytes = self.bytes as usize;
        nth * bytes..(nth + 1) * bytes
    }

    fn words(&self) -> Words {
        [self.partitions, self.bytes, self.first].map(AtomicU64::new)
    }

    fn of(words: &Words) -> Partitioning {
        let [partitions, bytes, first] = [0, 1, 2].map(|nth: usize| words[nth].load(Relaxed));
        Partitioning { partitions, bytes, first }
    }
}

/// For each process and call, the number of sends that this process has made there for that
/// process and never started: no message exists of them.
static NEVER_STARTED: Mutex<BTreeMap<(usize, u32), usize>> = Mutex::new(BTreeMap::new());

/// The number of partitioned sends to a process that a call has made and nobody has started.
pub fn never_started(receiver: usize, site: u32) -> usize {
    lock(&NEVER_STARTED).get(&(receiver, site)).copied().unwrap_or(0)
}

pub struct Outgoing {
    /// The destination of the partitions; None for MPI_PROC_NULL.
    to: Option<To>,
    is_started: AtomicBool,
    data: Data,
    partitioning: Partitioning,
    round: Mutex<Sent>,
}

#[derive(Default)]
struct Sent {
    ready: Vec<bool>,
    /// The number of partitions that are not ready, or not yet given to the engine.
    remaining: usize,
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
    /// In every round the data of a partition is valid from the moment when it is ready.
    pub unsafe fn new(comm: &Comm, to: Option<To>, data: Data, partitions: usize) -> Outgoing {
        static TAGS: AtomicU32 = AtomicU32::new(0);
        let (partitions, bytes) = (partitions as u64, (data.len() / partitions) as u64);
        let partitioning = Partitioning {
            partitions,
            bytes,
            first: TAGS.fetch_add(partitions as u32, Relaxed).into(),
        };
        let context = engine::partitioned(comm.context);
        if let Some(to) = to {
            *lock(&NEVER_STARTED).entry((to.rank, to.site())).or_default() += 1;
            let to = To { context, ..to };
            // SAFETY: the words are valid, and a copy of them is sent.
            unsafe { engine().send_copy(to, Mode::Standard, &as_data(&partitioning.words())) };
        }
        let to = to.map(|to| To { context: engine::partitions(comm.context), ..to });
        let is_started = AtomicBool::new(false);
        Outgoing { to, is_started, data, partitioning, round: Mutex::default() }
    }

    fn start(self: &Arc<Outgoing>) -> Work {
        let remaining = self.partitioning.partitions as usize;
        *lock(&self.round) = Sent { ready: vec![false; remaining], remaining, going: Vec::new() };
        if let Some(to) = self.to.filter(|_| !self.is_started.swap(true, Relaxed)) {
            lock(&NEVER_STARTED).entry((to.rank, to.site())).and_modify(|count| *count -= 1);
        }
        let (this, to) = (self.clone(), self.to.map(|to| to.rank));
        let algorithm = poll_fn(move |_| this.sent());
        Work::Schedule(Schedule::with(to, Outcome::of_send(), algorithm))
    }

    /// The partitions that the program has not made ready.
    fn not_ready(&self) -> Vec<usize> {
        let ready = &lock(&self.round).ready;
        (0..ready.len()).filter(|nth| !ready[*nth]).collect()
    }

    /// Ready when all partitions are sent.
    fn sent(&self) -> Poll<Answer> {
        let round = lock(&self.round);
        match round.remaining {
            0 => all_ended(round.going.iter().map(|sending| sending.end.get())),
            _ => Poll::Pending,
        }
    }

    /// Mark these partitions ready, and send them.
    pub fn ready(&self, partitions: impl Iterator<Item = c_int> + Clone) -> Answer {
        {
            let mut round = lock(&self.round);
            for (marked, nth) in partitions.clone().enumerate() {
                if let Err(failure) = round.mark(nth) {
                    partitions.take(marked).for_each(|nth| round.ready[nth as usize] = false);
                    return Err(failure);
                }
            }
        }
        for nth in partitions.map(|nth| nth as usize) {
            let partition = self.data.slice(self.partitioning.range(nth));
            let to = self.to.map(|to| To { tag: self.partitioning.tag(nth), ..to });
            // SAFETY: the program has declared the partition ready, and leaves it alone until the
            // end.
            let going = to.and_then(|to| unsafe { engine().send(to, Mode::Standard, &partition) });
            let mut round = lock(&self.round);
            round.going.extend(going);
            round.remaining -= 1;
            if round.remaining == 0 {
                engine().core.wake(); // another thread may wait for it
            }
        }
        engine().advance();
        Ok(())
    }
}

pub struct Incoming {
    /// Matches the sender's partitions; None for MPI_PROC_NULL.
    pattern: Option<Pattern>,
    data: Data,
    partitions: usize,
    /// The receive of the sender's partitioning.
    partitioning: Option<(Arc<Receiving>, Arc<Words>)>,
    /// The receives of the sender's partitions in this round; empty until the partitioning is
    /// known.
    round: Mutex<Vec<Arc<Receiving>>>,
}

impl Incoming {
    /// # Safety
    /// The memory is valid and the request's in every round until the round has ended.
    pub unsafe fn new(
        comm: &Comm,
        pattern: Option<Pattern>,
        data: Data,
        partitions: usize,
    ) -> Incoming {
        let partitioning = pattern.map(|pattern| {
            let words = Arc::<Words>::default();
            let pattern = Pattern { context: engine::partitioned(comm.context), ..pattern };
            // SAFETY: `drop` cancels the receive before the memory is freed.
            (unsafe { engine().receive(&pattern, as_data(&words)) }, words)
        });
        let pattern =
            pattern.map(|pattern| Pattern { context: engine::partitions(comm.context), ..pattern });
        Incoming { pattern, data, partitions, partitioning, round: Mutex::default() }
    }

    fn start(self: &Arc<Incoming>) -> Work {
        lock(&self.round).clear();
        let Some(pattern) = self.pattern else {
            let status = MPI_Status::of_no_process();
            return Work::Ended(Outcome { status, code: MPI_SUCCESS });
        };
        let status = MPI_Status::new(pattern.source, pattern.tag, self.data.len() as u64);
        let (end, this) = (Outcome { status, code: MPI_SUCCESS }, self.clone());
        let algorithm = async move { this.receive(pattern).await };
        Work::Schedule(Schedule::with(pattern.from, end, algorithm))
    }

    async fn receive(&self, pattern: Pattern) -> Answer {
        let partitioning = poll_fn(|_| self.partitioning()).await?;
        let (partitions, bytes) = (partitioning.partitions as usize, partitioning.bytes as usize);
        let code = match (partitions * bytes).cmp(&self.data.len()) {
            std::cmp::Ordering::Equal => MPI_SUCCESS,
            std::cmp::Ordering::Less => MPI_ERR_COUNT,
            std::cmp::Ordering::Greater => MPI_ERR_TRUNCATE,
        };
        if code != MPI_SUCCESS {
            let text = "the sender of a partitioned message sends a different number of bytes";
            return Err(fail(code, text));
        }
        let partition = |nth| {
            let pattern = Pattern { tag: partitioning.tag(nth), ..pattern };
            // SAFETY: the memory is the request's until all receives have ended, or `Posted` is
            // dropped.
            unsafe { engine().receive(&pattern, self.data.slice(partitioning.range(nth))) }
        };
        let posted = Posted((0..partitions).map(partition).collect());
        lock(&self.round).clone_from(&posted.0);
        poll_fn(|_| all_ended(posted.0.iter().map(|receiving| receiving.end.get()))).await
    }

    /// Ready when the sender's partitioning is known.
    fn partitioning(&self) -> Poll<Answer<Partitioning>> {
        let Some((receiving, words)) = &self.partitioning else { return Poll::Pending };
        let Some(outcome) = receiving.end.get() else { return Poll::Pending };
        Poll::Ready(ended(outcome).map(|()| Partitioning::of(words)))
    }

    /// The partitions that have not arrived.
    fn not_there(&self) -> Vec<usize> {
        let is_missing = |nth: &usize| matches!(self.has_arrived(*nth as c_int), Ok(false));
        (0..self.partitions).filter(is_missing).collect()
    }

    pub fn has_arrived(&self, partition: c_int) -> Answer<bool> {
        let nth = checked(partition, self.partitions)?;
        if self.pattern.is_none() {
            return Ok(true);
        }
        let round = lock(&self.round);
        let sent = round.len();
        // Both divide the same bytes equally, so fractions determine which partitions overlap.
        let reach = nth * sent / self.partitions..((nth + 1) * sent).div_ceil(self.partitions);
        Ok(sent > 0 && round[reach].iter().all(|receiving| receiving.end.is_done()))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some((receiving, _)) = &self.partitioning {
            engine().release(receiving);
        }
    }
}

/// The receives of a round. If the round is given up, nothing may arrive any more in memory that is
/// released.
struct Posted(Vec<Arc<Receiving>>);

impl Drop for Posted {
    fn drop(&mut self) {
        self.0.iter().for_each(|receiving| engine().release(receiving));
    }
}

fn checked(partition: c_int, partitions: usize) -> Answer<usize> {
    match usize::try_from(partition) {
        Ok(nth) if nth < partitions => Ok(nth),
        _ => {
            let text = format!(
                "there is no partition {partition}: partitions are 0 to {}",
                partitions - 1
            );
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
    for outcome in all {
        match outcome.map(ended) {
            None => return Poll::Pending,
            Some(Err(failure)) => return Poll::Ready(Err(failure)),
            Some(Ok(())) => {}
        }
    }
    Poll::Ready(Ok(()))
}
