//! Progress, and waiting for the end of an operation.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{fence, Ordering};
use std::time::{Duration, Instant};

use sfm_endpoint::calltext::Call;
use sfm_endpoint::{Error, Kind};
use sfm_native::bell::Woken;
use sfm_native::calls::{self, Goal, WaitFacts};
use sfm_native::segment::Activity;

use super::{report, Engine};
use crate::errors::{of_world, Answer};
use crate::handles::*;
use crate::membership::Here;
use crate::{counting, process};

/// The processes whose end makes waiting useless. One that has ended matters only if something is
/// still to come from it: what it had sent is received first.
#[derive(Clone, Copy)]
pub enum From<'a> {
    Nobody,
    /// A process.
    One(usize),
    /// One of these suffices, and any may act. It is useless if all have ended, and also if one has
    /// died, because that one may have been meant.
    Any(&'a [c_int]),
    /// Each of those that the function returns: the call goes on step by step, and needs others in
    /// each.
    Now(&'a dyn Fn() -> Vec<usize>),
}

impl From<'_> {
    /// One process, if it is known.
    pub fn of(rank: Option<usize>) -> From<'static> {
        rank.map_or(From::Nobody, From::One)
    }
}

/// A description of a call that waits.
#[derive(Clone, Copy)]
pub struct About<'a> {
    pub from: From<'a>,
    /// The state of the process meanwhile.
    pub activity: Activity,
    /// The call for observers, computed if it is seen to wait; None if only `from` is known.
    pub call: Option<&'a dyn Fn() -> Call>,
}

impl<'a> About<'a> {
    pub fn receiving(from: From<'a>, call: &'a dyn Fn() -> Call) -> About<'a> {
        About { from, activity: Activity::Receiving, call: Some(call) }
    }

    pub fn sending(from: From<'a>, call: &'a dyn Fn() -> Call) -> About<'a> {
        About { from, activity: Activity::Sending, call: Some(call) }
    }

    /// A call of all processes of a communicator that needs these `now`.
    pub fn collective(now: &'a dyn Fn() -> Vec<usize>, call: &'a dyn Fn() -> Call) -> About<'a> {
        About { from: From::Now(now), activity: Activity::Collective, call: Some(call) }
    }
}

impl<'a> std::convert::From<From<'a>> for About<'a> {
    fn from(from: From<'a>) -> About<'a> {
        About { from, activity: Activity::Receiving, call: None }
    }
}

impl Engine {
    /// Make progress: take in messages, do the work they cause, and send waiting messages. Cheap if
    /// there is nothing to do.
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
            self.poll_stepwise();
        }
        if counting::is_on() {
            counting::tell(|tools| (tools.update)());
        }
    }

    /// Do the work that arrived messages have caused and that is still queued, and leave messages
    /// without room to the network thread: with this every MPI call ends, since another process may
    /// wait for it and the program may not call MPI again for a long time.
    #[inline]
    pub fn settle(&self) {
        // Acquire: with the Release in `queue_todo`.
        while self.has_todo.load(Ordering::Acquire) {
            self.advance();
        }
        if self.held_back.load(Ordering::Relaxed) > 0 {
            self.send_later();
        }
    }

    /// Advance until `is_done()` returns true, after which it is not called again. Err if a process
    /// has died that the call needs.
    ///
    /// Blocks: spins only while cores are free, yields, then sleeps, visible to observers.
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
        let until = Until::new(is_done);
        let (version, examined, shown) = Default::default();
        let mut goal = Waiting { engine: self, about, until, version, examined, shown };
        let began = counting::is_on().then(Instant::now);
        let waited = calls::wait(&Here(&*self.endpoint), &self.core, &mut goal, None);
        if let Some(began) = began {
            counting::waited(began.elapsed());
        }
        waited.map(|_| ()).map_err(of_world)
    }

    /// Sleep until there may be something to do.
    pub(super) fn rest(&self, version: u64, limit: Duration, until: &Until<'_>) -> Woken {
        let blocked = self.announce_waits();
        if !blocked.is_empty() {
            self.flush();
        }
        let has_room = || blocked.iter().any(|(path, pulse)| path.has_news(*pulse));
        let news = || has_room() || self.has_todo.load(Ordering::Relaxed) || until.is_done();
        // SYNC POINT engine/resting: before the last check for news.
        self.resting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let woken = self.core.wait_for(version, limit, news);
        self.resting.fetch_sub(1, Ordering::Relaxed);
        for (path, _) in &blocked {
            path.end_wait();
        }
        woken
    }

    /// Wake the threads that sleep until operations end, because this thread has ended some. A
    /// message that arrives wakes them itself.
    pub fn wake_resting(&self) {
        // SYNC POINT engine/resting: after the end of the operation.
        fence(Ordering::SeqCst);
        if self.resting.load(Ordering::SeqCst) > 0 {
            self.core.ring();
        }
    }

    /// Wait until all sends are sent and answered. Err if one of their receivers has ended.
    pub fn send_all(&self) -> Answer {
        self.wait(From::Now(&|| self.receivers()), || self.has_sent_all())
    }

    /// Called by an unsuccessful test or probe, described by `call`, which the program will repeat:
    /// yields to other processes, whose message it needs, if cores are short. Observers see it.
    pub fn poll_failed(&self, call: impl FnOnce() -> Call) {
        let shared = self.core.shared();
        if shared.polled() {
            shared.publish_polls(&call().asked());
        }
        self.core.yield_core();
    }

    /// Called when a test or probe succeeds after unsuccessful ones.
    pub fn poll_succeeded(&self) {
        self.core.shared().polls.end();
    }

    /// The process whose end makes waiting useless.
    pub fn lost_of(&self, from: From<'_>) -> Option<usize> {
        let is_lost = |rank: &usize| self.has_lost(*rank);
        match from {
            From::Nobody => None,
            From::One(rank) => Some(rank).filter(is_lost),
            From::Now(needed) => needed().into_iter().find(is_lost),
            From::Any(ranks) => {
                let others = ranks.iter().map(|rank| *rank as usize);
                let others: Vec<_> = others.filter(|rank| *rank != self.rank).collect();
                let died = others.iter().copied().find(|rank| self.has_died(*rank));
                died.or_else(|| others.last().copied().filter(|_| others.iter().all(is_lost)))
            }
        }
    }

    /// True if a process has ended without leaving its world, which it does at its regular end.
    pub fn has_died(&self, rank: usize) -> bool {
        self.has_lost(rank) && !self.endpoint.has_left(rank)
    }
}

