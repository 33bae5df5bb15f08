//! The processes of one collective, and its messages.
//!
//! An algorithm is an `async fn` that lists in order what one process sends and receives, and
//! suspends where it has to wait. `complete` polls a blocking collective until it ends
//! (`presence`); a non-blocking one (`schedule`) is polled by any thread that is in an MPI call. So
//! each algorithm is written once.

use std::borrow::Cow;
use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::task::Poll;

use sfm_native::packet::Envelope;

use super::items::Items;
use super::mismatch::{checked, fits, other_call, refused, Caller, Sent};
use crate::comm::history::{self, BEGUN, LARGEST};
use crate::comm::sites::Sites;
use crate::comm::{self, Comm, FIRST};
use crate::counting;
use crate::data::Data;
use crate::engine::{
    self, engine, probed, report, Alike, Collective, Mode, Note, Pattern, Receiving, Sending, To,
};
use crate::errors::{Answer, Failure};
use crate::group::Group;
use crate::handles::*;
use crate::message::Message;

/// The processes that take part, and the envelope of this collective's messages.
#[derive(Clone)]
pub struct Team<'a> {
    pub rank: usize,
    pub size: usize,
    /// How many of them are in the local group. They come first; the remote group of an
    /// intercommunicator follows.
    pub near: usize,
    pub what: Collective,
    alike: Alike,
    /// As in the messages (`history`).
    mark: u32,
    pub(super) context: u64,
    /// The number of this collective on its communicator, equal at all processes.
    pub(super) tag: c_int,
    /// Borrowed of the communicator by a blocking call, which counts no reference.
    pub(super) group: Cow<'a, Arc<Group>>,
    /// None if all processes are at one site.
    pub sites: Option<Arc<Sites>>,
}

pub(super) const APART: c_int = 0x4000_0000;

/// A message being sent; None for one that needed no waiting.
#[must_use]
pub struct PendingSend(Option<Arc<Sending>>);

/// A message being received, and the mark of the call that receives it.
#[must_use]
pub struct PendingReceive(Arc<Receiving>, u32);

impl<'a> Team<'a> {
    /// The team of the next blocking collective of this communicator.
    pub fn of(comm: &'a Comm, what: Collective) -> Team<'a> {
        Team::called(comm, what, Alike::default())
    }

    /// The same, with arguments that all processes give alike.
    pub fn called(comm: &'a Comm, what: Collective, alike: Alike) -> Team<'a> {
        // Not in one step, which would take longer: a communicator has one such call at a time.
        let number = comm.collectives.load(Relaxed);
        comm.collectives.store(number.wrapping_add(1), Relaxed);
        Team::numbered(comm, what, alike, (number & LARGEST) as c_int)
    }

    /// The team of the next non-blocking collective. These have their own numbers, because they
    /// never match blocking ones.
    pub fn begun(comm: &Comm, what: Collective, alike: Alike) -> Team<'static> {
        let number = comm.begun.fetch_add(1, Relaxed) & LARGEST;
        let team = Team::numbered(comm, what, alike, number as c_int | BEGUN);
        let Team { rank, size, near, what, alike, mark, context, tag, sites, .. } = team;
        let group = Cow::Owned(team.group.into_owned());
        Team { rank, size, near, what, alike, mark, context, tag, group, sites }
    }

    fn numbered(comm: &'a Comm, what: Collective, alike: Alike, tag: c_int) -> Team<'a> {
        if counting::is_on() {
            counting::collective();
        }
        let (rank, context) = (comm.rank as usize, engine::collectives(comm.context));
        let (near, group) = (comm.group.members.len(), comm.everybody());
        let sites = comm.sites.get_or_init(|| Sites::of(comm)).clone();
        let (size, site) = (group.members.len(), engine::site());
        let (what, alike) = (what.exactly(), alike.passed(what, site));
        let mark = engine::mark(site, alike);
        comm.history.note(tag, what, mark);
        Team { rank, size, near, what, alike, mark, context, tag, group, sites }
    }

    /// A subset of the processes, with `rank` as this process's rank in it.
    pub fn subset(&self, group: Arc<Group>, rank: usize) -> Team<'a> {
        let (size, group) = (group.members.len(), Cow::Owned(group));
        Team { rank, size, near: size, group, sites: None, ..*self }
    }

    /// The processes with these ranks; this process is at `index` in the list.
    pub fn select(&self, ranks: &[usize], index: usize) -> Team<'a> {
        let members = ranks.iter().map(|rank| self.group.members[*rank]).collect();
        self.subset(Group::new(members), index)
    }

