//! Time, as cheaply as each use allows.

use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

/// Nanoseconds since 1970, within a microsecond of the system's clock. Some 15 ns where the
/// processor's counter can be used for it, 30 ns elsewhere.
pub fn now() -> u64 {
    static ANCHOR: Anchor = Anchor::new();
    match counter() {
        Some(ticks) => ANCHOR.time(ticks, both),
        None => real(),
    }
}

/// The counter and the clock at one moment.
#[cold]
fn both() -> (u64, u64) {
    const SOON: u64 = 1 << 12; // ticks: nobody has interrupted us
    let ticks = || counter().unwrap_or(0);
    for _ in 0..10 {
        let (before, time, after) = (ticks(), real(), ticks());
        if after.wrapping_sub(before) < SOON {
            return (before + (after - before) / 2, time);
        }
    }
    (ticks(), real())
}

fn real() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Nanoseconds since some time in the past, up to 4 ms late. Some 7 ns.
pub fn coarse() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the struct; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The processor's counter, where the kernel itself trusts it: then it runs at one speed and is
/// the same on all cores.
#[cfg(target_arch = "x86_64")]
fn counter() -> Option<u64> {
    const UNKNOWN: u32 = 0;
    const TRUSTED: u32 = 1;
    const DISTRUSTED: u32 = 2;
    static KERNEL: AtomicU32 = AtomicU32::new(UNKNOWN);
    let mut kernel = KERNEL.load(Ordering::Relaxed);
    if kernel == UNKNOWN {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let source = std::fs::read_to_string(source);
        let trusts = source.is_ok_and(|source| source.trim() == "tsc");
        kernel = if trusts { TRUSTED } else { DISTRUSTED };
        KERNEL.store(kernel, Ordering::Relaxed);
    }
    // SAFETY: every x86-64 processor has it, and a kernel that uses it lets its users.
    (kernel == TRUSTED).then(|| unsafe { std::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> Option<u64> {
    None
}

/// For so many ticks, some 0.1 s, time is counted on from what the clock said.
const SPAN: u64 = 1 << 28;
/// The least and most ticks from which the counter's speed is learned: fewer are too inexact, and
/// in more of them the clock may have been set.
const LEARN: std::ops::Range<u64> = 1 << 25..1 << 33;

/// A moment at which both the counter and the clock were read, for all threads. A sequence lock:
/// whoever cannot read it, or renew it, asks the clock.
struct Anchor {
    version: AtomicU32,
    ticks: AtomicU64,
    time: AtomicU64,
    /// Nanoseconds for 2^32 ticks; 0 until it is learned.
    rate: AtomicU64,
}

impl Anchor {
    const fn new() -> Anchor {
        Anchor {
            version: AtomicU32::new(0),
            ticks: AtomicU64::new(0),
            time: AtomicU64::new(0),
            rate: AtomicU64::new(0),
        }
    }

    /// The time at which the counter stood at `ticks`, which is now. `look` reads counter and clock.
    fn time(&self, ticks: u64, look: impl Fn() -> (u64, u64)) -> u64 {
        let version = self.version.load(Ordering::Acquire);
        let since = ticks.wrapping_sub(self.ticks.load(Ordering::Relaxed));
        let time = self.time.load(Ordering::Relaxed);
        let rate = self.rate.load(Ordering::Relaxed);
        // SYNC POINT clock: what was read before the second look at the version.
        fence(Ordering::Acquire);
        if version % 2 == 1 || self.version.load(Ordering::Relaxed) != version {
            return look().1;
        }
        if rate != 0 && since < SPAN {
            return time + ((since * rate) >> 32);
        }
        self.renew(version, look)
    }

    #[cold]
    fn renew(&self, version: u32, look: impl Fn() -> (u64, u64)) -> u64 {
        let (ticks, now) = look();
        let since = ticks.wrapping_sub(self.ticks.load(Ordering::Relaxed));
        let (time, rate) = (self.time.load(Ordering::Relaxed), self.rate.load(Ordering::Relaxed));
        let learns = time != 0 && LEARN.contains(&since);
        if time != 0 && rate == 0 && since < LEARN.start {
            return now; // too early to learn
        }
        let taken = self.version.compare_exchange(
            version,
            version.wrapping_add(1),
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if taken.is_err() {
            return now; // another thread is at it
        }
        // SYNC POINT clock: the odd version before what follows.
        fence(Ordering::Release);
        let rate = match learns {
            true => learned(since, now.saturating_sub(time), rate),
            false => rate,
        };
        self.ticks.store(ticks, Ordering::Relaxed);
        self.time.store(now, Ordering::Relaxed);
        self.rate.store(rate, Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release);
        now
    }
}

/// The speed of a counter that has counted `ticks` in `time`; 0 where that is far from what was
/// known: somebody has set the clock.
fn learned(ticks: u64, time: u64, known: u64) -> u64 {
    let rate = (u128::from(time) << 32) / u128::from(ticks);
    let rate = u64::try_from(rate).unwrap_or(0);
    // So that `since * rate` cannot overflow: a counter slower than 16 MHz is none.
    let likely = (1..1 << 36).contains(&rate) && (known == 0 || rate.abs_diff(known) < known / 500);
    if likely {
        rate
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn it_keeps_to_the_clock_in_all_threads() {
        let watch = || {
            let end = real() + 500_000_000;
            while real() < end {
                let (before, time, after) = (real(), now(), real());
                // A clock that is being adjusted runs up to 500 parts in a million fast or slow.
                let slack = 200_000;
                assert!(before < time + slack && time < after + slack, "{before} {time} {after}");
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(watch);
            }
        });
    }

    /// A counter of 3 ticks for a nanosecond, and a clock.
    struct Machine {
        ticks: Cell<u64>,
        clock: Cell<u64>,
        looks: Cell<u32>,
    }

    impl Machine {
        fn pass(&self, nanoseconds: u64) {
            self.ticks.set(self.ticks.get().wrapping_add(3 * nanoseconds));
            self.clock.set(self.clock.get() + nanoseconds);
        }
        fn look(&self) -> (u64, u64) {
            self.looks.set(self.looks.get() + 1);
            (self.ticks.get(), self.clock.get())
        }
        fn time(&self, anchor: &Anchor) -> u64 {
            anchor.time(self.ticks.get(), || self.look())
        }
        fn off(&self, anchor: &Anchor) -> u64 {
            self.time(anchor).abs_diff(self.clock.get())
        }
    }

    #[test]
    fn the_clock_is_asked_now_and_then() {
        let (anchor, start) = (Anchor::new(), u64::MAX - 1_000_000_000);
        let machine =
            Machine { ticks: Cell::new(start), clock: Cell::new(1 << 60), looks: Cell::new(0) };
        for _ in 0..100_000 {
            machine.pass(10_000); // a second in all; the counter overflows meanwhile
            assert!(machine.off(&anchor) <= 1);
        }
        assert!(machine.looks.get() < 1200 + 20, "{}", machine.looks.get());
    }

    #[test]
    fn neither_a_clock_that_is_set_nor_a_counter_that_jumps_leads_astray() {
        let anchor = Anchor::new();
        let machine =
            Machine { ticks: Cell::new(5), clock: Cell::new(1 << 60), looks: Cell::new(0) };
        for nth in 0..400 {
            machine.pass(5_000_000);
            machine.time(&anchor);
            match nth {
                100 => machine.clock.set(machine.clock.get() - 3_600_000_000_000),
                200 => machine.ticks.set(7),
                300 => machine.ticks.set(machine.ticks.get() + (1 << 40)),
                _ => {}
            }
            // Within a span (18 steps) it has noticed, and some steps later it has learned again.
            let settled = nth % 100 > 25 || nth < 100;
            assert!(!settled || machine.off(&anchor) <= 1, "{nth}: {}", machine.off(&anchor));
        }
    }
}
