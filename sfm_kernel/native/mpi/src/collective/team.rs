//! The processes of one collective, and its messages.
//!
//! An algorithm is an `async fn`: it says in order what one process sends and receives, and stops
//! where it has to wait. A blocking collective polls it until it is done (`whole`); a non-blocking
//! one is polled by whoever is in a call of MPI (`schedule`). So each algorithm is written once.

use std::cmp::Ordering;
use std::future::{poll_fn, Future};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sfm_endpoint::calltext::Call;
use sfm_endpoint::sites::NOWHERE;

use super::items::Items;
use super::sites::Sites;
use crate::comm::Comm;
use crate::data::Data;
use crate::engine::{
    self, engine, probed, told, About, Mode, Outcome, Receiving, Sending, To, Wanted, What,
};
use crate::errors::{fail, Answer, Failure, INTERRUPTED};
use crate::group::Group;
use crate::handles::*;
use crate::message::Message;
use crate::tool::counting;
use crate::{making, process};

/// Who takes part, and which messages are this collective's.
#[derive(Clone)]
pub struct Team {
    pub rank: usize,
    pub size: usize,
    /// How many of them are on this process's side. They come first; others follow only where the
    /// communicator is an intercommunicator.
    pub near: usize,
    pub what: What,
    context: u64,
    /// Which collective of the communicator it is: the same number at all of them.
    tag: c_int,
    group: Arc<Group>,
    /// Where there are several.
    pub sites: Option<Arc<Sites>>,
}

/// Numbers of collectives; those of a communicator come again after so many.
const LARGEST: u32 = 0x1fff_ffff;
const BEGUN: c_int = 0x2000_0000;
const APART: c_int = 0x4000_0000;

/// A message that is under way; nothing for one that has gone.
#[must_use]
pub struct Going(Option<Arc<Sending>>);

/// One that is to come.
#[must_use]
pub struct Coming(Arc<Receiving>);

impl Team {
    /// For the next collective of this communicator.
    pub fn of(comm: &Comm, what: What) -> Team {
        let number = comm.collectives.fetch_add(1, Relaxed) & LARGEST;
        Team::numbered(comm, what, number as c_int)
    }

    /// The same for one that does not block. These are counted by themselves, as blocking ones never
    /// match them.
    pub fn begun(comm: &Comm, what: What) -> Team {
        let number = comm.begun.fetch_add(1, Relaxed) & LARGEST;
        Team::numbered(comm, what, number as c_int | BEGUN)
    }

    fn numbered(comm: &Comm, what: What, tag: c_int) -> Team {
        if counting::is_on() {
            counting::collective();
        }
        let (rank, context) = (comm.rank as usize, engine::collectives(comm.context));
        let (near, group) = (comm.group.members.len(), comm.everybody());
        let sites = comm.sites.get_or_init(|| Sites::of(comm)).clone();
        Team { rank, size: group.members.len(), near, what, context, tag, group, sites }
    }

    /// Some of the same collective's processes, this one of rank `rank` among them.
    pub fn part(&self, group: Arc<Group>, rank: usize) -> Team {
        let size = group.members.len();
        Team { rank, size, near: size, group, sites: None, ..*self }
    }

    /// Those of these ranks, this process the one that is at `place` among them.
    pub fn picked(&self, ranks: &[usize], place: usize) -> Team {
        let members = ranks.iter().map(|rank| self.group.members[*rank]).collect();
        self.part(Group::new(members), place)
    }

    /// All of them.
    pub fn members(&self) -> Arc<Group> {
        self.group.clone()
    }

    /// Those of this process's side.
    pub fn side(&self) -> Team {
        self.part(Group::new(self.group.members[..self.near].to_vec()), self.rank)
    }

    /// Those of the other side of an intercommunicator.
    pub fn far(&self) -> Range<usize> {
        self.near..self.size
    }

    /// Those who make a communicator by themselves, told from others that do so by a tag.
    pub fn apart(comm: &Comm, group: Arc<Group>, rank: usize, tag: c_int) -> Team {
        let context = engine::collectives(comm.context);
        let (size, tag) = (group.members.len(), tag & LARGEST as c_int | APART);
        Team { rank, size, near: size, what: What::Making, context, tag, group, sites: None }
    }

