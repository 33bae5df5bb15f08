//! Moving everything on, and waiting until something is done.

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sfm_endpoint::calltext::Call;
use sfm_endpoint::{Error, Kind};
use sfm_native::bell::Woken;
use sfm_native::calls::{self, Examined, Goal, WaitFacts};
use sfm_native::segment::Doing;

use super::{told, what, Engine, Sending, What};
use crate::collective::barrier::barrier;
use crate::collective::team::{whole, Team};

use crate::endpoint::failure;
use crate::errors::Answer;
use crate::handles::*;
use crate::home::Here;
use crate::tool::{self, counting};
use crate::{comm, left, process, world};

/// Whose death makes waiting useless.
#[derive(Clone, Copy, Debug)]
pub enum From<'a> {
    Nobody,
    /// A process.
    One(usize),
    /// Any of these.
    Any(&'a [c_int]),
}

/// What a call waits for.
#[derive(Clone, Copy)]
pub struct About<'a> {
    pub from: From<'a>,
    /// What the process does meanwhile.
    pub doing: Doing,
    /// The call, asked for if it is seen to wait; None where no more is known of it than `from`.
    pub call: Option<&'a dyn Fn() -> Call>,
}

impl<'a> About<'a> {
    /// A call that receives.
    pub fn receiving(from: From<'a>, call: &'a dyn Fn() -> Call) -> About<'a> {
        About { from, doing: Doing::Receiving, call: Some(call) }
    }

    /// One that sends.
    pub fn sending(from: From<'a>, call: &'a dyn Fn() -> Call) -> About<'a> {
        About { from, doing: Doing::Sending, call: Some(call) }
    }

    /// One that all of these make.
    pub fn collective(members: &'a [c_int]) -> About<'a> {
        let (from, doing) = (From::Any(members), Doing::Collective);
        About { from, doing, call: Some(&told::collective) }
    }
}

impl<'a> std::convert::From<From<'a>> for About<'a> {
    fn from(from: From<'a>) -> About<'a> {
        About { from, doing: Doing::Receiving, call: None }
    }
}

impl Engine {
    /// Take in what has come, do what it asks for, and send what waits. Cheap where there is nothing.
    #[inline]
    pub fn advance(&self) {
        if self.core.shared().has_arrivals() {
            self.core.take_in();
        }
        if self.has_todo.load(Ordering::Acquire) {
            self.catch_up();
        }
        self.flush();
        if self.running.load(Ordering::Acquire) > 0 {
            self.poll_schedules();
        }
        if counting::is_on() {
            tool::look();
        }
    }

    /// Advance until `is_done()`, which is not asked again after that. Err where somebody has died
    /// that it takes.
    ///
    /// Blocks: spins only while cores are free, gives way, then sleeps, seen by observers.
    pub fn wait<'a>(
        &self,
        about: impl Into<About<'a>>,
        mut is_done: impl FnMut() -> bool,
    ) -> Answer {
        self.advance();
        if is_done() {
            return Ok(());
        }
        self.wait_seen(about.into(), &mut is_done)
    }

    fn wait_seen(&self, about: About<'_>, is_done: &mut dyn FnMut() -> bool) -> Answer {
        let until = Until { was_done: Cell::new(false), is_done: RefCell::new(is_done) };
        let (version, examined, shown) = Default::default();
        let mut goal = Waiting { engine: self, about, until, version, examined, shown };
        let began = counting::is_on().then(Instant::now);
        let waited = calls::wait(&Here(&*self.endpoint), &self.core, &mut goal, None);
        if let Some(began) = began {
            counting::waited(began.elapsed());
        }
        waited.map(|_| ()).map_err(failure)
    }

    /// Sleep until there may be something to do.
    fn rest(&self, version: u64, limit: Duration, until: &Until<'_>) -> Woken {
        let blocked = self.announce_waits();
        if !blocked.is_empty() {
            self.flush();
        }
        let has_room = || blocked.iter().any(|(way, pulse)| way.has_news(*pulse));
        // Another thread may have done what was left, and ended what we wait for.
        let news = || has_room() || self.has_todo.load(Ordering::Relaxed) || until.is_done();
        let woken = self.core.wait_for(version, limit, news);
        for (way, _) in &blocked {
            way.end_wait();
        }
        woken
    }

    /// End: when all sends have gone, and nobody else needs this process to go on.
    pub fn finish(&self) -> Answer {
        let of = |one: &Sending| Some(told::sending(&*comm::of_messages(one.context())?, one));
        let call = || {
            let first = self.first_not_received();
            first.and_then(|one| of(&one)).unwrap_or_else(|| told::some(vec![], From::Nobody))
        };
        self.wait(About::sending(From::Nobody, &call), || self.has_sent_all())?;
        if !self.endpoint.is_program() {
            return Ok(());
        }
        let world = comm::get(MPI_COMM_WORLD)?;
        let team = Team::of(&world, What::Finalize);
        whole(&team, barrier(&team))?;
        // Others may be further in what they do in a session.
        if let Some(text) = what::left().filter(|_| !world::has_sessions()) {
            eprintln!("MPI_Finalize in process {}: {text}", world::rank());
        }
        if !world::has_sessions() {
            left::tell_requests();
            left::ask_senders();
        }
        self.wait(From::Nobody, || self.has_sent_all())
    }

    /// What a call does that has looked in vain for what `call` says, and will be made again: it
    /// lets others work whose message it wants, where cores are short. Observers hear of it.
    pub fn in_vain(&self, call: impl FnOnce() -> Call) {
        let shared = self.core.shared();
        if shared.polled() {
            shared.tell_polls(&call().asked());
        }
        self.core.give_way();
    }

    /// A call that had looked in vain before has found something.
    pub fn not_in_vain(&self) {
        self.core.shared().polls.end();
    }

    /// Who has died of those that somebody waits for.
    pub fn lost_of(&self, from: From<'_>) -> Option<usize> {
        match from {
            From::Nobody => None,
            From::One(rank) => self.has_lost(rank).then_some(rank),
            From::Any(ranks) => {
                ranks.iter().map(|rank| *rank as usize).find(|rank| self.has_lost(*rank))
            }
        }
    }
}

