//! How long to spin before a sleep.
//!
//! Waking a sleeping process costs 3 us where its core is awake, and 50 us and more where a
//! virtual machine's core has gone to sleep with it. A spin saves that if the message comes soon
//! and the core is not needed by anybody. Eight engines on two cores is the normal case in a
//! class, so two conditions must hold: cores are free now, and spinning has paid off lately.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Longest spin, in nanoseconds: a few times what a wake-up costs.
const LONGEST: u32 = 150_000;
/// Shortest: so little that nobody is kept from a core.
const SHORTEST: u32 = 1_000;
/// What giving back Python's GIL and taking it again is worth.
const GLANCE: Duration = Duration::from_micros(3);
/// How old the knowledge about free cores may be, in nanoseconds.
const FRESH: u64 = 10_000_000;

/// Longest time, in nanoseconds, that a process gives way to others again and again.
const LONGEST_TURNS: u32 = 1_000_000;

/// One endpoint's experience with spinning.
pub struct Spin {
    budget: AtomicU32,
    turns: AtomicU32,
}

impl Default for Spin {
    fn default() -> Self {
        Spin { budget: AtomicU32::new(LONGEST), turns: AtomicU32::new(LONGEST_TURNS) }
    }
}

impl Spin {
    /// Spin for a moment.
    pub fn glance(&self, news: impl Fn() -> bool) -> bool {
        if news() {
            return true;
        }
        if !cores_are_free() {
            return false;
        }
        let start = Instant::now();
        while start.elapsed() < GLANCE {
            for _ in 0..32 {
                if news() {
                    return true;
                }
                std::hint::spin_loop();
            }
        }
        false
    }

    /// Spin until `news()`; false where it did not come in the time that a spin is worth.
    pub fn until(&self, news: impl Fn() -> bool) -> bool {
        if news() {
            return true;
        }
        let budget = self.budget.load(Ordering::Relaxed);
        let limit = Duration::from_nanos(u64::from(if cores_are_free() { budget } else { 0 }));
        let start = Instant::now();
        while start.elapsed() < limit {
            for _ in 0..32 {
                if news() {
                    self.budget.store((budget * 2).min(LONGEST), Ordering::Relaxed);
                    return true;
                }
                std::hint::spin_loop();
            }
        }
        self.budget.store((budget / 2).max(SHORTEST), Ordering::Relaxed);
        false
    }

    /// Give way to whoever wants the core until `news()`; false where that did not pay off lately.
    ///
    /// For those who wait for each other, with more processes than cores: the one that is waited
    /// for is then about to run here. Giving way takes a microsecond, a sleep and a wake-up
    /// several, on both sides.
    pub fn take_turns(&self, news: impl Fn() -> bool) -> bool {
        if news() {
            return true;
        }
        let budget = self.turns.load(Ordering::Relaxed);
        let limit = Duration::from_nanos(u64::from(budget));
        let start = Instant::now();
        while start.elapsed() < limit {
            std::thread::yield_now();
            if news() {
                self.turns.store((budget * 2).min(LONGEST_TURNS), Ordering::Relaxed);
                return true;
            }
        }
        self.turns.store((budget / 2).max(SHORTEST), Ordering::Relaxed);
        false
    }

    /// A sleep took so long until it was rung: was it a spin's length?
    pub fn slept(&self, time: Duration) {
        if time < Duration::from_nanos(u64::from(LONGEST)) {
            let budget = self.budget.load(Ordering::Relaxed);
            self.budget.store((budget * 4).min(LONGEST), Ordering::Relaxed);
        }
        // A round of many processes takes so much longer when all of them sleep and are woken.
        if time < Duration::from_nanos(4 * u64::from(LONGEST_TURNS)) {
            let turns = self.turns.load(Ordering::Relaxed);
            self.turns.store((turns * 4).min(LONGEST_TURNS), Ordering::Relaxed);
        }
    }
}

/// Whether there are at least as many cores as processes that want to run, this one included.
fn cores_are_free() -> bool {
    static START: OnceLock<Instant> = OnceLock::new();
    static LOOKED: AtomicU64 = AtomicU64::new(0);
    static BUSY: AtomicU32 = AtomicU32::new(0);
    let now = START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + FRESH;
    if now.saturating_sub(LOOKED.load(Ordering::Relaxed)) >= FRESH {
        LOOKED.store(now, Ordering::Relaxed);
        BUSY.store(
            u32::from(runnable().is_none_or(|wanting| wanting > cores())),
            Ordering::Relaxed,
        );
    }
    BUSY.load(Ordering::Relaxed) == 0
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
