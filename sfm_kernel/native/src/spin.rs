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
/// The same where it waits for a message, which need not come at all.
const LONGEST_WAY: u32 = 200_000;

/// Who is kept from the core for so long, in nanoseconds, has given way to somebody who computes.
const KEPT: u64 = 500_000;
/// So many times as long nobody gives way then: a sleeper who is woken gets the core at once.
const RESENTED: u64 = 8;

/// For how long doing something was worth it lately, in nanoseconds.
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

    fn in_vain(&self) {
        let now = self.now.load(Ordering::Relaxed);
        self.now.store((now / 2).max(SHORTEST), Ordering::Relaxed);
    }

    /// A sleep of `time` was ended by what was waited for: would it have been worth it?
    fn slept(&self, time: Duration, times_longest: u32) {
        if time < Duration::from_nanos(u64::from(times_longest) * u64::from(self.longest)) {
            self.paid_off(4);
        }
    }
}

/// One endpoint's experience with spinning, and with giving way.
pub struct Spin {
    spin: Worth,
    /// Giving way to those who wait for each other, and to those who send messages.
    turns: Worth,
    way: Worth,
    /// Until when no way is given: `since_start`.
    kept_until: AtomicU64,
}

impl Default for Spin {
    fn default() -> Self {
        Spin {
            spin: Worth::up_to(LONGEST),
            turns: Worth::up_to(LONGEST_TURNS),
            way: Worth::up_to(LONGEST_WAY),
            kept_until: AtomicU64::new(0),
        }
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
        self.spin.in_vain();
        false
    }

    /// Give way to whoever wants the core, if anybody does.
    pub fn give_way(&self) {
        if !cores_are_free() {
            std::thread::yield_now();
        }
    }

    /// Give way to whoever wants the core until `news()`; false where that did not pay off lately.
    ///
    /// For those who wait for each other, with more processes than cores: the one that is waited
    /// for is then about to run here. Giving way takes a microsecond, a sleep and a wake-up
    /// several, on both sides.
    pub fn take_turns(&self, news: impl Fn() -> bool) -> bool {
        take_turns(&self.turns, news, |_| false)
    }

    /// `take_turns` for who waits for a message: shorter, for it may be long in coming, and not
    /// where the core then goes to somebody who computes, who keeps it for milliseconds.
    pub fn give_way_until(&self, news: impl Fn() -> bool) -> bool {
        if since_start() < self.kept_until.load(Ordering::Relaxed) {
            return news();
        }
        let kept = |time: Duration| {
            let time = time.as_nanos() as u64;
            if time > KEPT {
                self.kept_until.store(since_start() + RESENTED * time, Ordering::Relaxed);
            }
            time > KEPT
        };
        take_turns(&self.way, news, kept)
    }

    /// A sleep took so long until it was rung: was it the length of a spin, or of some turns?
    pub fn slept(&self, time: Duration) {
        self.spin.slept(time, 1);
        self.way.slept(time, 1);
        // A round of many processes takes so much longer when all of them sleep and are woken.
        self.turns.slept(time, 4);
    }
}

/// `kept`: whether it is enough, since a turn of others took so long.
fn take_turns(worth: &Worth, news: impl Fn() -> bool, kept: impl Fn(Duration) -> bool) -> bool {
    if news() {
        return true;
    }
    let (limit, start) = (worth.limit(), Instant::now());
    let mut before = Duration::ZERO;
    while before < limit {
        std::thread::yield_now();
        let after = start.elapsed();
        let over = kept(after - before);
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
    worth.in_vain();
    false
}

/// Whether there are at least as many cores as processes that want to run, this one included.
fn cores_are_free() -> bool {
    static LOOKED: AtomicU64 = AtomicU64::new(0);
    static BUSY: AtomicU32 = AtomicU32::new(0);
    let now = since_start() + FRESH;
    if now.saturating_sub(LOOKED.load(Ordering::Relaxed)) >= FRESH {
        LOOKED.store(now, Ordering::Relaxed);
        BUSY.store(
            u32::from(runnable().is_none_or(|wanting| wanting > cores())),
            Ordering::Relaxed,
        );
    }
    BUSY.load(Ordering::Relaxed) == 0
}

/// Nanoseconds since this was asked first.
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
