//! Barriers and small reductions of processes that share memory: they meet at a tree (core:
//! combining_tree/). Each writes what it has, whoever comes last at a node of a tree combines, and the last of
//! all wakes the others. Nobody sends a message, and where processes are more than cores each of
//! them sleeps and wakes once.
//!
//! A communicator gets its tree in one of its first such calls, in which its processes agree by
//! messages whether all of them could open it. Who leaves a meeting before its end (Stop, a
//! process that died, a deadlock that was ended) breaks the tree off for good; all others go on
//! by messages, in the same call, and the next ones make another tree.
//!
//! Calls that differ are told here as they are where messages go: who waits at the tree looks for
//! messages of the same number, and who waits for messages looks at the tree.

use std::cell::Cell;
use std::future::{poll_fn, Future};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Mutex, TryLockError};
use std::task::Poll;

use sfm_endpoint::calltext::Call as Told;
use sfm_native::combining_tree::fold::{Kind, ROOM};
use sfm_native::combining_tree::CombiningTree;
use sfm_native::segment::Segment;

use super::calls::Call;
use super::items::Items;
use super::reduce;
use super::team::{self, fits, other_call, whole, whole_told, Team, ANOTHER};
use crate::comm::Comm;
use crate::engine::{engine, told, About, What};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::op::{self, Kernel, Op};
use crate::process;

/// The processes agree on a tree in a call whose number leaves this rest when divided by `EVERY`: the
/// number is the same at all of them, whatever calls ended early. Before, few calls go by messages,
/// which is enough for most communicators; and `EVERY` has no factor in common with usual patterns.
const AGREEING: u64 = 3;
const EVERY: u64 = 7;

/// What a communicator knows of its tree. Locked while this process is in a meeting.
#[derive(Default)]
pub struct Meetings(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    None,
    /// Its processes do not share memory.
    Never,
    At(Place),
}

struct Place {
    tree: CombiningTree,
    others: Vec<Segment>,
}

/// What a process brings, and how that is combined.
#[derive(Default)]
struct Brought {
    bytes: usize,
    reduction: Option<Reduction>,
}

/// Of `count` items in the user's memory, which may be one and the same.
struct Reduction {
    from: *const u8,
    into: *mut u8,
    count: usize,
    kernel: Kernel,
}

impl Brought {
    /// None for a call that goes by messages; the same at all processes that make the same call.
    fn of(call: &Call) -> Option<Brought> {
        match call {
            Call::Barrier => Some(Brought::default()),
            Call::Allreduce { op, from, into } => Brought::reduced(op, from.as_ref(), into),
            _ => None,
        }
    }

    fn reduced(op: &Op, from: Option<&Items>, into: &Items) -> Option<Brought> {
        let bytes = into.bytes();
        if !(1..=ROOM).contains(&bytes) {
            return None;
        }
        let kernel = op.kernel(&into.datatype).ok()??;
        let from = from.unwrap_or(into).data().contiguous()?.cast_const();
        let (into, count) = (into.data().contiguous()?, into.count);
        Some(Brought { bytes, reduction: Some(Reduction { from, into, count, kernel }) })
    }

    /// Come to the tree with it; true for the last.
    fn enter(&self, tree: &mut CombiningTree, call: [u64; 2]) -> bool {
        let Some(Reduction { from, count, kernel, .. }) = &self.reduction else {
            return tree.enter_with(call, &[], |_, _| {});
        };
        // SAFETY: the user leaves the memory to the collective until it has ended.
        let own = unsafe { std::slice::from_raw_parts(*from, self.bytes) };
        tree.enter_with(call, own, |into, from| {
            if [into.len(), from.len()] == [self.bytes; 2] {
                // SAFETY: so many items each; cells are aligned to 32 bytes. What has a loop commutes.
                unsafe { kernel(from.as_ptr().cast(), into.as_mut_ptr().cast(), *count) };
            }
        })
    }

    fn take(&self, result: &[u8]) {
        let into = self.reduction.as_ref().map(|reduction| reduction.into);
        if let Some(into) = into.filter(|_| result.len() == self.bytes) {
            // SAFETY: the user's memory, of so many bytes.
            unsafe { std::ptr::copy_nonoverlapping(result.as_ptr(), into, result.len()) };
        }
    }
}

/// Meet for this call; None where it goes by messages.
pub fn meet(comm: &Comm, team: &Team, call: &Call) -> Option<Answer> {
    if team.size == 1 || team.near < team.size {
        return None;
    }
    let brought = Brought::of(call)?;
    let mut state = match comm.meetings.0.try_lock() {
        Ok(state) => state,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let text = "another thread, or what a signal's handler has interrupted, is in a \
                        collective call of this communicator: one at a time";
            return Some(Err(fail(MPI_ERR_OTHER, text)));
        }
    };
    if matches!(&*state, State::At(place) if place.tree.is_over()) {
        *state = State::None;
    }
    if matches!(&*state, State::None) && team.number() % EVERY == AGREEING {
        match agree(comm, team) {
            Ok(agreed) => *state = agreed,
            Err(failure) => return Some(Err(failure)),
        }
    }
    let State::At(place) = &mut *state else { return None };
    let about = [team.number(), team.what as u64 | (brought.bytes as u64) << 8];
    if brought.enter(&mut place.tree, about) {
        place.tree.conclude();
        place.wake_others();
    } else if let Err(failure) = place.wait(team, brought.bytes) {
        team.leave(&failure);
        return Some(Err(failure));
    }
    if place.tree.broken_by().is_some() {
        return None;
    }
    let result = place.tree.result();
    if result.kind() == Kind::Raw {
        brought.take(result.bytes());
        return Some(Ok(()));
    }
    Some(Err(differing(&place.tree, team, about)))
}

