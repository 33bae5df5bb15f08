//! How long to spin before a sleep.
//!
//! Waking a sleeping process costs 3 us if its core is awake, and 50 us and more if a virtual
//! machine's core has gone to sleep with it. A spin saves that if the message comes soon and nobody
//! else needs the core. Eight engines on two cores is the normal case in a class, so spinning must
//! have paid off lately; and where there are more processes than cores, it is tried anew now and
//! then (`Probe`), since the processes that exchange messages may still have a core each.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::cores;

/// Longest spin, in nanoseconds: a few times what a wake-up costs.
const LONGEST: u32 = 150_000;
/// Shortest spin, in nanoseconds: it keeps nobody from a core.
const SHORTEST: u32 = 1_000;
/// The cost of releasing Python's GIL and taking it again.
const BRIEF: Duration = Duration::from_micros(3);
/// Age, in nanoseconds, up to which the knowledge about free cores is used.
const FRESH: u64 = 10_000_000;

/// Longest time, in nanoseconds, that a process yields the core again and again.
const LONGEST_TURNS: u32 = 1_000_000;
/// The same if it waits for a message, which need not come at all.
const LONGEST_YIELD: u32 = 200_000;

/// Nanoseconds without the core after which a process knows that it has yielded to one that
/// computes.
const PREEMPTED: u64 = 500_000;
/// For this multiple of that time it yields no more: a woken sleeper gets the core at once.
const BACKOFF: u64 = 8;

/// The time for which a kind of waiting was worth it lately, in nanoseconds.
struct Worth {
    now: AtomicU32,
    longest: u32,
}

impl Worth {
    const fn up_to(longest: u32) -> Worth {
        Worth { now: AtomicU32::new(longest), longest }
    }

    fn limit(&self) -> Duration {
        Duration::from_nanos(u64::from(self.now.load(Ordering::Relaxed)))
    }

    fn paid_off(&self, times: u32) {
        let now = self.now.load(Ordering::Relaxed);
        self.now.store(now.saturating_mul(times).min(self.longest), Ordering::Relaxed);
    }

    fn failed(&self) {
        let now = self.now.load(Ordering::Relaxed);
        self.now.store((now / 2).max(SHORTEST), Ordering::Relaxed);
    }

    /// News ended a sleep of `time`: would spinning have been worth it?
    fn slept(&self, time: Duration, times_longest: u32) {
        if time < Duration::from_nanos(u64::from(times_longest) * u64::from(self.longest)) {
            self.paid_off(4);
        }
    }
}

/// Whether spinning pays off while there are more processes than cores: as long as not two spins in
/// a row have failed; then one in 32 waits tries again, and each failure doubles that number.
struct Probe {
    failed: AtomicU32,
    /// Waits until the next attempt, and after that one if it fails.
    skip: AtomicU32,
    next_skip: AtomicU32,
}

impl Probe {
    /// Covers a message of 64 kB, which takes 5 us, and little else.
    const SPIN: Duration = Duration::from_micros(20);
    const FIRST_SKIP: u32 = 32;
    const LAST_SKIP: u32 = 1024;

    const fn new() -> Probe {
        let next_skip = AtomicU32::new(Probe::FIRST_SKIP);
        Probe { failed: AtomicU32::new(0), skip: AtomicU32::new(0), next_skip }
    }

    fn pays_off(&self) -> bool {
        self.failed.load(Ordering::Relaxed) < 2
    }

    /// The time to spin in this wait.
    fn limit(&self) -> Duration {
        let skip = self.skip.load(Ordering::Relaxed);
        if self.pays_off() || skip == 0 {
            return Probe::SPIN;
        }
        self.skip.store(skip - 1, Ordering::Relaxed);
        Duration::ZERO
    }

    fn succeeded(&self) {
        self.failed.store(0, Ordering::Relaxed);
        self.next_skip.store(Probe::FIRST_SKIP, Ordering::Relaxed);
    }

    fn has_failed(&self) {
        if self.failed.fetch_add(1, Ordering::Relaxed) == 0 {
            return; // its peer may have lost its core for a moment
        }
        self.failed.store(2, Ordering::Relaxed);
        let skip = self.next_skip.load(Ordering::Relaxed);
        self.skip.store(skip, Ordering::Relaxed);
        self.next_skip.store((2 * skip).min(Probe::LAST_SKIP), Ordering::Relaxed);
    }

    /// Conditions have changed: try in the next wait.
    fn renew(&self) {
        self.skip.store(0, Ordering::Relaxed);
        self.next_skip.store(Probe::FIRST_SKIP, Ordering::Relaxed);
    }
}

