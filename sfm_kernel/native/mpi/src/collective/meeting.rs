//! Barriers and small reductions of processes that share memory: they meet at a board (core:
//! board/). Each writes what it has, whoever comes last at a node of a tree combines, and the last of
//! all wakes the others. Nobody sends a message, and where processes are more than cores each of
//! them sleeps and wakes once.
//!
//! A communicator has its board from its `AFTER`th such call on, in which its processes agree by
//! messages whether all of them could open it. Who leaves a meeting before its end (Stop, a
//! process that died, a deadlock that was ended) breaks the board off for good; all others go on
//! by messages, in the same call.
//!
//! Calls that differ are told here as they are where messages go: who waits at the board looks for
//! messages of the same number, and who waits for messages looks at the board.

use std::cell::Cell;
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::task::Poll;

use sfm_endpoint::calltext::Call as Told;
use sfm_native::board::fold::{Kind, ROOM};
use sfm_native::board::Board;
use sfm_native::sender::Sender;

use super::calls::Call;
use super::items::Items;
use super::team::{fits, other_call, other_number, other_size, whole, whole_told, Team};
use super::words;
use crate::comm::Comm;
use crate::engine::{engine, told, About, What};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::op::{Kernel, Op};

/// Calls that go by messages before: most communicators see few.
const AFTER: u32 = 3;

/// What a communicator knows of its board.
#[derive(Default)]
pub struct Meetings {
    calls: AtomicU32,
    /// None where its processes have none in common.
    place: OnceLock<Option<Place>>,
}

struct Place {
    board: Mutex<Board>,
    others: Vec<Arc<Sender>>,
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

