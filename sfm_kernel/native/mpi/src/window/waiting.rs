//! Taking locks and turns, ending operations and epochs: everything that waits.

use std::sync::atomic::{fence, Ordering::SeqCst};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::epoch::Held;
use super::lock::Lock;
use super::lock::Mode::{self, Exclusive};
use super::{lock, Window};
use crate::collective::barrier::barrier;
use crate::collective::presence::complete_described;
use crate::collective::team::Team;
use crate::data::Data;
use crate::engine::{
    self, engine, report, About, Alike, Collective, From, Mode as Sending, Pattern, Receiving, To,
};
use crate::errors::{fail, Answer};
use crate::handles::*;
use sfm_endpoint::sites::NOWHERE;

/// The number of yields before a process announces that it waits for a lock.
const TURNS: u32 = 32;

/// Tags between the processes of one window, apart from those of its collectives.
const POSTED: c_int = 0x7fff_fff1;
const COMPLETED: c_int = 0x7fff_fff2;

/// The result of a check: Ok if the wait is over, otherwise the rank that it waits for, if known.
pub type Checked = Result<(), Option<usize>>;

impl Window {
    /// Wait until `check` returns Ok. `rank`: the target, for observers.
    pub fn wait(&self, rank: Option<usize>, mut check: impl FnMut() -> Checked) -> Answer {
        let call = || {
            let rank = rank.map(|rank| ("rank", rank.to_string()));
            report::one_by_one(rank.into_iter().chain([("win", self.label())]).collect())
        };
        report::awaits(None);
        let now = || report::awaited_or(&self.comm.group.members);
        let about = About::receiving(From::Now(&now), &call);
        engine().wait(about, || {
            let missing = check();
            if let Err(rank) = missing {
                report::awaits(rank.map(|rank| self.process(rank)));
            }
            missing.is_ok()
        })
    }

    // ---- locks ----

    /// Take the lock of MPI_Win_lock.
    pub fn take(&self, rank: usize, mode: Mode) -> Answer {
        let (lock, rank_here) = (&self.control.block(rank).lock, self.rank());
        if lock.try_take(rank_here, mode) || taken_in_turns(lock, rank_here, mode) {
            return Ok(());
        }
        lock.announce(rank_here);
        let waited = self.wait(Some(rank), || match lock.try_take(rank_here, mode) {
            true => Ok(()),
            false => Err(lock.holder()),
        });
        lock.withdraw(rank_here);
        waited
    }

    /// Release it after everything that was written is visible.
    pub fn release_lock(&self, rank: usize, held: Held) {
        if held.is_taken {
            fence(SeqCst);
            for waiting in self.control.block(rank).lock.release(self.rank(), held.mode) {
                engine().nudge(self.process(waiting));
            }
        }
    }

