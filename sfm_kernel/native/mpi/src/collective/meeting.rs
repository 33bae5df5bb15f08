//! Barriers and small reductions of processes that share memory meet at a tree (core:
//! combining_tree/). Each process writes its operand there; the last to arrive at a node combines
//! the operands, and the last of all wakes the others. No process sends a message, and if there are
//! more processes than cores, each sleeps and wakes once.
//!
//! A communicator gets its tree in one of its first such calls, in which its processes agree by
//! messages whether all of them could open it. A process that leaves a meeting early (Stop, a dead
//! process, a deadlock that was ended) breaks the tree off for good. All others finish the same
//! call by messages, and later calls make another tree.
//!
//! Mismatched collective calls are reported here as they are with messages: a process that waits at
//! the tree checks for messages of the same call number, and a process that waits for messages
//! checks the tree.

use std::cell::Cell;
use std::future::{poll_fn, Future};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Mutex, TryLockError};
use std::task::Poll;

use sfm_endpoint::calltext::Call as CallText;
use sfm_native::combining_tree::fold::{Kind, ROOM};
use sfm_native::combining_tree::CombiningTree;
use sfm_native::segment::Segment;

use super::calls::Call;
use super::items::Items;
use super::mismatch::{self, fits, other_call, Caller};
use super::presence::{complete, complete_described};
use super::reduce;
use super::team::Team;
use crate::comm::Comm;
use crate::data::UserBuffer;
use crate::engine::report::Arguments;
use crate::engine::{engine, origin, report, About, Alike, What};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::op::{self, Kernel, Op};

/// The processes agree on a tree in a call whose number leaves this remainder when divided by
/// `EVERY`. All processes have the same call number, whatever calls ended early. Only few calls
/// before it go by messages, which is enough for most communicators; and `EVERY` has no factor in
/// common with the usual patterns of calls.
const AGREEING: u64 = 3;
const EVERY: u64 = 7;

/// A communicator's tree. Locked while this process is in a meeting.
#[derive(Default)]
pub struct Meetings(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    None,
    /// The processes do not share memory.
    Never,
    At(OpenTree),
}

struct OpenTree {
    tree: CombiningTree,
    others: Vec<Segment>,
}

/// A process's operand, and how operands are combined.
#[derive(Default)]
struct Contribution {
    bytes: usize,
    reduction: Option<Reduction>,
}

/// `count` items in the user's memory; `from` and `into` may be equal.
struct Reduction {
    from: *const u8,
    into: *mut u8,
    count: usize,
    kernel: Kernel,
}

impl Contribution {
    /// None for a call that goes by messages. All processes that make the same call get the same
    /// answer.
    fn of(call: &Call) -> Option<Contribution> {
        match call {
            Call::Barrier => Some(Contribution::default()),
            Call::Allreduce { op, from, into } => Contribution::reduced(op, from.as_ref(), into),
            _ => None,
        }
    }

    fn reduced(op: &Op, from: Option<&Items>, into: &Items) -> Option<Contribution> {
        let bytes = into.bytes();
        if !(1..=ROOM).contains(&bytes) {
            return None;
        }
        let kernel = op.kernel(&into.datatype).ok()??;
        let from = from.unwrap_or(into).data().contiguous()?.cast_const();
        let (into, count) = (into.data().contiguous()?, into.count);
        Some(Contribution { bytes, reduction: Some(Reduction { from, into, count, kernel }) })
    }

    /// Enter the tree with this operand; true for the last process.
    fn enter(&self, tree: &mut CombiningTree, call: [u64; 2]) -> bool {
        let Some(Reduction { from, count, kernel, .. }) = &self.reduction else {
            return tree.enter_with(call, &[], |_, _| {});
        };
        // SAFETY: the user leaves the memory to the collective until it has ended.
        let operand = unsafe { std::slice::from_raw_parts(*from, self.bytes) };
        tree.enter_with(call, operand, |into, from| {
            if [into.len(), from.len()] == [self.bytes; 2] {
                // SAFETY: both hold `count` items, and cells are aligned to 32 bytes. Every
                // operation with a kernel commutes.
                unsafe { kernel(from.as_ptr().cast(), into.as_mut_ptr().cast(), *count) };
            }
        })
    }

    fn take(&self, result: &[u8]) {
        let into = self.reduction.as_ref().map(|reduction| reduction.into);
        if let Some(into) = into.filter(|_| result.len() == self.bytes) {
            // SAFETY: the user's memory, of exactly this many bytes.
            unsafe { std::ptr::copy_nonoverlapping(result.as_ptr(), into, result.len()) };
        }
    }
}

