//! The one loop for all that waits.

use std::time::{Duration, Instant};

use super::{Blocked, End, Examined, Goal, Host, TICK};
use crate::bell::Woken;
use crate::code_location::helping;
use crate::core::Core;

/// Looks that a call takes before it is seen to wait. Not for ever: where other messages stream in,
/// nobody here looks for signals and for the dead.
const SPINS: u32 = 100;

/// How long callbacks may take to decide whether what a dead peer had sent is for them.
const PATIENCE: Duration = Duration::from_secs(10);

/// Until when a call waits: None is for ever.
pub type Deadline = Option<Instant>;

/// The instant after so much time; where that is too far away to be counted, there is none.
pub fn deadline(limit: Option<Duration>) -> Deadline {
    limit.and_then(|limit| Instant::now().checked_add(limit))
}

/// Wait until the goal is reached; None when the time is up.
///
/// Raises what signals, ticks and the goal itself raise, and `End::Closed` and `Deadlock`; the goal
/// is then as its latest look has left it.
pub fn wait<H: Host, G: Goal<H>>(
    host: &H,
    core: &Core,
    goal: &mut G,
    until: Deadline,
) -> Result<Option<G::Out>, H::Error> {
    let left = || until.map(|at| at.saturating_duration_since(Instant::now()));
    let mut watched = Watched::Not(SPINS);
    let mut ticked: Option<Instant> = None;
    let mut all = false;
    let mut lost: Option<Lost<H::Error>> = None;
    loop {
        if core.is_closed() {
            return Err(host.ended(End::Closed));
        }
        // What a dead peer had sent before is still received, also if callbacks, which are asked
        // first, take their time.
        let last = lost.take_if(|lost| lost.is_settled(core));
        // Before what has come since: who sent that was in the deadlock, and has gone on already.
        watched.judged().map_err(|why| host.ended(why))?;
        if let Some(out) = goal.poll(host, all)? {
            if goal.was_broken() {
                watched.judged().map_err(|why| host.ended(why))?;
            }
            return Ok(Some(out));
        }
        if let Some(lost) = last {
            return Err(lost.failure);
        }
        let limit = left().map_or(TICK, |left| left.min(TICK));
        if limit.is_zero() {
            return Ok(None);
        }
        if let Watched::Not(spins) = &mut watched {
            if *spins > 0 && goal.spin(host) {
                *spins -= 1;
                continue;
            }
            watched = match goal.facts(host)? {
                Some(shown) => Watched::By(Blocked::enter(core, &shown, left())),
                None => Watched::Never,
            };
            ticked = Some(Instant::now());
            host.signals()?;
            // Between the look and the sleep nothing is lost: what has come since ends that at once.
        } else if ticked.is_some_and(|at| at.elapsed() >= limit) {
            ticked = Some(Instant::now());
            host.signals()?;
            if lost.is_none() {
                let heard = core.told_by_helpers();
                match goal.tick(host) {
                    Ok(facts) => watched.tell(host, goal, facts.as_deref(), heard)?,
                    Err(failure) if goal.outlives_peers() && host.is_loss(&failure) => {
                        lost = Some(Lost::of(core, failure));
                        continue;
                    }
                    Err(failure) => return Err(failure),
                }
            }
        }
        watched.settle(core, goal.examined());
        let woken = goal.sleep(host, limit);
        all = woken != Woken::Rung;
        if woken == Woken::Signal {
            host.signals()?;
        }
    }
}

/// How observers see the call.
enum Watched<'a> {
    /// Not yet: it may still spin so often.
    Not(u32),
    Never,
    By(Blocked<'a>),
}

impl Watched<'_> {
    fn tell<H: Host, G: Goal<H>>(
        &mut self,
        host: &H,
        goal: &G,
        facts: Option<&str>,
        heard: u64,
    ) -> Result<(), H::Error> {
        if let Watched::By(blocked) = self {
            blocked.tell(host, facts)?;
            if goal.hears_helpers() {
                blocked.hear(heard);
            }
        }
        Ok(())
    }

    fn judged(&self) -> Result<(), End> {
        match self {
            Watched::By(blocked) => blocked.judged(),
            _ => Ok(()),
        }
    }

    fn settle(&mut self, core: &Core, examined: Examined) {
        match (self, examined) {
            (Watched::By(blocked), _) => blocked.settle(examined),
            // What a helper does between its own waits is not shown, but counts.
            (_, Examined::Arrived(count)) if helping() != 0 => core.settle_helper(helping(), count),
            _ => {}
        }
    }
}

/// A peer that has died.
struct Lost<E> {
    failure: E,
    /// What it had sent has come in, up to there, at that time.
    arrived: u64,
    since: Instant,
}

impl<E> Lost<E> {
    fn of(core: &Core, failure: E) -> Lost<E> {
        Lost { failure, arrived: core.take_in_all(), since: Instant::now() }
    }

    fn is_settled(&self, core: &Core) -> bool {
        core.is_decided(self.arrived) || self.since.elapsed() > PATIENCE
    }
}