    /// Take the right to combine elements of this rank's memory.
    ///
    /// Blocks while another process has it, which takes no longer than combining; it is an error if
    /// that process has died.
    pub fn turn(&self, rank: usize) -> Answer<Turn<'_>> {
        let (lock, rank_here) = (&self.control.block(rank).combining, self.rank());
        if !lock.try_take(rank_here, Exclusive) && !taken_in_turns(lock, rank_here, Exclusive) {
            self.wait_for_turn(lock, rank_here)?;
        }
        Ok(Turn { lock, rank_here })
    }

    #[cold]
    fn wait_for_turn(&self, lock: &Lock, rank_here: usize) -> Answer {
        let (mut pause, mut asked) = (Duration::from_micros(20), Instant::now());
        while !lock.try_take(rank_here, Exclusive) {
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
            if asked.elapsed() > Duration::from_millis(100) {
                asked = Instant::now();
                let holder = lock.holder().map(|rank| From::One(self.process(rank)));
                if let Some(dead) = holder.and_then(|holder| engine().lost_of(holder)) {
                    let text = format!("process {dead} has ended while it combined elements here");
                    return Err(fail(MPI_ERR_PROC_ABORTED, text));
                }
            }
        }
        Ok(())
    }

    // ---- operations ----

    /// Wait until all operations on this rank have ended, at the target, too.
    pub fn flush(&self, rank: usize) -> Answer {
        fence(SeqCst);
        self.outgoing.flush(self, rank)
    }

    pub fn flush_all(&self) -> Answer {
        (0..self.size()).try_for_each(|rank| self.flush(rank))
    }

    // ---- epochs with others ----

    pub fn fence(&self, what: Collective) -> Answer {
        self.flush_all()?;
        let team = Team::of(&self.comm, what);
        let call = || team.call_waiting(vec![("win", self.label())]);
        complete_described(&team, &call, barrier(&team))
    }

    /// Notify these ranks that they may access this process's memory.
    pub fn post(&self, ranks: &[usize]) {
        let coming = ranks.iter().map(|rank| self.expect_from(*rank, COMPLETED)).collect();
        *lock(&self.completed) = coming;
        ranks.iter().for_each(|rank| self.notify(*rank, POSTED));
    }

    /// Wait until these ranks have posted.
    pub fn start(&self, ranks: &[usize]) -> Answer {
        let coming: Vec<_> = ranks.iter().map(|rank| self.expect_from(*rank, POSTED)).collect();
        let waited = self.wait(None, || missing(&coming));
        if waited.is_err() {
            for receiving in &coming {
                engine().release(receiving);
            }
        }
        waited
    }

    /// Notify these ranks that the access epoch has ended.
    pub fn complete(&self, ranks: &[usize]) -> Answer {
        ranks.iter().try_for_each(|rank| self.flush(*rank))?;
        ranks.iter().for_each(|rank| self.notify(*rank, COMPLETED));
        Ok(())
    }

    /// Wait until all ranks to which the window was posted have completed.
    pub fn wait_completed(&self) -> Answer {
        let coming = lock(&self.completed).clone();
        self.wait(None, || missing(&coming))?;
        lock(&self.completed).clear();
        fence(SeqCst);
        Ok(())
    }

    /// True if all have completed; for a call that the program repeats until then.
    pub fn test_completed(&self) -> bool {
        engine().advance();
        let check = missing(&lock(&self.completed));
        match check {
            Ok(()) => {
                engine().poll_succeeded();
                lock(&self.completed).clear();
                fence(SeqCst);
            }
            Err(rank) => engine().poll_failed(|| {
                report::awaits(rank.map(|rank| self.process(rank)));
                report::one_by_one(vec![("win", self.label())])
            }),
        }
        check.is_ok()
    }

    /// Send a message that consists of its tag.
    fn notify(&self, rank: usize, tag: c_int) {
        let (context, rank) = (engine::collectives(self.comm.context), self.process(rank));
        let to = To {
            context,
            rank,
            source: self.comm.rank,
            tag,
            what: Collective::Message,
            mark: NOWHERE,
        };
        // SAFETY: the message has no bytes, so no memory has to stay valid.
        unsafe { engine().send(to, Sending::Standard, &Data::nothing()) };
    }

    fn expect_from(&self, rank: usize, tag: c_int) -> Arc<Receiving> {
        let context = engine::collectives(self.comm.context);
        let (source, from) = (rank as c_int, Some(self.process(rank)));
        let (what, alike) = (Collective::Message, Alike::default());
        let pattern = Pattern { context, source, tag, from, what, alike };
        // SAFETY: the message has no bytes, so nothing is written.
        unsafe { engine().receive(&pattern, Data::nothing()) }
    }
}

/// The source of the first message that has not come.
fn missing(coming: &[Arc<Receiving>]) -> Checked {
    match coming.iter().find(|receiving| !receiving.end.is_done()) {
        None => Ok(()),
        Some(receiving) => Err(Some(receiving.pattern.source as usize)),
    }
}

fn taken_in_turns(lock: &Lock, rank_here: usize, mode: Mode) -> bool {
    (0..TURNS).any(|_| {
        thread::yield_now();
        lock.try_take(rank_here, mode)
    })
}

/// The right to combine elements; released when it is dropped.
pub struct Turn<'a> {
    lock: &'a Lock,
    rank_here: usize,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let _no_rank_waits = self.lock.release(self.rank_here, Exclusive);
    }
}