/// Why a call ends that waits for a process.
pub fn text_of_loss(rank: usize) -> String {
    format!(
        "{} has ended, and what this call waits for can no more come; its own output says why it \
         ended",
        process::named(rank)
    )
}

/// What a call waits for: asked by several looks, which go on by what it was the first time.
struct Until<'a> {
    was_done: Cell<bool>,
    is_done: RefCell<&'a mut dyn FnMut() -> bool>,
}

impl Until<'_> {
    fn is_done(&self) -> bool {
        // It may itself do what makes somebody look.
        let ask = || self.is_done.try_borrow_mut().is_ok_and(|mut is_done| is_done());
        let is_done = self.was_done.get() || ask();
        self.was_done.set(is_done);
        is_done
    }
}

/// A call that waits.
struct Waiting<'a> {
    engine: &'a Engine,
    about: About<'a>,
    until: Until<'a>,
    version: u64,
    examined: u64,
    /// It is seen to wait: what observers know of it.
    shown: Option<String>,
}

impl Waiting<'_> {
    fn call(&self) -> Call {
        self.about.call.map_or_else(|| told::some(vec![], self.about.from), |call| call())
    }

    /// The call has gone a step further, and waits perhaps for another one than observers know.
    fn tell_anew(&mut self) {
        let Some(shown) = &self.shown else { return };
        let facts = self.call().facts();
        if *shown != facts {
            self.engine.core.shared().facts.write(&facts);
            self.shown = Some(facts);
        }
    }
}

impl<'h> Goal<Here<'h>> for Waiting<'_> {
    type Out = ();

    fn poll(&mut self, _host: &Here<'h>, all: bool) -> Result<Option<()>, Error> {
        let core = &self.engine.core;
        (self.version, self.examined) = (core.version(), core.arrived());
        if all {
            core.take_in_all(); // somebody may have died between writing and ringing
        }
        self.engine.advance();
        Ok(self.until.is_done().then_some(()))
    }

    fn spin(&mut self, _host: &Here<'h>) -> bool {
        self.engine.core.spin_for(self.version, || {
            self.engine.has_todo.load(Ordering::Relaxed) || self.until.is_done()
        })
    }

    fn sleep(&mut self, _host: &Here<'h>, limit: Duration) -> Woken {
        self.tell_anew();
        self.engine.rest(self.version, limit, &self.until)
    }

    fn examined(&self) -> Examined {
        Examined::Arrived(self.examined)
    }

    fn facts(&mut self, _host: &Here<'h>) -> Result<Option<WaitFacts>, Error> {
        let call = self.call();
        let facts = call.facts();
        self.shown = Some(facts.clone());
        Ok(Some(WaitFacts { doing: self.about.doing, text: call.text(), facts }))
    }

    fn tick(&mut self, _host: &Here<'h>) -> Result<Option<String>, Error> {
        self.engine.give_up_schedules();
        match self.engine.lost_of(self.about.from) {
            None => Ok(None),
            Some(rank) => Err(Error::new(Kind::PeerLost, text_of_loss(rank))),
        }
    }

    fn outlives_peers(&self) -> bool {
        true
    }
}
