//! What the main thread of a process is in while the process is in no call of ours.
//!
//! Looked for when an observer wishes, and never before: a program that nobody looks at pays
//! nothing. Who looks (python/src/observe/main_thread.rs) may have to wait for the interpreter: if that
//! takes long, observers conclude that somebody holds it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::code_location::CodeLocation;

/// How long it may take until it is told: Python's threads give the interpreter away every 5 ms.
pub const PATIENCE: u64 = 50_000_000;
/// Who has waited so long for the interpreter does not get it because a C function holds it, and not
/// because the machine is busy.
const HELD: u64 = 500_000_000;
/// What was seen so lately is not looked for again.
const FRESH: u64 = 20_000_000;
/// What was seen longer ago than that says nothing of now.
const STALE: u64 = 500_000_000;

/// What a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum In {
    /// Its own code: it computes.
    Code = 0,
    /// A read of what somebody types.
    Input = 1,
    /// A lock that somebody else has.
    Lock = 2,
    Sleep = 3,
    /// A wait for a process that it has started.
    Child = 4,
    /// Any other call of the system: files, pipes, the network.
    System = 5,
    /// A C function that holds the interpreter's lock.
    Native = 6,
}

impl In {
    pub const ALL: [(In, &str); 7] = [
        (In::Code, "computes"),
        (In::Input, "input"),
        (In::Lock, "lock"),
        (In::Sleep, "sleep"),
        (In::Child, "child"),
        (In::System, "system"),
        (In::Native, "native"),
    ];

    pub fn name(self) -> &'static str {
        In::ALL[self as usize].1
    }

    fn of(code: u32) -> Option<In> {
        In::ALL.get(code as usize).map(|one| one.0)
    }
}

/// All times are in nanoseconds since 1970; `time` is now, 0 is never.
#[repr(C)]
pub struct MainThread {
    asked: AtomicU64,
    told: AtomicU64,
    location: AtomicU64,
    is_in: AtomicU32,
}

impl MainThread {
    /// Somebody wants to know. True if it is to be looked for, and `tell` called then.
    pub fn ask(&self, time: u64) -> bool {
        let (asked, told) = (self.asked(), self.told());
        if asked > told || time < told.saturating_add(FRESH) {
            return false; // somebody is looking, or has just looked
        }
        self.asked.store(time, Ordering::Release);
        true
    }

    /// `place`: in the program; 0 where that is not known.
    pub fn tell(&self, is_in: In, location: CodeLocation, time: u64) {
        self.is_in.store(is_in as u32, Ordering::Relaxed);
        self.location.store(location, Ordering::Relaxed);
        self.told.store(time.max(self.asked()), Ordering::Release);
    }

    /// Whether it may be told in a moment.
    pub fn is_awaited(&self, time: u64) -> bool {
        let asked = self.asked();
        asked > self.told() && time < asked.saturating_add(PATIENCE)
    }

    /// What it is in, and where; None where that is not known. `since`: it is in no call of ours
    /// since then.
    pub fn seen(&self, since: u64, time: u64) -> Option<(In, CodeLocation)> {
        let (asked, told) = (self.asked(), self.told());
        if asked > told {
            let is_held = asked > since && time >= asked.saturating_add(HELD);
            return is_held.then_some((In::Native, 0));
        }
        let is_in = In::of(self.is_in.load(Ordering::Relaxed))?;
        let is_fresh = told > since && time < told.saturating_add(STALE);
        is_fresh.then(|| (is_in, self.location.load(Ordering::Relaxed)))
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    fn told(&self) -> u64 {
        self.told.load(Ordering::Acquire)
    }
}

/// The main thread's call of the system.
pub struct SystemCall {
    number: i64,
    arguments: [u64; 6],
}

impl SystemCall {
    /// None where it is in none, or the system does not tell.
    pub fn current() -> Option<SystemCall> {
        let path = format!("/proc/self/task/{}/syscall", std::process::id());
        SystemCall::of(&std::fs::read_to_string(path).ok()?)
    }

    /// From a line of proc(5), /proc/PID/syscall.
    fn of(line: &str) -> Option<SystemCall> {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(SystemCall { number, arguments })
    }