    /// Those who have no communicator yet, but a word in common.
    pub fn without_comm(group: Arc<Group>, rank: usize, word: &str) -> Team {
        let mut hasher = DefaultHasher::new(); // the same in every process
        (word, &group.members).hash(&mut hasher);
        let tag = (hasher.finish() as u32 & LARGEST) as c_int;
        let (size, context) = (group.members.len(), engine::collectives(making::FIRST));
        Team { rank, size, near: size, what: What::Making, context, tag, group, sites: None }
    }

    /// The number of the process that has this rank.
    pub fn process(&self, rank: usize) -> usize {
        self.group.members[rank] as usize
    }

    /// Which of the communicator's collectives it is.
    pub fn number(&self) -> u64 {
        self.tag as u64
    }

    /// The call has failed here. That it was interrupted only this process knows, and tells.
    pub fn leave(&self, why: &Failure) {
        if why.code == INTERRUPTED && self.tag & (BEGUN | APART) == 0 {
            let (context, number) = (self.context, self.tag as u32);
            engine().leave_call(self.what, context, number, &self.group.members);
        }
    }

    /// Err where another process has left it.
    pub fn is_whole(&self) -> Answer {
        let Some(left) = engine().who_left(self.context, self.tag as u32) else { return Ok(()) };
        if left.what != self.what {
            return Err(other_call(left.rank, left.what, self.what));
        }
        let text = format!(
            "{} was interrupted in this call and has left it, so that it cannot come to its end",
            process::named(left.rank)
        );
        Err(fail(MPI_ERR_OTHER, text))
    }

    /// Another message of this collective's number that waits here: whose, of which call, and how
    /// many bytes.
    pub fn other_message(&self) -> Option<(usize, What, usize)> {
        engine().first_of(self.context, self.tag)
    }

    /// Begin to send; the data stays as it is until it has gone.
    pub fn send(&self, dest: usize, data: &Data) -> Going {
        // Its own number: a part of a collective's processes counts differently.
        let (rank, source) = (self.process(dest), engine().rank as c_int);
        let to = To {
            context: self.context,
            rank,
            source,
            tag: self.tag,
            what: self.what,
            site: NOWHERE,
        };
        // SAFETY: a collective does not return before its messages have gone.
        Going(unsafe { engine().send(to, Mode::Standard, data) })
    }

    /// Begin to receive; the memory is the message's until it has come.
    pub fn receive(&self, source: usize, data: Data) -> Coming {
        // SAFETY: a collective does not return before its messages have come.
        Coming(unsafe { engine().receive(&self.wanted(source), data) })
    }

    fn wanted(&self, source: usize) -> Wanted {
        let from = self.process(source);
        let (source, tag) = (from as c_int, self.tag);
        Wanted { context: self.context, source, tag, from: Some(from), what: self.what }
    }

    /// Receive a message of each of these, of which only the sender knows how long it is.
    pub async fn take(&self, sources: &[usize]) -> Answer<Vec<Vec<u8>>> {
        let taking: Vec<_> =
            sources.iter().map(|source| Taking::new(self.wanted(*source))).collect();
        let mut taken = Vec::new();
        let mut coming = Vec::new();
        for one in &taking {
            let length = one.length().await;
            let mut bytes = vec![0; length];
            coming.push(one.receive(Items::own(&mut bytes)?.data()));
            taken.push(bytes);
        }
        all_come(coming).await?;
        Ok(taken)
    }

    /// Send one and receive one.
    pub async fn exchange(&self, dest: usize, out: &Data, source: usize, into: Data) -> Answer {
        let coming = self.receive(source, into);
        let going = self.send(dest, out);
        coming.come().await?;
        going.gone().await
    }
}

fn checked(outcome: Outcome) -> Answer {
    match outcome.code {
        MPI_SUCCESS => Ok(()),
        MPI_ERR_TRUNCATE => Err(mismatch(
            MPI_ERR_TRUNCATE,
            "another process of the communicator sends more than is",
        )),
        code => Err(fail(code, "another process of the communicator has ended")),
    }
}

/// A process makes another call than `own`.
pub fn other_call(rank: usize, theirs: What, own: What) -> Failure {
    let text = format!(
        "{} calls {} where this one calls {}: all processes of a communicator make the same \
         collective calls in the same order",
        process::named(rank),
        theirs.name(),
        own.name()
    );
    fail(MPI_ERR_OTHER, text)
}

/// A sender that the text does not name.
pub const ANOTHER: &str = "another process of the communicator";