/// The error text of a call whose awaited process has ended.
pub fn text_of_loss(rank: usize) -> String {
    format!(
        "{} has ended, so this call would wait for ever; the output of that process says why it \
        ended",
        process::named(rank)
    )
}

/// The condition that a call waits for. Several checks share it, and none runs it again after it
/// was true.
pub(super) struct Until<'a> {
    was_done: Cell<bool>,
    is_done: RefCell<&'a mut dyn FnMut() -> bool>,
}

impl<'a> Until<'a> {
    pub fn new(is_done: &'a mut dyn FnMut() -> bool) -> Until<'a> {
        Until { was_done: Cell::new(false), is_done: RefCell::new(is_done) }
    }

    fn is_done(&self) -> bool {
        // The condition may itself cause another check.
        let ask = || self.is_done.try_borrow_mut().is_ok_and(|mut is_done| is_done());
        let is_done = self.was_done.get() || ask();
        self.was_done.set(is_done);
        is_done
    }
}

struct Waiting<'a> {
    engine: &'a Engine,
    about: About<'a>,
    until: Until<'a>,
    version: u64,
    examined: u64,
    /// The facts that observers have, once the call is seen to wait.
    shown: Option<String>,
}

impl Waiting<'_> {
    fn call(&self) -> Call {
        self.about.call.map_or_else(|| report::some(vec![], self.about.from), |call| call())
    }

    /// Update the facts if the call has gone a step further and now waits for another process.
    fn update_facts(&mut self) {
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
            core.take_in_all(); // a process may have died between writing and ringing
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
        self.update_facts();
        self.engine.rest(self.version, limit, &self.until)
    }

    fn examined(&self) -> u64 {
        self.examined
    }

    fn facts(&mut self, _host: &Here<'h>) -> Result<Option<WaitFacts>, Error> {
        let call = self.call();
        let facts = call.facts();
        self.shown = Some(facts.clone());
        Ok(Some(WaitFacts { activity: self.about.activity, text: call.text(), facts }))
    }

    fn tick(&mut self, _host: &Here<'h>) -> Result<Option<String>, Error> {
        self.engine.give_up_stepwise();
        match self.engine.lost_of(self.about.from) {
            None => Ok(None),
            Some(rank) => Err(Error::new(Kind::PeerLost, text_of_loss(rank))),
        }
    }

    fn outlives_peers(&self) -> bool {
        true
    }

    fn still_needs_lost(&mut self) -> bool {
        self.engine.lost_of(self.about.from).is_some()
    }
}