/// Two processes that take turns on one core while another core has a single process: the scheduler
/// finds both cores in use and leaves them there, although they would be three times as fast apart.
struct Together {
    /// Waits in a row that a process of the same core has ended.
    met: AtomicU32,
    /// The time, by `since_start`, before which this thread does not move; and the pause after the
    /// next move, which doubles with each.
    move_from: AtomicU64,
    pause: AtomicU64,
}

impl Together {
    /// More is no coincidence.
    const MANY: u32 = 32;
    const FIRST_PAUSE: u64 = 4_000_000;
    const LAST_PAUSE: u64 = 1_000_000_000;

    const fn new() -> Together {
        let pause = AtomicU64::new(Together::FIRST_PAUSE);
        Together { met: AtomicU32::new(0), move_from: AtomicU64::new(0), pause }
    }

    /// A process of the same core, or of another one, has ended a wait. True if one of them should
    /// move: at most one more process than there are cores wants to run, so that it will not just
    /// meet others there.
    fn should_part(&self, here: bool) -> bool {
        if !here {
            self.met.store(0, Ordering::Relaxed);
            return false;
        }
        if self.met.fetch_add(1, Ordering::Relaxed) < Together::MANY {
            return false;
        }
        self.met.store(0, Ordering::Relaxed);
        let (now, pause) = (since_start(), self.pause.load(Ordering::Relaxed));
        if now < self.move_from.load(Ordering::Relaxed) {
            return false;
        }
        self.move_from.store(now + pause, Ordering::Relaxed);
        self.pause.store((2 * pause).min(Together::LAST_PAUSE), Ordering::Relaxed);
        cores::wanted().is_some_and(|wanted| wanted <= cores::usable() + 1)
    }

    /// The processes have a core each.
    fn are_apart(&self) {
        if self.met.load(Ordering::Relaxed) != 0 {
            self.met.store(0, Ordering::Relaxed);
        }
        if self.pause.load(Ordering::Relaxed) != Together::FIRST_PAUSE {
            self.pause.store(Together::FIRST_PAUSE, Ordering::Relaxed);
        }
    }
}

/// One endpoint's experience with spinning, and with yielding.
pub struct Spin {
    spin: Worth,
    /// Yielding to processes that wait for each other, and to those that send messages.
    turns: Worth,
    yields: Worth,
    /// The time, by `since_start`, before which it does not yield.
    yield_from: AtomicU64,
    crowded: Probe,
    together: Together,
}

impl Default for Spin {
    fn default() -> Self {
        Spin {
            spin: Worth::up_to(LONGEST),
            turns: Worth::up_to(LONGEST_TURNS),
            yields: Worth::up_to(LONGEST_YIELD),
            yield_from: AtomicU64::new(0),
            crowded: Probe::new(),
            together: Together::new(),
        }
    }
}

impl Spin {
    /// Spin for a moment, if that pays off.
    pub fn spin_briefly(&self, news: impl Fn() -> bool) -> bool {
        news() || ((cores_are_free() || self.crowded.pays_off()) && spin(BRIEF, &news))
    }

    /// Spin until `news()`; false if it did not come in the time that a spin is worth.
    pub fn until(&self, news: impl Fn() -> bool) -> bool {
        if news() {
            return true;
        }
        let is_free = cores_are_free();
        let limit = if is_free { self.spin.limit() } else { self.crowded.limit() };
        let came = spin(limit, &news);
        match (is_free, came) {
            (true, true) => self.spin.paid_off(2),
            (true, false) => self.spin.failed(),
            (false, true) => {
                self.crowded.succeeded();
                self.together.are_apart();
            }
            (false, false) if limit.is_zero() => {}
            (false, false) => self.crowded.has_failed(),
        }
        came
    }

    /// A wait has ended by news of a process which runs on the same core (`here`) or on another.
    pub fn met(&self, here: bool) {
        if self.together.should_part(here) && cores::leave_current() {
            self.crowded.renew();
        }
    }

    /// Yield the core if another process wants it.
    pub fn yield_core(&self) {
        if !cores_are_free() {
            std::thread::yield_now();
        }
    }

    /// Yield the core until `news()`; false if that did not pay off lately.
    ///
    /// For processes that wait for each other, if there are more of them than cores: the awaited
    /// process is then about to run here. Yielding takes a microsecond, a sleep and a wake-up
    /// several, on both sides.
    pub fn take_turns(&self, news: impl Fn() -> bool) -> bool {
        take_turns(&self.turns, news, |_| false)
    }

