//! How long to spin before a sleep.
//!
//! Waking a sleeping process costs 3 us if its core is awake, and 50 us and more if a virtual
//! machine's core has gone to sleep with it. A spin saves that if the message comes soon and nobody
//! else needs the core. Eight engines on two cores is the normal case in a class, so two conditions
//! must hold: cores are free now, and spinning has paid off lately.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

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

/// One endpoint's experience with spinning, and with yielding.
pub struct Spin {
    spin: Worth,
    /// Yielding to processes that wait for each other, and to those that send messages.
    turns: Worth,
    yields: Worth,
    /// The time, by `since_start`, before which it does not yield.
    yield_from: AtomicU64,
}

impl Default for Spin {
    fn default() -> Self {
        Spin {
            spin: Worth::up_to(LONGEST),
            turns: Worth::up_to(LONGEST_TURNS),
            yields: Worth::up_to(LONGEST_YIELD),
            yield_from: AtomicU64::new(0),
        }
    }
}

impl Spin {
    /// Spin for a moment.
    pub fn spin_briefly(&self, news: impl Fn() -> bool) -> bool {
        if news() {
            return true;
        }
        if !cores_are_free() {
            return false;
        }
        let start = Instant::now();
        while start.elapsed() < BRIEF {
            for _ in 0..32 {
                if news() {
                    return true;
                }
                std::hint::spin_loop();
            }
        }
        false
    }

    /// Spin until `news()`; false if it did not come in the time that a spin is worth.
    pub fn until(&self, news: impl Fn() -> bool) -> bool {
        if news() {
            return true;
        }
        let limit = if cores_are_free() { self.spin.limit() } else { Duration::ZERO };
        let start = Instant::now();
        while start.elapsed() < limit {
            for _ in 0..32 {
                if news() {
                    self.spin.paid_off(2);
                    return true;
                }
                std::hint::spin_loop();
            }
        }
        self.spin.failed();
        false
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
        let busy = runnable().is_none_or(|wanting| wanting > cores());
        BUSY.store(u32::from(busy), Ordering::Relaxed);
    }
    BUSY.load(Ordering::Relaxed) == 0
}

/// Nanoseconds since the first call of this function.
fn since_start() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Processes and threads that run or want to, on the whole machine: "0.52 0.41 0.33 2/345 6789".
fn runnable() -> Option<usize> {
    static LOAD: OnceLock<Option<File>> = OnceLock::new();
    let file = LOAD.get_or_init(|| File::open("/proc/loadavg").ok()).as_ref()?;
    let mut text = [0u8; 64];
    let length = file.read_at(&mut text, 0).ok()?;
    let field = std::str::from_utf8(&text[..length]).ok()?.split(' ').nth(3)?;
    field.split('/').next()?.parse().ok()
}

/// Cores that this process may use (affinity and container quota).
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
