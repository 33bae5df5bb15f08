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
use super::presence::{complete, complete_described};
use super::reduce;
use super::team::{self, fits, other_call, Team, ANOTHER};
use crate::comm::Comm;
use crate::data::UserBuffer;
use crate::engine::{engine, report, About, What};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::op::{self, Kernel, Op};
use crate::process;

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
    let about = [team.number(), team.what as u64 | (contribution.bytes as u64) << 8];
    if contribution.enter(&mut open.tree, about) {
        open.tree.conclude();
        open.wake_others();
    } else if let Err(failure) = open.wait(team, contribution.bytes) {
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
pub fn by_messages(comm: &Comm, team: &Team, algorithm: impl Future<Output = Answer>) -> Answer {
    let slept = Cell::new(false);
    let call = || -> CallText {
        slept.set(true);
        report::collective()
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
        let mut same = waiting.filter(|(_, [number, _])| *number == team.number());
        let (rank, call) = same.next()?;
        (!tree.is_over()).then(|| mismatch_with(team, rank, call))
    }
}

impl OpenTree {
    fn wake_others(&self) {
        self.others.iter().for_each(|other| other.wake());
    }

    /// Wait until all have entered, or a process has broken the meeting off.
    fn wait(&self, team: &Team, bytes: usize) -> Answer {
        let tree = &self.tree;
        let slept = Cell::new(false);
        let mut wrong = Ok(());
        let missing = || tree.missing().into_iter().map(|rank| team.process(rank));
        let call = || {
            slept.set(true);
            report::collective_of(missing())
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
        Some((rank, what, _)) if what != team.what => Err(other_call(rank, what, team.what)),
        Some((.., sent)) => fits(ANOTHER, sent, bytes),
    }
}

/// The failure when all processes have entered, but with calls that differ.
fn mismatch_of_all(tree: &CombiningTree, team: &Team, ours: [u64; 2]) -> Failure {
    if let Err(failure) = other_message(team, (ours[1] >> 8) as usize) {
        return failure;
    }
    let differs = |rank: &usize| tree.cell(*rank).call != ours;
    let rank = (0..team.size).find(differs).unwrap_or(team.rank);
    mismatch_with(team, rank, tree.cell(rank).call)
}

/// The failure when a process has entered the tree with `call`, which is not this process's call.
fn mismatch_with(team: &Team, rank: usize, [number, about]: [u64; 2]) -> Failure {
    let (process, what) = (team.process(rank), What::of(about as u8));
    let name = process::named(process);
    if what != team.what {
        other_call(process, what, team.what)
    } else if number != team.number() {
        let which = if number > team.number() { "more" } else { "fewer" };
        let text = format!(
            "{name} calls {} after {} {which} collective calls than this process: all processes \
            of a communicator make the same collective calls in the same order",
            what.name(),
            number.abs_diff(team.number())
        );
        fail(MPI_ERR_OTHER, text)
    } else {
        let bytes = about >> 8;
        let text = format!("{name} has {bytes} bytes, which differs from the size");
        team::mismatch(MPI_ERR_COUNT, &text)
    }
}
