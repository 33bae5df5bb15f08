//! Taking locks and turns, ending operations and epochs: all that waits.

use std::sync::atomic::{fence, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use sfm_endpoint::sites::NOWHERE;
use sfm_native::segment::Doing;

use super::epoch::Held;
use super::lock::Lock;
use super::lock::Mode::{self, Exclusive};
use super::{lock, Window};
use crate::collective::barrier::barrier;
use crate::collective::team::{whole_told, Team};
use crate::data::Data;
use crate::engine::{
    self, engine, told, About, From, Mode as Sending, Receiving, To, Wanted, What,
};
use crate::errors::{fail, Answer};
use crate::handles::*;

/// Times that a process gives way to others before it says that it waits for a lock.
const TURNS: u32 = 32;

/// Tags between the processes of one window, beside those of its collectives.
const POSTED: c_int = 0x7fff_fff1;
const COMPLETED: c_int = 0x7fff_fff2;

/// What a wait has found: it is over, or for whom it waits, where that is known.
pub type Look = Result<(), Option<usize>>;

impl Window {
    /// Wait until it is over. `rank`: the target, for observers.
    pub fn wait(&self, rank: Option<usize>, mut look: impl FnMut() -> Look) -> Answer {
        let call = || {
            let mut arguments: Vec<_> =
                rank.map(|rank| ("rank", rank.to_string())).into_iter().collect();
            arguments.push(("win", self.told()));
            told::one_by_one(arguments)
        };
        let from = From::Any(&self.comm.group.members);
        let about = About { from, doing: Doing::Receiving, call: Some(&call) };
        engine().wait(about, || {
            let missing = look();
            if let Err(rank) = missing {
                told::awaits(rank.map(|rank| self.process(rank)));
            }
            missing.is_ok()
        })
    }

    // ---- locks ----

    /// Take what MPI_Win_lock takes.
    pub fn take(&self, rank: usize, mode: Mode) -> Answer {
        let (lock, own) = (&self.control.part(rank).lock, self.rank());
        if lock.try_take(own, mode) || taken_in_turns(lock, own, mode) {
            return Ok(());
        }
        lock.announce(own);
        let waited = self.wait(Some(rank), || match lock.try_take(own, mode) {
            true => Ok(()),
            false => Err(lock.holder()),
        });
        lock.withdraw(own);
        waited
    }

    /// Give it back when all that was done is to be seen.
    pub fn give_back(&self, rank: usize, held: Held) {
        if held.is_taken {
            fence(SeqCst);
            for waiting in self.control.part(rank).lock.release(self.rank(), held.mode) {
                engine().nudge(self.process(waiting));
            }
        }
    }

    /// The right to combine elements of this rank's memory.
    ///
    /// Blocks: while others do, which takes no longer than that; who died over it is an error.
    pub fn turn(&self, rank: usize) -> Answer<Turn<'_>> {
        let (lock, own) = (&self.control.part(rank).combining, self.rank());
        if !lock.try_take(own, Exclusive) && !taken_in_turns(lock, own, Exclusive) {
            self.wait_for_turn(lock, own)?;
        }
        Ok(Turn { lock, own })
    }

    #[cold]
    fn wait_for_turn(&self, lock: &Lock, own: usize) -> Answer {
        let (mut pause, mut asked) = (Duration::from_micros(20), Instant::now());
        while !lock.try_take(own, Exclusive) {
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

    /// All operations on this rank have ended, there too.
    pub fn flush(&self, rank: usize) -> Answer {
        fence(SeqCst);
        self.outgoing.flush(self, rank)
    }

    pub fn flush_all(&self) -> Answer {
        (0..self.size()).try_for_each(|rank| self.flush(rank))
    }

    // ---- epochs with others ----

    pub fn fence(&self, what: What) -> Answer {
        self.flush_all()?;
        let team = Team::of(&self.comm, what);
        let call = || told::collective_with(vec![("win", self.told())]);
        whole_told(&team, &call, barrier(&team))
    }

    /// Tell these that this process's memory may be reached.
    pub fn post(&self, ranks: &[usize]) {
        let coming = ranks.iter().map(|rank| self.awaited(*rank, COMPLETED)).collect();
        *lock(&self.completed) = coming;
        ranks.iter().for_each(|rank| self.tell(*rank, POSTED));
    }

    /// Wait until these have posted.
    pub fn start(&self, ranks: &[usize]) -> Answer {
        let coming: Vec<_> = ranks.iter().map(|rank| self.awaited(*rank, POSTED)).collect();
        let waited = self.wait(None, || missing(&coming));
        if waited.is_err() {
            for one in &coming {
                engine().take_back(one, engine::Outcome::cancelled());
            }
        }
        waited
    }

    /// Tell these that nothing more comes.
    pub fn complete(&self, ranks: &[usize]) -> Answer {
        ranks.iter().try_for_each(|rank| self.flush(*rank))?;
        ranks.iter().for_each(|rank| self.tell(*rank, COMPLETED));
        Ok(())
    }

    /// Wait until all to whom the window was posted have completed.
    pub fn wait_completed(&self) -> Answer {
        let coming = lock(&self.completed).clone();
        self.wait(None, || missing(&coming))?;
        lock(&self.completed).clear();
        fence(SeqCst);
        Ok(())
    }

    /// Whether all have; for a call that the program makes again until they have.
    pub fn test_completed(&self) -> bool {
        engine().advance();
        let look = missing(&lock(&self.completed));
        match look {
            Ok(()) => {
                engine().not_in_vain();
                lock(&self.completed).clear();
                fence(SeqCst);
            }
            Err(rank) => engine().in_vain(|| {
                told::awaits(rank.map(|rank| self.process(rank)));
                told::one_by_one(vec![("win", self.told())])
            }),
        }
        look.is_ok()
    }

    /// Say no more than the tag does.
    fn tell(&self, rank: usize, tag: c_int) {
        let (context, rank) = (engine::collectives(self.comm.context), self.process(rank));
        let to =
            To { context, rank, source: self.comm.rank, tag, what: What::Message, site: NOWHERE };
        // SAFETY: there are no bytes.
        unsafe { engine().send(to, Sending::Standard, &nothing()) };
    }

    fn awaited(&self, rank: usize, tag: c_int) -> std::sync::Arc<Receiving> {
        let context = engine::collectives(self.comm.context);
        let (source, from) = (rank as c_int, Some(self.process(rank)));
        let wanted = Wanted { context, source, tag, from, what: What::Message };
        // SAFETY: as above.
        unsafe { engine().receive(&wanted, nothing()) }
    }
}

fn nothing() -> Data {
    Data::bytes(std::ptr::null_mut(), 0)
}

/// The first that has not come, by its sender.
fn missing(coming: &[std::sync::Arc<Receiving>]) -> Look {
    match coming.iter().find(|one| !one.end.is_done()) {
        None => Ok(()),
        Some(one) => Err(Some(one.wanted.source as usize)),
    }
}

fn taken_in_turns(lock: &Lock, own: usize, mode: Mode) -> bool {
    (0..TURNS).any(|_| {
        thread::yield_now();
        lock.try_take(own, mode)
    })
}

/// The right to combine elements; given back when it is dropped.
pub struct Turn<'a> {
    lock: &'a Lock,
    own: usize,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let _nobody_announces = self.lock.release(self.own, Exclusive);
    }
}
