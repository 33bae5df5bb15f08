//! The one loop of all waiting calls.

use std::time::{Duration, Instant};

use super::blocked::Verdict;
use super::{Blocked, End, Goal, Host, TICK};
use crate::bell::Woken;
use crate::core::Core;

/// Polls of a call before it is shown as waiting. Not unlimited: if other messages stream in,
/// nobody here checks for signals and for dead peers.
const SPINS: u32 = 100;

/// Time that callbacks may take to decide whether a dead peer's messages are for them.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause between two looks at a judgement that is prepared.
const MOMENT: Duration = Duration::from_millis(1);

/// When a call's wait ends; None: never.
pub type Deadline = Option<Instant>;

/// The instant after this time; None if it is too far away to be represented.
pub fn deadline(limit: Option<Duration>) -> Deadline {
    limit.and_then(|limit| Instant::now().checked_add(limit))
}

/// Wait until the goal is reached; None when the time is up.
///
/// Raises what signals, ticks and the goal itself raise, and `End::Closed` and `Deadlock`; the goal
/// is then as its latest poll has left it.
pub fn wait<H: Host, G: Goal<H>>(
    host: &H,
    core: &Core,
    goal: &mut G,
    until: Deadline,
) -> Result<Option<G::Out>, H::Error> {
    let remaining = || until.map(|at| at.saturating_duration_since(Instant::now()));
    let mut watched = Watched::Unwatched { spins_left: SPINS };
    let mut ticked: Option<Instant> = None;
    let mut losses = core.losses();
    let mut all = false;
    let mut lost: Option<Lost<H::Error>> = None;
    loop {
        if core.is_closed() {
            return Err(host.ended(End::Closed));
        }
        // Earlier messages of a dead peer are still received, even if callbacks, which are asked
        // first, take their time.
        let last = lost.take_if(|lost| lost.is_settled(core));
        // Before what has come since: its sender was in the deadlock, and has gone on already.
        match watched.verdict() {
            Verdict::None => {}
            Verdict::Prepared => {
                host.signals()?;
                host.release(|| std::thread::sleep(MOMENT));
                continue;
            }
            Verdict::Ended(why) => return Err(host.ended(why)),
        }
        watched.look();
        if let Some(out) = goal.poll(host, all)? {
            match watched.verdict() {
                Verdict::None => return Ok(Some(out)),
                _ => match goal.undo(out) {
                    None => continue,
                    out => return Ok(out),
                },
            }
        }
        if let Some(lost) = last.filter(|_| goal.still_needs_lost()) {
            return Err(lost.failure);
        }
        let limit = remaining().map_or(TICK, |remaining| remaining.min(TICK));
        if limit.is_zero() {
            return Ok(None);
        }
        if let Watched::Unwatched { spins_left } = &mut watched {
            if *spins_left > 0 && goal.spin(host) {
                *spins_left -= 1;
                continue;
            }
            watched = match goal.facts(host)? {
                Some(shown) => Watched::By(Blocked::enter(core, shown, remaining())),
                None => Watched::Never,
            };
            ticked = Some(Instant::now());
            host.signals()?;
            // Nothing is lost between the poll and the sleep: an arrival since then ends the sleep
            // at once.
        } else if ticked.is_some_and(|at| at.elapsed() >= limit) || core.losses() != losses {
            (ticked, losses) = (Some(Instant::now()), core.losses());
            host.signals()?;
            if lost.is_none() {
                match goal.tick(host) {
                    Ok(facts) => watched.publish(host, facts.as_deref())?,
                    Err(failure) if goal.outlives_peers() && host.is_loss(&failure) => {
                        lost = Some(Lost::of(core, failure));
                        continue;
                    }
                    Err(failure) => return Err(failure),
                }
            }
        }
        watched.settle(goal.examined());
        let woken = goal.sleep(host, limit);
        all = woken != Woken::Rung;
        if woken == Woken::Signal {
            host.signals()?;
        }
    }
}

/// The call as observers see it.
enum Watched<'a> {
    /// Not yet: it may still spin this many times.
    Unwatched {
        spins_left: u32,
    },
    Never,
    By(Blocked<'a>),
}

impl Watched<'_> {
    fn publish<H: Host>(&mut self, host: &H, facts: Option<&str>) -> Result<(), H::Error> {
        match self {
            Watched::By(blocked) => blocked.publish(host, facts),
            _ => Ok(()),
        }
    }

    fn verdict(&mut self) -> Verdict {
        match self {
            Watched::By(blocked) => blocked.verdict(),
            _ => Verdict::None,
        }
    }

    fn look(&mut self) {
        if let Watched::By(blocked) = self {
            blocked.look();
        }
    }

    fn settle(&mut self, examined: u64) {
        if let Watched::By(blocked) = self {
            blocked.settle(examined);
        }
    }
}

/// A peer that has died.
struct Lost<E> {
    failure: E,
    /// The number of messages that had arrived then, its own among them, and that time.
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