/// Run this call at the tree; None if it goes by messages.
pub fn meet(comm: &Comm, team: &Team, call: &Call) -> Option<Answer> {
    if team.size == 1 || team.near < team.size {
        return None;
    }
    let contribution = Contribution::of(call)?;
    let mut state = match comm.meetings.0.try_lock() {
        Ok(state) => state,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let text = "another thread, or code that a signal handler has interrupted, is in a \
                collective call of this communicator, which allows one at a time";
            return Some(Err(fail(MPI_ERR_OTHER, text)));
        }
    };
    if matches!(&*state, State::At(open) if open.tree.is_over()) {
        *state = State::None;
    }
    if matches!(&*state, State::None) && team.number() % EVERY == AGREEING {
        match agree(comm, team) {
            Ok(agreed) => *state = agreed,
            Err(failure) => return Some(Err(failure)),
        }
    }
    let State::At(open) = &mut *state else { return None };
    let about = about(team, contribution.bytes);
    if contribution.enter(&mut open.tree, about) {
        open.tree.conclude();
        open.wake_others();
    } else if let Err(failure) = open.wait(team, contribution.bytes, || call.arguments()) {
        team.leave(&failure);
        return Some(Err(failure));
    }
    if open.tree.broken_by().is_some() {
        return None;
    }
    let result = open.tree.result();
    if result.kind() == Kind::Raw {
        contribution.take(result.bytes());
        return Some(Ok(()));
    }
    Some(Err(mismatch_of_all(&open.tree, team, about)))
}

/// Run a collective that goes by messages, while the processes it waits for may be at the tree.
///
/// `arguments`: of the call, for observers.
pub fn by_messages(
    comm: &Comm,
    team: &Team,
    arguments: impl Fn() -> Arguments,
    algorithm: impl Future<Output = Answer>,
) -> Answer {
    let slept = Cell::new(false);
    let call = || -> CallText {
        slept.set(true);
        report::collective(team, arguments())
    };
    let mut algorithm = pin!(algorithm);
    let both = poll_fn(|context| match algorithm.as_mut().poll(context) {
        Poll::Pending if slept.take() => match comm.meetings.other_call(team) {
            None => Poll::Pending,
            Some(failure) => Poll::Ready(Err(failure)),
        },
        polled => polled,
    });
    complete_described(team, &call, both)
}

impl Meetings {
    /// The failure, if a process waits at the tree in a different call of this number.
    fn other_call(&self, team: &Team) -> Option<Failure> {
        let state = self.0.try_lock().ok()?;
        let State::At(OpenTree { tree, .. }) = &*state else { return None };
        let waiting = (0..team.size).filter_map(|rank| Some((rank, tree.waits(rank)?)));
        let mut same = waiting.filter(|(_, about)| number_of(*about) == team.number());
        let (rank, call) = same.next()?;
        (!tree.is_over()).then(|| mismatch_with(team, rank, call, None))
    }
}

impl OpenTree {
    fn wake_others(&self) {
        self.others.iter().for_each(|other| other.wake());
    }

    /// Wait until all have entered, or a process has broken the meeting off.
    fn wait(&self, team: &Team, bytes: usize, arguments: impl Fn() -> Arguments) -> Answer {
        let tree = &self.tree;
        let slept = Cell::new(false);
        let mut wrong = Ok(());
        let missing = || tree.missing().into_iter().map(|rank| team.process(rank));
        let call = || {
            slept.set(true);
            report::collective_of(team, arguments(), missing())
        };
        // If none is missing, the one that had to complete the round may have ended.
        let now = || match missing().collect::<Vec<_>>() {
            none if none.is_empty() => (0..team.size).map(|rank| team.process(rank)).collect(),
            missing => missing,
        };
        report::awaits(None);
        let waited = engine().wait(About::collective(&now, &call), || {
            let is_decided = tree.is_decided();
            if !is_decided {
                let messages = || if slept.take() { other_message(team, bytes) } else { Ok(()) };
                wrong = team.check_presence().and_then(|()| messages());
            }
            is_decided || wrong.is_err()
        });
        let ended = waited.and(if tree.is_decided() { Ok(()) } else { wrong });
        if ended.is_err() && tree.break_off() {
            self.wake_others();
        }
        ended
    }
}

const ALIKE_AT: u32 = 32;
const BYTES_AT: u32 = 8;

/// A call at the tree: its number and arguments, its kind and bytes.
fn about(team: &Team, bytes: usize) -> [u64; 2] {
    let (what, alike) = team.call();
    let first = team.number() | u64::from(alike.word()) << ALIKE_AT;
    [first, what as u64 | (bytes as u64) << BYTES_AT]
}