    /// `take_turns` for a process that waits for a message: shorter, since it may be long in
    /// coming, and not if the core then goes to a process that computes, which keeps it for
    /// milliseconds.
    pub fn yield_until(&self, news: impl Fn() -> bool) -> bool {
        if since_start() < self.yield_from.load(Ordering::Relaxed) {
            return news();
        }
        let preempted = |time: Duration| {
            let time = time.as_nanos() as u64;
            if time > PREEMPTED {
                self.yield_from.store(since_start() + BACKOFF * time, Ordering::Relaxed);
            }
            time > PREEMPTED
        };
        take_turns(&self.yields, news, preempted)
    }

    /// A sleep took `time` until it was rung: was it the length of a spin, or of some turns?
    pub fn slept(&self, time: Duration) {
        self.spin.slept(time, 1);
        self.yields.slept(time, 1);
        // A round of many processes takes longer by this factor when all of them sleep and are
        // woken.
        self.turns.slept(time, 4);
    }
}

/// Spin until `news()`, for at most `limit`.
fn spin(limit: Duration, news: &impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < limit {
        for _ in 0..32 {
            if news() {
                return true;
            }
            std::hint::spin_loop();
        }
    }
    false
}

/// `preempted`: whether to stop, since others kept the core for this long.
fn take_turns(
    worth: &Worth,
    news: impl Fn() -> bool,
    preempted: impl Fn(Duration) -> bool,
) -> bool {
    if news() {
        return true;
    }
    let (limit, start) = (worth.limit(), Instant::now());
    let mut before = Duration::ZERO;
    while before < limit {
        std::thread::yield_now();
        let after = start.elapsed();
        let over = preempted(after - before);
        if news() {
            if !over {
                worth.paid_off(2);
            }
            return true;
        }
        if over {
            break;
        }
        before = after;
    }
    worth.failed();
    false
}

/// Whether there are at least as many cores as processes that want to run, this one included.
fn cores_are_free() -> bool {
    static CHECKED: AtomicU64 = AtomicU64::new(0);
    static BUSY: AtomicU32 = AtomicU32::new(0);
    let now = since_start() + FRESH;
    if now.saturating_sub(CHECKED.load(Ordering::Relaxed)) >= FRESH {
        CHECKED.store(now, Ordering::Relaxed);
        let busy = cores::wanted().is_none_or(|wanted| wanted > cores::usable());
        BUSY.store(u32::from(busy), Ordering::Relaxed);
    }
    BUSY.load(Ordering::Relaxed) == 0
}

/// Nanoseconds since the first call of this function.
fn since_start() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spins_that_fail_are_tried_ever_more_rarely_until_one_succeeds() {
        let probe = Probe::new();
        let skipped = |probe: &Probe| (0..).take_while(|_| probe.limit().is_zero()).count();
        probe.has_failed();
        assert!(probe.pays_off() && skipped(&probe) == 0, "once is no sign");
        for expected in [32, 64, 128, 256, 512, 1024, 1024] {
            probe.has_failed();
            assert!(!probe.pays_off());
            assert_eq!(skipped(&probe), expected);
        }
        probe.succeeded();
        assert!(probe.pays_off() && skipped(&probe) == 0);
        probe.has_failed();
        probe.has_failed();
        assert_eq!(skipped(&probe), 32);
        probe.has_failed();
        probe.renew();
        assert_eq!(skipped(&probe), 0, "conditions have changed");
    }

    #[test]
    fn processes_that_only_sometimes_meet_on_a_core_stay_there() {
        let together = Together::new();
        for _ in 0..10 {
            assert!((0..Together::MANY).all(|_| !together.should_part(true)));
            assert!(!together.should_part(false));
        }
        assert_eq!(together.pause.load(Ordering::Relaxed), Together::FIRST_PAUSE);
    }

    #[test]
    fn processes_that_meet_again_and_again_part_after_ever_longer_pauses() {
        let together = Together::new();
        let pause = || together.pause.load(Ordering::Relaxed);
        let _ = (0..=Together::MANY).filter(|_| together.should_part(true)).count();
        assert_eq!(pause(), 2 * Together::FIRST_PAUSE);
        let _ = (0..=Together::MANY).filter(|_| together.should_part(true)).count();
        assert_eq!(pause(), 2 * Together::FIRST_PAUSE, "not again so soon");
        together.move_from.store(0, Ordering::Relaxed);
        let _ = (0..=Together::MANY).filter(|_| together.should_part(true)).count();
        assert_eq!(pause(), 4 * Together::FIRST_PAUSE);
        together.are_apart();
        assert_eq!(pause(), Together::FIRST_PAUSE);
    }
}