/// All processes say the same of what goes from one to another: an error where `bytes` of what
/// `who` sends go where `room` is for more or less.
pub fn fits(who: &str, bytes: usize, room: usize) -> Answer {
    let code = match bytes.cmp(&room) {
        Ordering::Equal => return Ok(()),
        Ordering::Less => MPI_ERR_COUNT,
        Ordering::Greater => MPI_ERR_TRUNCATE,
    };
    Err(mismatch(code, &format!("{who} sends {bytes} bytes where {room} are")))
}

pub fn mismatch(code: c_int, what: &str) -> Failure {
    let text = format!(
        "{what} expected here: do all call the same collective, with counts and datatypes that fit?"
    );
    fail(code, text)
}

/// One that is to come, taken out of the queue before it is received.
struct Taking {
    wanted: Wanted,
    message: Arc<Message>,
    /// See `Engine::take_message`.
    number: u64,
}

impl Taking {
    fn new(wanted: Wanted) -> Taking {
        let message = Message::to_come(MPI_COMM_NULL);
        let number = engine().take_message(&wanted, &message);
        Taking { wanted, message, number }
    }

    /// How many bytes it has, when it has come.
    async fn length(&self) -> usize {
        let from = self.wanted.from.unwrap_or(engine().rank);
        let length = |(envelope, bytes)| probed(envelope, bytes).bytes() as usize;
        ended(from, || self.message.get().map(length)).await
    }

    /// Receive it, after that.
    fn receive(&self, data: Data) -> Coming {
        // SAFETY: as of those that `Team::receive` receives.
        Coming(unsafe { engine().receive_taken(&self.message, self.wanted.what, data) })
    }
}

impl Drop for Taking {
    /// The collective has failed, or it has come.
    fn drop(&mut self) {
        engine().leave_message(&self.wanted, self.number);
    }
}

impl Going {
    pub async fn gone(self) -> Answer {
        let Some(sending) = &self.0 else { return Ok(()) };
        checked(ended(sending.dest, || sending.end.get()).await)
    }
}

impl Drop for Going {
    /// The collective has failed: its memory is given back, and the message may still go.
    fn drop(&mut self) {
        if let Some(sending) = self.0.take_if(|sending| !sending.end.is_done()) {
            sending.keep();
        }
    }
}

impl Coming {
    pub async fn come(self) -> Answer {
        let from = self.0.wanted.from.unwrap_or(engine().rank);
        let outcome = ended(from, || self.0.end.get()).await;
        if outcome.code == MPI_ERR_OTHER {
            let (rank, theirs) = (outcome.status.MPI_SOURCE, outcome.status.MPI_TAG);
            return Err(other_call(rank as usize, What::of(theirs as u8), self.0.wanted.what));
        }
        checked(outcome)?;
        let bytes = outcome.status.bytes() as usize;
        fits(ANOTHER, bytes, self.0.room())
    }
}

impl Drop for Coming {
    /// The collective has failed: nothing may come any more into memory that is given back.
    fn drop(&mut self) {
        if !self.0.end.is_done() && !engine().take_back(&self.0, Outcome::cancelled()) {
            engine().abandon(&self.0);
        }
    }
}

/// All of them.
pub async fn all_gone(all: Vec<Going>) -> Answer {
    for one in all {
        one.gone().await?;
    }
    Ok(())
}

pub async fn all_come(all: Vec<Coming>) -> Answer {
    for one in all {
        one.come().await?;
    }
    Ok(())
}

/// How it has ended; `partner`: who has to do something for that, in the world.
async fn ended<T>(partner: usize, end: impl Fn() -> Option<T>) -> T {
    poll_fn(|_| {
        let end = end();
        if end.is_none() {
            told::awaits(partner);
        }
        end.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Run an algorithm to its end.
pub fn whole<T>(team: &Team, algorithm: impl Future<Output = Answer<T>>) -> Answer<T> {
    whole_told(team, &told::collective, algorithm)
}

/// The same; `call`: what observers are told of it.
pub fn whole_told<T>(
    team: &Team,
    call: &dyn Fn() -> Call,
    algorithm: impl Future<Output = Answer<T>>,
) -> Answer<T> {
    let mut algorithm = pin!(algorithm);
    let mut context = Context::from_waker(Waker::noop());
    let mut result = Poll::Pending;
    let about = About { call: Some(call), ..About::collective(&team.group.members) };
    let waited = engine().wait(about, || {
        result = algorithm.as_mut().poll(&mut context);
        if result.is_pending() {
            if let Err(failure) = team.is_whole() {
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