    /// The processes of the local group.
    pub fn side(&self) -> Team<'a> {
        self.subset(Group::new(self.group.members[..self.near].to_vec()), self.rank)
    }

    /// The ranks of the remote group of an intercommunicator.
    pub fn far(&self) -> Range<usize> {
        self.near..self.size
    }

    /// The team of processes that create a communicator alone; `tag` distinguishes such teams.
    pub fn apart(comm: &Comm, group: Arc<Group>, rank: usize, tag: c_int) -> Team<'static> {
        let team = Team::making(comm.context, group, rank, tag & LARGEST as c_int | APART);
        comm.history.note_apart(tag, team.what, team.mark);
        team
    }

    fn making(context: u64, group: Arc<Group>, rank: usize, tag: c_int) -> Team<'static> {
        let (size, context) = (group.members.len(), engine::collectives(context));
        let (what, alike) = (Collective::Making.exactly(), Alike::default());
        let mark = engine::mark(engine::site(), alike);
        let group = Cow::Owned(group);
        Team { rank, size, near: size, what, alike, mark, context, tag, group, sites: None }
    }

    /// The team of processes that have no communicator yet, but a string in common.
    pub fn without_comm(group: Arc<Group>, rank: usize, word: &str) -> Team<'static> {
        let mut hasher = DefaultHasher::new(); // gives the same hash in every process
        (word, &group.members).hash(&mut hasher);
        let tag = (hasher.finish() as u32 & LARGEST) as c_int;
        Team::making(FIRST, group, rank, tag)
    }

    /// The world rank of the process with this rank.
    pub fn process(&self, rank: usize) -> usize {
        self.group.members[rank] as usize
    }

    /// As in this call's messages (`history`).
    pub fn mark(&self) -> u32 {
        self.mark
    }

    /// The call, and the arguments that all processes give alike.
    pub fn call(&self) -> (Collective, Alike) {
        (self.what, self.alike)
    }

    /// The communicator; None for one that is being made.
    pub fn comm(&self) -> Option<Arc<Comm>> {
        comm::of_messages(engine::messages_of_collectives(self.context))
    }

    /// True if only some processes of the communicator make the call.
    pub fn is_apart(&self) -> bool {
        self.tag & APART != 0
    }

    /// The number of this collective on its communicator.
    pub fn number(&self) -> u64 {
        match self.is_apart() {
            true => history::apart(self.tag & !APART),
            false => self.tag as u64,
        }
    }

    /// The failure, if a message that has come for this call is of another one.
    pub fn contradicted(&self) -> Option<Failure> {
        let other = |envelope: &Envelope| {
            let is_ours = envelope.context == self.context && envelope.tag as c_int == self.tag;
            let note = Note::of(envelope);
            let pattern = Pattern { what: self.what, alike: self.alike, ..self.pattern(0) };
            (is_ours && pattern.contradicts(&note)).then(|| (note.rank, (note.what, note.alike())))
        };
        let (process, theirs) =
            engine().core.find_queued(|packet| packet.envelope().as_ref().and_then(other))?;
        let by = Caller::of((process, self.context, self.tag));
        Some(other_call(by, theirs, self.context, self.call(), self.mark))
    }

    /// Another message of this collective's number in the inbox: its sender, call, and bytes.
    pub fn other_message(&self) -> Option<(Sent, (Collective, Alike), usize)> {
        let (process, call, bytes) = engine().first_of(self.context, self.tag)?;
        Some(((process, self.context, self.tag), call, bytes))
    }

    /// Begin to send; the data must not change until it is sent.
    pub fn send(&self, dest: usize, data: &Data) -> PendingSend {
        // The world rank, because a team that is a subset has ranks of its own.
        let (rank, source) = (self.process(dest), engine().rank as c_int);
        let to = To {
            context: self.context,
            rank,
            source,
            tag: self.tag,
            what: self.what,
            mark: self.mark,
        };
        // SAFETY: a collective does not return before its messages are sent.
        PendingSend(unsafe { engine().send(to, Mode::Standard, data) })
    }

    /// Begin to receive; the message owns the memory until it is complete.
    pub fn receive(&self, source: usize, data: Data) -> PendingReceive {
        // SAFETY: a collective does not return before its messages are complete.
        PendingReceive(unsafe { engine().receive(&self.pattern(source), data) }, self.mark)
    }

    fn pattern(&self, source: usize) -> Pattern {
        let from = self.process(source);
        let (source, tag) = (from as c_int, self.tag);
        let (context, from) = (self.context, Some(from));
        Pattern { context, source, tag, from, what: self.what, alike: self.alike }
    }

    /// Receive a message from each of these ranks, whose lengths only the senders know.
    pub async fn take(&self, sources: &[usize]) -> Answer<Vec<Vec<u8>>> {
        let taking: Vec<_> =
            sources.iter().map(|source| Taking::new(self.pattern(*source), self.mark)).collect();
        let mut taken = Vec::new();
        let mut coming = Vec::new();
        for message in &taking {
            let length = message.length().await;
            let mut bytes = vec![0; length];
            coming.push(message.receive(Items::of_bytes(&mut bytes)?.data()));
            taken.push(bytes);
        }
        all_come(coming).await?;
        Ok(taken)
    }

    /// Send one message and receive one.
    pub async fn exchange(&self, dest: usize, out: &Data, source: usize, into: Data) -> Answer {
        let coming = self.receive(source, into);
        let going = self.send(dest, out);
        coming.come().await?;
        going.gone().await
    }
}

