//! Epochs of windows: fence, post, start, complete, wait, locks, flushes.

use crate::checks::put;
use crate::engine::{self, Collective};
use crate::errors::{fail, Answer};
use crate::group;
use crate::handles::*;
use crate::latest::Used;
use crate::window::epoch::Held;
use crate::window::lock::Mode;
use crate::window::{self, Window};
use std::sync::atomic::{fence, Ordering::SeqCst};

/// Refuse assertions that the function does not take.
fn asserts(assert: c_int, known: &[(c_int, &str)]) -> Answer {
    let all = known.iter().fold(0, |all, (assertion, _)| all | assertion);
    if assert & !all == 0 {
        return Ok(());
    }
    let names: Vec<_> = known.iter().map(|(_, name)| *name).collect();
    let text = format!("argument assert is {assert}; give 0, or {} (or-ed)", names.join(", "));
    Err(fail(MPI_ERR_ASSERT, text))
}

const NOCHECK: (c_int, &str) = (MPI_MODE_NOCHECK, "MPI_MODE_NOCHECK");
const NOSTORE: (c_int, &str) = (MPI_MODE_NOSTORE, "MPI_MODE_NOSTORE");
const NOPUT: (c_int, &str) = (MPI_MODE_NOPUT, "MPI_MODE_NOPUT");
const NOPRECEDE: (c_int, &str) = (MPI_MODE_NOPRECEDE, "MPI_MODE_NOPRECEDE");
const NOSUCCEED: (c_int, &str) = (MPI_MODE_NOSUCCEED, "MPI_MODE_NOSUCCEED");

pub unsafe fn win_fence(assert: c_int, win: MPI_Win) -> Answer {
    let window = window::get(win)?;
    asserts(assert, &[NOSTORE, NOPUT, NOPRECEDE, NOSUCCEED])?;
    window.epochs().may_fence(assert)?;
    window.fence(Collective::Fence)?;
    let mut epochs = window.epochs();
    epochs.fenced(assert);
    epochs.accessed_by(engine::site());
    Ok(())
}

/// The ranks in the window of a group's processes.
fn ranks(window: &Window, group: MPI_Group) -> Answer<Vec<usize>> {
    let group = group::get(group)?;
    let rank_of = |member: &c_int| window.comm.group.rank_of(*member).map(|rank| rank as usize);
    let ranks: Option<Vec<_>> = group.members.iter().map(rank_of).collect();
    ranks.ok_or_else(|| {
        let text = format!("the group has processes that are not in {}", window.label());
        fail(MPI_ERR_GROUP, text)
    })
}

pub unsafe fn win_post(group: MPI_Group, assert: c_int, win: MPI_Win) -> Answer {
    let window = window::get(win)?;
    asserts(assert, &[NOCHECK, NOSTORE, NOPUT])?;
    let ranks = ranks(&window, group)?;
    window.epochs().post(ranks.clone())?;
    window.epochs().exposed_by(engine::site());
    window.post(&ranks);
    Ok(())
}

/// Blocks until all processes of the group have posted.
pub unsafe fn win_start(group: MPI_Group, assert: c_int, win: MPI_Win) -> Answer {
    let window = window::get(win)?;
    asserts(assert, &[NOCHECK])?;
    let ranks = ranks(&window, group)?;
    window.epochs().start(ranks.clone())?;
    window.epochs().accessed_by(engine::site());
    let started = window.start(&ranks);
    if started.is_err() {
        let _ = window.epochs().complete();
    }
    started
}

pub unsafe fn win_complete(win: MPI_Win) -> Answer {
    let window = window::get(win)?;
    let ranks = window.epochs().complete()?;
    window.complete(&ranks)
}

pub unsafe fn win_wait(win: MPI_Win) -> Answer {
    let window = window::get(win)?;
    window.epochs().exposed()?;
    let waited = window.wait_completed();
    window.epochs().end_exposure();
    waited
}

pub unsafe fn win_test(win: MPI_Win, flag: *mut c_int) -> Answer {
    let window = window::get(win)?;
    window.epochs().exposed()?;
    let is_over = window.test_completed();
    if is_over {
        window.epochs().end_exposure();
    }
    put("flag", flag, c_int::from(is_over))
}

/// A window that may be locked.
fn lockable(win: MPI_Win, assert: c_int) -> Answer<Used<Window>> {
    let window = window::get(win)?;
    asserts(assert, &[NOCHECK])?;
    if window.has_no_locks() {
        let text = format!(
            "{} was made with the hint no_locks; make it without that hint",
            window.label()
        );
        return Err(fail(MPI_ERR_RMA_SYNC, text));
    }
    Ok(window)
}

pub unsafe fn win_lock(lock_type: c_int, rank: c_int, assert: c_int, win: MPI_Win) -> Answer {
    let window = lockable(win, assert)?;
    let mode = match lock_type {
        MPI_LOCK_SHARED => Mode::Shared,
        MPI_LOCK_EXCLUSIVE => Mode::Exclusive,
        _ => {
            let text = format!(
                "argument lock_type is {lock_type}; give MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE"
            );
            return Err(fail(MPI_ERR_LOCKTYPE, text));
        }
    };
    if rank == MPI_PROC_NULL {
        return Ok(());
    }
    let rank = window.checked("rank", rank)?;
    let held = Held { mode, is_taken: assert & MPI_MODE_NOCHECK == 0 };
    window.epochs().lock(rank, held)?;
    window.epochs().accessed_by(engine::site());
    if held.is_taken {
        window.take(rank, mode).inspect_err(|_| drop(window.epochs().unlock(rank)))?;
    }
    Ok(())
}

pub unsafe fn win_unlock(rank: c_int, win: MPI_Win) -> Answer {
    let window = window::get(win)?;
    if rank == MPI_PROC_NULL {
        return Ok(());
    }
    let rank = window.checked("rank", rank)?;
    let held = window.epochs().unlock(rank)?;
    let flushed = window.flush(rank);
    window.release_lock(rank, held);
    flushed
}

pub unsafe fn win_lock_all(assert: c_int, win: MPI_Win) -> Answer {
    let window = lockable(win, assert)?;
    let held = Held { mode: Mode::Shared, is_taken: assert & MPI_MODE_NOCHECK == 0 };
    window.epochs().lock_all(held)?;
    window.epochs().accessed_by(engine::site());
    if !held.is_taken {
        return Ok(());
    }
    for rank in 0..window.size() {
        if let Err(failure) = window.take(rank, Mode::Shared) {
            (0..rank).for_each(|rank| window.release_lock(rank, held));
            let _ = window.epochs().unlock_all();
            return Err(failure);
        }
    }
    Ok(())
}

pub unsafe fn win_unlock_all(win: MPI_Win) -> Answer {
    let window = window::get(win)?;
    let held = window.epochs().unlock_all()?;
    let flushed = window.flush_all();
    (0..window.size()).for_each(|rank| window.release_lock(rank, held));
    flushed
}

pub unsafe fn win_flush(rank: c_int, win: MPI_Win) -> Answer {
    let window = window::get(win)?;
    if rank == MPI_PROC_NULL {
        return Ok(());
    }
    let rank = window.checked("rank", rank)?;
    window.epochs.flush(Some(rank))?;
    window.flush(rank)
}

pub unsafe fn win_flush_all(win: MPI_Win) -> Answer {
    let window = window::get(win)?;
    window.epochs.flush(None)?;
    window.flush_all()
}

pub unsafe fn win_sync(win: MPI_Win) -> Answer {
    window::get(win)?.epochs.flush(None)?;
    fence(SeqCst);
    Ok(())
}