    /// `contended`: threads of this process compute, so that a wait with a limit may be for the
    /// interpreter. That is none of the program's.
    pub fn is_in(&self, contended: bool) -> In {
        let [first, second, _, fourth, ..] = self.arguments;
        let polled = |descriptors: u64| if descriptors == 0 { In::Sleep } else { In::System };
        match self.number {
            libc::SYS_futex if fourth != 0 && contended => In::Code,
            libc::SYS_futex => In::Lock,
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => In::Sleep,
            // Of descriptors below 1, which is what `input` of a terminal waits for.
            libc::SYS_pselect6 if first == 1 => In::Input,
            libc::SYS_pselect6 => polled(first),
            libc::SYS_ppoll => polled(second),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select if first == 1 => In::Input,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => polled(first),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => polled(second),
            libc::SYS_read | libc::SYS_readv if first == 0 => In::Input,
            libc::SYS_wait4 | libc::SYS_waitid => In::Child,
            // It was asked to give its processor away, or to do something at once.
            libc::SYS_sched_yield | libc::SYS_madvise | libc::SYS_mmap | libc::SYS_munmap => {
                In::Code
            }
            _ => In::System,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Box<MainThread> {
        // SAFETY: atomics, for which zero is a valid value.
        unsafe { Box::new_zeroed().assume_init() }
    }

    #[test]
    fn what_was_seen_in_this_spell_is_told_and_nothing_older() {
        let (main, begun) = (fresh(), 1_000_000_000);
        assert_eq!(main.seen(0, begun), None);
        assert!(main.ask(begun) && !main.ask(begun) && main.is_awaited(begun));
        assert_eq!(main.seen(0, begun + PATIENCE), None, "it may be told in a moment");
        main.tell(In::Sleep, 7, begun + 1);
        assert!(!main.is_awaited(begun + 1) && !main.ask(begun + FRESH));
        assert_eq!(main.seen(begun, begun + FRESH), Some((In::Sleep, 7)));
        assert_eq!(main.seen(begun + 2, begun + FRESH), None, "it was in a call of ours since");
        assert_eq!(main.seen(0, begun + 1 + STALE), None);
        assert!(main.ask(begun + 1 + FRESH));
    }

    #[test]
    fn who_does_not_get_the_interpreter_knows_that_it_is_held() {
        let (main, begun) = (fresh(), 1_000_000_000);
        assert!(main.ask(begun));
        assert!(!main.is_awaited(begun + PATIENCE) && !main.ask(begun + PATIENCE));
        assert_eq!(main.seen(0, begun + PATIENCE), None);
        assert_eq!(main.seen(0, begun + HELD), Some((In::Native, 0)));
        assert_eq!(main.seen(begun, begun + HELD), None, "the program has gone on since");
    }

    #[test]
    fn calls_of_the_system() {
        let line = |number: i64, words: &str| format!("{number} {words} 0x0 0x0 0x7ffd 0x7f00\n");
        let is_in = |number, words, contended| {
            SystemCall::of(&line(number, words)).map(|call| call.is_in(contended))
        };
        assert_eq!(is_in(libc::SYS_futex, "0x1 0x189 0x0 0x0", true), Some(In::Lock));
        assert_eq!(is_in(libc::SYS_futex, "0x1 0x189 0x0 0x7ff", true), Some(In::Code));
        assert_eq!(is_in(libc::SYS_futex, "0x1 0x189 0x0 0x7ff", false), Some(In::Lock));
        assert_eq!(is_in(libc::SYS_read, "0x0 0x1 0x1 0x0", false), Some(In::Input));
        assert_eq!(is_in(libc::SYS_read, "0x4 0x1 0x1 0x0", false), Some(In::System));
        assert_eq!(is_in(libc::SYS_pselect6, "0x0 0x1 0x1 0x0", false), Some(In::Sleep));
        assert_eq!(is_in(libc::SYS_wait4, "0x5 0x1 0x1 0x0", false), Some(In::Child));
        for none in ["running\n", "-1 0x7ffd 0x7f00\n", "", "7 0x1\n", "7 nonsense"] {
            assert!(SystemCall::of(none).is_none(), "{none}");
        }
    }
}