/// A message that is taken out of the inbox before it is received.
struct Taking {
    pattern: Pattern,
    message: Arc<Message>,
    /// See `Engine::take_message`.
    number: u64,
    mark: u32,
}

impl Taking {
    fn new(pattern: Pattern, mark: u32) -> Taking {
        let message = Message::to_come(MPI_COMM_NULL);
        let number = engine().take_message(&pattern, &message);
        Taking { pattern, message, number, mark }
    }

    /// Wait for the message; return its number of bytes.
    async fn length(&self) -> usize {
        let from = self.pattern.from.unwrap_or(engine().rank);
        let length = |(envelope, bytes)| probed(envelope, bytes).bytes() as usize;
        ended(from, || self.message.get().map(length)).await
    }

    /// Receive the message after `length` has returned.
    fn receive(&self, data: Data) -> PendingReceive {
        // SAFETY: a collective does not return before its messages are complete.
        let taken = unsafe { engine().receive_taken(&self.message, self.pattern.what, data) };
        PendingReceive(taken.shared(), self.mark)
    }
}

impl Drop for Taking {
    /// The collective has failed, or the message is received.
    fn drop(&mut self) {
        engine().leave_message(&self.pattern, self.number);
    }
}

impl PendingSend {
    pub async fn gone(self) -> Answer {
        let Some(sending) = &self.0 else { return Ok(()) };
        checked(ended(sending.dest, || sending.end.get()).await)
    }
}

impl Drop for PendingSend {
    /// The collective has failed: its memory is released, although the message may still be sent.
    fn drop(&mut self) {
        if let Some(sending) = self.0.take_if(|sending| !sending.end.is_done()) {
            sending.keep();
        }
    }
}

impl PendingReceive {
    pub async fn come(self) -> Answer {
        let from = self.0.pattern.from.unwrap_or(engine().rank);
        let outcome = ended(from, || self.0.end.get()).await;
        if outcome.code == MPI_ERR_OTHER {
            return Err(refused(&self.0.pattern, &outcome, self.1));
        }
        if outcome.code != MPI_ERR_TRUNCATE {
            checked(outcome)?;
        }
        let bytes = outcome.status.bytes().max(self.0.sent()) as usize;
        let sent = (from, self.0.pattern.context, self.0.pattern.tag);
        fits(|| Caller::of(sent), bytes, self.0.room())
    }
}

impl Drop for PendingReceive {
    /// The collective has failed: nothing may be written any more to memory that is released.
    fn drop(&mut self) {
        engine().release(&self.0);
    }
}

pub async fn all_gone(all: Vec<PendingSend>) -> Answer {
    for message in all {
        message.gone().await?;
    }
    Ok(())
}

pub async fn all_come(all: Vec<PendingReceive>) -> Answer {
    for message in all {
        message.come().await?;
    }
    Ok(())
}

/// Wait for the end of an operation; `partner` is the process (rank in the world) that has to act
/// for it.
pub(super) async fn ended<T>(partner: usize, end: impl Fn() -> Option<T>) -> T {
    poll_fn(|_| {
        let end = end();
        if end.is_none() {
            report::awaits(partner);
        }
        end.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}