/// Run a collective that goes by messages; whoever it waits for may be at the tree.
pub fn by_messages(comm: &Comm, team: &Team, algorithm: impl Future<Output = Answer>) -> Answer {
    let slept = Cell::new(false);
    let call = || -> Told {
        slept.set(true);
        told::collective()
    };
    let mut algorithm = pin!(algorithm);
    let both = poll_fn(|context| match algorithm.as_mut().poll(context) {
        Poll::Pending if slept.take() => match comm.meetings.other_call(team) {
            None => Poll::Pending,
            Some(failure) => Poll::Ready(Err(failure)),
        },
        polled => polled,
    });
    whole_told(team, &call, both)
}

impl Meetings {
    /// Somebody waits at the tree in another call of this number.
    fn other_call(&self, team: &Team) -> Option<Failure> {
        let state = self.0.try_lock().ok()?;
        let State::At(Place { tree, .. }) = &*state else { return None };
        let waiting = (0..team.size).filter_map(|rank| Some((rank, tree.waits(rank)?)));
        let mut same = waiting.filter(|(_, [number, _])| *number == team.number());
        let (rank, call) = same.next()?;
        (!tree.is_over()).then(|| different(team, rank, call))
    }
}

impl Place {
    fn wake_others(&self) {
        self.others.iter().for_each(|other| other.wake());
    }

    /// Wait until all have come, or somebody has broken the meeting off.
    fn wait(&self, team: &Team, bytes: usize) -> Answer {
        let tree = &self.tree;
        let slept = Cell::new(false);
        let mut wrong = Ok(());
        let call = || {
            slept.set(true);
            let missing = tree.missing().into_iter().map(|rank| team.process(rank));
            told::collective_of(missing)
        };
        let members = team.members();
        let about = About { call: Some(&call), ..About::collective(&members.members) };
        let waited = engine().wait(about, || {
            let is_decided = tree.is_decided();
            if !is_decided {
                let messages = || if slept.take() { other_message(team, bytes) } else { Ok(()) };
                wrong = team.is_whole().and_then(|()| messages());
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

/// Open the tree, and hear whether all have.
fn agree(comm: &Comm, team: &Team) -> Answer<State> {
    let path = path(comm, team);
    let opened = open(team, &path);
    let team = Team::of(comm, team.what);
    let mut least = c_int::from(opened.is_some());
    let items = Items::of("least", (&raw mut least).cast(), 1, MPI_INT)?;
    // By few ways: rings take memory.
    let all = whole(&team, reduce::allreduce(&team, &op::get(MPI_MIN)?, &items));
    match (opened, all) {
        (Some(place), Ok(())) if least == 1 => Ok(State::At(place)),
        (opened, all) => {
            if let Some(mut place) = opened {
                place.tree.abandon(); // others may have agreed
                place.wake_others();
            }
            let _ = std::fs::remove_file(path);
            all.map(|()| State::Never)
        }
    }
}

/// None where memory is not shared with all, or lacks.
fn open(team: &Team, path: &Path) -> Option<Place> {
    let home = &*engine().endpoint;
    let others = (0..team.size).filter(|rank| *rank != team.rank);
    let others: Option<Vec<_>> = others.map(|rank| home.segment(team.process(rank))).collect();
    let (others, core, own) = (others?, home.core().clone(), home.uid(engine().rank));
    let fresh = path.with_extension(format!("{own:032x}.fresh"));
    Some(Place {
        tree: CombiningTree::open(core, path, &fresh, team.size, team.rank).ok()?,
        others,
    })
}

fn path(comm: &Comm, team: &Team) -> PathBuf {
    let home = &*engine().endpoint;
    let first = home.uid(team.process(0));
    home.folder().join(format!("{first:032x}-{:x}-{}.tree", comm.context, team.number()))
}

/// Err where another process has sent what this call of its number does not take.
fn other_message(team: &Team, bytes: usize) -> Answer {
    match team.other_message() {
        None => Ok(()),
        Some((rank, what, _)) if what != team.what => Err(other_call(rank, what, team.what)),
        Some((.., theirs)) => fits(ANOTHER, theirs, bytes),
    }
}

/// All have come, and made calls that differ.
fn differing(tree: &CombiningTree, team: &Team, own: [u64; 2]) -> Failure {
    if let Err(failure) = other_message(team, (own[1] >> 8) as usize) {
        return failure;
    }
    let differs = |rank: &usize| tree.cell(*rank).call != own;
    let rank = (0..team.size).find(differs).unwrap_or(team.rank);
    different(team, rank, tree.cell(rank).call)
}

/// A process has come to the tree with this call, which is not the one of this process.
fn different(team: &Team, rank: usize, [number, about]: [u64; 2]) -> Failure {
    let (process, what) = (team.process(rank), What::of(about as u8));
    let who = process::named(process);
    if what != team.what {
        other_call(process, what, team.what)
    } else if number != team.number() {
        let which = if number > team.number() { "more" } else { "fewer" };
        let text = format!(
            "{who} comes to {} with {} {which} collective calls behind it than this process: all \
             processes of a communicator make the same collective calls in the same order",
            what.name(),
            number.abs_diff(team.number())
        );
        fail(MPI_ERR_OTHER, text)
    } else {
        let bytes = about >> 8;
        let text = format!("{who} comes with {bytes} bytes, which are not those that are");
        team::mismatch(MPI_ERR_COUNT, &text)
    }
}
