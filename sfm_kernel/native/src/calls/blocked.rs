//! A waiting call as observers see it, and how they can end it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{End, Host, WaitFacts};
use crate::clock::now;
use crate::core::Core;
use crate::other_threads::OtherThreads;
use crate::segment::{judged_call, PREPARED, UNSETTLED};

/// The interval at which a blocked call checks for signals that another thread took, and for dead
/// peers.
pub const TICK: Duration = Duration::from_millis(100);

/// Ticks after which bystanders are looked for although no other thread has run.
const LOOK_EVERY: u32 = 10;

/// Time that an observer may take between preparing a judgement and committing it. One that has died
/// in between had proven the deadlock.
const PATIENCE: Duration = Duration::from_secs(5);

/// An observer's verdict on a blocked call.
pub enum Verdict {
    None,
    /// It is not known yet whether the call ends: it takes nothing meanwhile.
    Prepared,
    Ended(End),
}

/// While it lives, observers see the process as blocked.
pub struct Blocked<'a> {
    core: &'a Core,
    call: u64,
    /// What observers are shown, and the time at which the call ends by itself.
    shown: WaitFacts,
    until: u64,
    /// Published as `examined` once the call has published what else could go on.
    examined: u64,
    /// When its latest look began; published with that.
    looked_at: u64,
    published: bool,
    /// The last text about what else could go on.
    others: String,
    /// Since when a prepared judgement is known.
    prepared: Option<Instant>,
    /// What other threads had done when it was made, and the ticks since then.
    looked: Option<OtherThreads>,
    ticks: u32,
}

impl<'a> Blocked<'a> {
    /// `limit`: the time after which the wait ends by itself.
    pub fn enter(core: &'a Core, shown: WaitFacts, limit: Option<Duration>) -> Blocked<'a> {
        let until = limit.map_or(0, |limit| now().saturating_add(limit.as_nanos() as u64));
        let call = core.shared().begin_call(shown.activity, &shown.text, &shown.facts, until);
        Blocked {
            core,
            call,
            shown,
            until,
            examined: UNSETTLED,
            looked_at: 0,
            published: false,
            others: String::new(),
            looked: None,
            ticks: 0,
            prepared: None,
        }
    }

    /// Tell observers what else could go on, and what the call waits for. Called at each tick.
    pub fn publish<H: Host>(&mut self, host: &H, facts: Option<&str>) -> Result<(), H::Error> {
        let shared = self.core.shared();
        if let Some(facts) = facts {
            facts.clone_into(&mut self.shown.facts);
        }
        if !self.is_shown() {
            if !is_main_thread() {
                return Ok(());
            }
            self.show_again();
        } else if facts.is_some() {
            shared.facts.write(&self.shown.facts);
        }
        let others = if self.should_look() { host.bystanders()? } else { None };
        if let Some(others) = others {
            self.published = true;
            if others != self.others {
                shared.others.write(&others); // only then: observers notice each change
                self.others = others;
            }
        }
        self.settle(self.examined);
        Ok(())
    }

    /// Whether observers see this call; not if one of another thread has begun since.
    fn is_shown(&self) -> bool {
        self.core.shared().call.load(Ordering::Relaxed) == self.call
    }

    /// A segment has room for one call, and another thread's has replaced this one, and has perhaps
    /// ended: it would seem that the process computes.
    fn show_again(&mut self) {
        let WaitFacts { activity, text, facts } = &self.shown;
        self.call = self.core.shared().begin_call(*activity, text, facts, self.until);
        (self.published, self.looked) = (false, None);
        self.others.clear();
        self.prepared = None;
    }

    /// Whether there may be other bystanders than at the last look: to look for them is most of what
    /// a blocked process does, and only a thread that runs can become one, or make one. A signal
    /// handler of this thread can, too, or a thread that has ended since: both are seen a little
    /// later, long before an observer concludes anything.
    fn should_look(&mut self) -> bool {
        let (now, before) = (OtherThreads::now(), self.looked);
        self.ticks += 1;
        if self.ticks < LOOK_EVERY && before.is_some_and(|before| !now.have_run_since(before)) {
            return false;
        }
        (self.looked, self.ticks) = (Some(now), 0);
        true
    }

    /// The call is about to look whether it can go on.
    pub fn look(&mut self) {
        self.looked_at = now();
    }

    /// The call is about to sleep, and has examined this much in its latest look.
    pub fn settle(&mut self, examined: u64) {
        self.examined = examined;
        if !self.is_shown() {
            return; // what observers see is another thread's call
        }
        let known = if self.published { examined } else { UNSETTLED };
        let shared = self.core.shared();
        shared.looked.store(self.looked_at, Ordering::Relaxed);
        shared.examined.store(known, Ordering::Release);
    }

    /// Whether an observer has found that nothing can end this call.
    pub fn verdict(&mut self) -> Verdict {
        let shared = self.core.shared();
        // SYNC POINT judged: the number is read before the text (observed/judgement.rs).
        let judged = shared.judged.load(Ordering::Acquire);
        if judged_call(judged) != self.call {
            self.prepared = None;
            return Verdict::None;
        }
        let since = *self.prepared.get_or_insert_with(Instant::now);
        if judged & PREPARED != 0 && since.elapsed() < PATIENCE {
            return Verdict::Prepared;
        }
        Verdict::Ended(End::Deadlock(shared.judgement.read().unwrap_or_default()))
    }
}

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        if self.is_shown() {
            self.core.shared().end_call();
        }
    }
}

/// Whether this thread is the one that the process began with: what it does is what the process does.
fn is_main_thread() -> bool {
    // SAFETY: both calls take no arguments, and only return numbers.
    unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) }
}