fn number_of(about: [u64; 2]) -> u64 {
    about[0] & ((1 << ALIKE_AT) - 1)
}

/// True if two calls cannot be the same.
fn differ(one: (What, Alike), other: (What, Alike)) -> bool {
    one.0 != other.0 || one.1.differs(other.1)
}

/// Open the tree, and agree whether every process could.
fn agree(comm: &Comm, team: &Team) -> Answer<State> {
    let path = path(comm, team);
    let opened = open(team, &path);
    let team = Team::of(comm, team.what);
    let mut least = c_int::from(opened.is_some());
    let items = UserBuffer::new("least", (&raw mut least).cast(), 1, MPI_INT).items()?;
    // Recursive doubling uses few routes; rings take memory.
    let all = complete(&team, reduce::allreduce(&team, &op::get(MPI_MIN)?, &items));
    match (opened, all) {
        (Some(open), Ok(())) if least == 1 => Ok(State::At(open)),
        (opened, all) => {
            if let Some(mut open) = opened {
                open.tree.abandon(); // the others may have agreed
                open.wake_others();
            }
            let _ = std::fs::remove_file(path);
            all.map(|()| State::Never)
        }
    }
}

/// None if this process does not share memory with all others, or if memory is short.
fn open(team: &Team, path: &Path) -> Option<OpenTree> {
    let home = &*engine().endpoint;
    let others = (0..team.size).filter(|rank| *rank != team.rank);
    let others: Option<Vec<_>> = others.map(|rank| home.segment(team.process(rank))).collect();
    let (others, core, uid) = (others?, home.core().clone(), home.uid(engine().rank));
    let fresh = path.with_extension(format!("{uid:032x}.fresh"));
    Some(OpenTree {
        tree: CombiningTree::open(core, path, &fresh, team.size, team.rank).ok()?,
        others,
    })
}

fn path(comm: &Comm, team: &Team) -> PathBuf {
    let home = &*engine().endpoint;
    let first = home.uid(team.process(0));
    home.folder().join(format!("{first:032x}-{:x}-{}.tree", comm.context, team.number()))
}

/// Err if another process has sent a message of this call number that does not fit this call.
fn other_message(team: &Team, bytes: usize) -> Answer {
    match team.other_message() {
        None => Ok(()),
        Some((sent, theirs, _)) if differ(theirs, team.call()) => {
            Err(other_call(&Caller::of(sent), theirs, team.call(), team.mark()))
        }
        Some((sent, _, length)) => fits(|| Caller::of(sent), length, bytes),
    }
}

/// The failure when all processes have entered, but with calls that differ.
fn mismatch_of_all(tree: &CombiningTree, team: &Team, ours: [u64; 2]) -> Failure {
    let bytes = (ours[1] >> BYTES_AT) as usize;
    if let Err(failure) = other_message(team, bytes) {
        return failure;
    }
    let differs = |rank: &usize| tree.cell(*rank).call != ours;
    let rank = (0..team.size).find(differs).unwrap_or(team.rank);
    mismatch_with(team, rank, tree.cell(rank).call, Some(bytes))
}

/// The failure when a process has entered the tree with `call`, which is not this process's call;
/// `bytes`: of this one, if it is at the tree.
fn mismatch_with(team: &Team, rank: usize, about: [u64; 2], bytes: Option<usize>) -> Failure {
    let (process, number) = (team.process(rank), number_of(about));
    let what = What::of(about[1] as u8);
    let theirs = (what, Alike::of((about[0] >> ALIKE_AT) as u32));
    // It still waits in that call, unless all have entered.
    let at = if bytes.is_none() { origin::of_blocked(process) } else { String::new() };
    let by = Caller::new(process, at);
    if what != team.what || number == team.number() && differ(theirs, team.call()) {
        other_call(&by, theirs, team.call(), team.mark())
    } else if number != team.number() {
        let which = if number > team.number() { "more" } else { "fewer" };
        let text = format!(
            "{} after {} {which} collective calls than this process: all processes of a \
            communicator make the same collective calls in the same order",
            by.calls(what, theirs.1),
            number.abs_diff(team.number())
        );
        fail(MPI_ERR_OTHER, text)
    } else {
        let theirs = (about[1] >> BYTES_AT) as usize;
        let here = bytes.map_or("others".into(), |bytes| bytes.to_string());
        let text = by.sends(theirs, here);
        mismatch::mismatch(MPI_ERR_COUNT, &text)
    }
}