    /// Come to the board with it; true for the last.
    fn enter(&self, board: &mut Board, call: [u64; 2]) -> bool {
        let Some(Reduction { from, count, kernel, .. }) = &self.reduction else {
            return board.enter_with(call, &[], |_, _| {});
        };
        // SAFETY: the user leaves the memory to the collective until it has ended.
        let own = unsafe { std::slice::from_raw_parts(*from, self.bytes) };
        board.enter_with(call, own, |into, from| {
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
    let place = match comm.meetings.place(comm, team) {
        Ok(place) => place?,
        Err(failure) => return Some(Err(failure)),
    };
    let mut board = match place.board.try_lock() {
        Ok(board) => board,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let text = "another thread, or what a signal's handler has interrupted, is in a \
                        collective call of this communicator: one at a time";
            return Some(Err(fail(MPI_ERR_OTHER, text)));
        }
    };
    if board.is_over() {
        return None;
    }
    let about = [team.number(), team.what as u64 | (brought.bytes as u64) << 8];
    if brought.enter(&mut board, about) {
        board.conclude();
        place.wake_others();
    } else if let Err(failure) = wait(&board, place, team, brought.bytes) {
        return Some(Err(failure));
    }
    if board.broken_by().is_some() {
        return None;
    }
    let result = board.result();
    if result.kind() == Kind::Raw {
        brought.take(result.bytes());
        return Some(Ok(()));
    }
    Some(Err(mismatch(&board, team, about)))
}

/// Wait until all have come, or somebody has broken the meeting off.
fn wait(board: &Board, place: &Place, team: &Team, bytes: usize) -> Answer {
    let slept = Cell::new(false);
    let mut wrong = Ok(());
    let call = || {
        slept.set(true);
        let missing = board.missing().into_iter().map(|rank| team.process(rank));
        told::collective_of(missing)
    };
    let members = team.members();
    let about = About { call: Some(&call), ..About::collective(&members.members) };
    let waited = engine().wait(about, || {
        if !board.is_decided() && slept.take() {
            wrong = other_message(team, bytes);
        }
        board.is_decided() || wrong.is_err()
    });
    let ended = waited.and(if board.is_decided() { Ok(()) } else { wrong });
    if ended.is_err() && board.break_off() {
        place.wake_others();
    }
    ended
}

/// Err where another process has sent what this call of its number does not take.
fn other_message(team: &Team, bytes: usize) -> Answer {
    match team.other_message() {
        None => Ok(()),
        Some((rank, what, _)) if what != team.what => Err(other_call(rank, what, team.what)),
        Some((.., theirs)) => fits("another process of the communicator", theirs, bytes),
    }
}

/// All have come, and made calls that differ.
fn mismatch(board: &Board, team: &Team, own: [u64; 2]) -> Failure {
    if let Err(failure) = other_message(team, (own[1] >> 8) as usize) {
        return failure;
    }
    let differs = |rank: &usize| board.cell(*rank).call != own;
    let rank = (0..team.size).find(differs).unwrap_or(team.rank);
    different(team, rank, board.cell(rank).call)
}

/// A process has come to the board with this call, which is not the one of this process.
fn different(team: &Team, rank: usize, [number, about]: [u64; 2]) -> Failure {
    let (process, what) = (team.process(rank), What::of(about as u8));
    if what != team.what {
        other_call(process, what, team.what)
    } else if number != team.number() {
        other_number(process, what, number as i64 - team.number() as i64)
    } else {
        other_size(process, about >> 8)
    }
}

/// Run a collective that goes by messages; whoever it waits for may be at the board.
pub fn by_messages(comm: &Comm, team: &Team, algorithm: impl Future<Output = Answer>) -> Answer {
    let Some(Some(place)) = comm.meetings.place.get() else { return whole(team, algorithm) };
    let slept = Cell::new(false);
    let call = || -> Told {
        slept.set(true);
        told::collective()
    };
    let mut algorithm = pin!(algorithm);
    let both = poll_fn(|context| match algorithm.as_mut().poll(context) {
        Poll::Pending if slept.take() => match place.other_call(team) {
            None => Poll::Pending,
            Some(failure) => Poll::Ready(Err(failure)),
        },
        polled => polled,
    });
    whole_told(team, &call, both)
}

impl Place {
    fn wake_others(&self) {
        self.others.iter().for_each(|other| other.wake_peer());
    }

    /// Somebody waits at the board in another call of this number.
    fn other_call(&self, team: &Team) -> Option<Failure> {
        let board = self.board.try_lock().ok()?;
        let waiting = (0..team.size).filter_map(|rank| Some((rank, board.waits(rank)?)));
        let mut same = waiting.filter(|(_, [number, _])| *number == team.number());
        let (rank, call) = same.next()?;
        (!board.is_over()).then(|| different(team, rank, call))
    }
}

impl Meetings {
    /// The place, where there is one by now.
    fn place(&self, comm: &Comm, team: &Team) -> Answer<Option<&Place>> {
        if let Some(place) = self.place.get() {
            return Ok(place.as_ref());
        }
        if self.calls.fetch_add(1, Relaxed) < AFTER {
            return Ok(None);
        }
        let agreed = agree(comm, team);
        let (place, answer) = match agreed {
            Ok(place) => (place, Ok(())),
            Err(failure) => (None, Err(failure)),
        };
        let place = self.place.get_or_init(|| place);
        answer.map(|()| place.as_ref())
    }
}

/// Open the board, and hear whether all have.
fn agree(comm: &Comm, team: &Team) -> Answer<Option<Place>> {
    let home = &*engine().endpoint;
    let (first, own) = (home.uid(team.process(0)), home.uid(engine().rank));
    let name = format!("{first:032x}-{:x}", comm.context);
    let path = home.folder().join(format!("{name}.board"));
    let fresh = home.folder().join(format!("{name}-{own:032x}.fresh"));
    let others = (0..team.size).filter(|rank| *rank != team.rank);
    let others: Option<Vec<_>> = others.map(|rank| engine().sender(team.process(rank))).collect();
    let open = || Board::open(home.core().clone(), &path, &fresh, team.size, team.rank).ok();
    let opened = others.and_then(|others| Some((others, open()?)));
    let team = Team::of(comm, team.what);
    let all = whole(&team, words::one_of_each(&team, opened.is_some()));
    let has_everybody = all.as_ref().is_ok_and(|all| all.iter().all(|one| *one));
    if !has_everybody {
        let _ = std::fs::remove_file(&path);
        if let Some((others, mut board)) = opened {
            board.abandon(); // others may have agreed
            others.iter().for_each(|other| other.wake_peer());
        }
        return all.map(|_| None);
    }
    Ok(opened.map(|(others, board)| Place { board: Mutex::new(board), others }))
}
