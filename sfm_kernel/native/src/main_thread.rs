//! The activity of a process's main thread while the process is in no call of ours.
//!
//! Examined when an observer requests it, and never before: an unobserved program pays nothing. The
//! examining thread (python/src/observe/main_thread.rs) may have to wait for the interpreter: if
//! that takes long, observers conclude that another thread holds it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::code_location::CodeLocation;

/// Nanoseconds that an answer may take: Python's threads release the interpreter every 5 ms.
pub const PATIENCE: u64 = 50_000_000;
/// Nanoseconds after which a thread does not get the interpreter because a C function holds it, and
/// not because the machine is busy.
const HELD: u64 = 500_000_000;
/// Nanoseconds for which an observation is not repeated.
const FRESH: u64 = 20_000_000;
/// Nanoseconds after which an observation says nothing about the present.
const STALE: u64 = 500_000_000;

/// The activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum In {
    /// Python or program code: it computes.
    Code = 0,
    /// A read of what a person types.
    Input = 1,
    /// A lock that another thread has.
    Lock = 2,
    Sleep = 3,
    /// A wait for a process that it has started.
    Child = 4,
    /// Any other system call: files, pipes, the network.
    System = 5,
    /// A C function that holds the interpreter's lock.
    Native = 6,
    /// A lock, without a limit, that only a message could release: no other thread of the program.
    Held = 7,
}

impl In {
    pub const ALL: [(In, &str); 8] = [
        (In::Code, "computes"),
        (In::Input, "input"),
        (In::Lock, "lock"),
        (In::Sleep, "sleep"),
        (In::Child, "child"),
        (In::System, "system"),
        (In::Native, "native"),
        (In::Held, "held"),
    ];

    pub fn name(self) -> &'static str {
        In::ALL[self as usize].1
    }

    fn of(code: u32) -> Option<In> {
        In::ALL.get(code as usize).map(|entry| entry.0)
    }
}

/// All times are in nanoseconds since 1970; `time` is now, 0 is never.
#[repr(C)]
pub struct MainThread {
    asked: AtomicU64,
    published: AtomicU64,
    location: AtomicU64,
    is_in: AtomicU32,
}

impl MainThread {
    /// An observer asks. True if the thread is to be examined, and `publish` called then.
    pub fn ask(&self, time: u64) -> bool {
        let (asked, published) = (self.asked(), self.published());
        if asked > published || time < published.saturating_add(FRESH) {
            return false; // another thread is examining it, or has just done so
        }
        self.asked.store(time, Ordering::Release);
        true
    }

    /// Publish an observation. `location`: in the program; 0 if that is not known.
    pub fn publish(&self, is_in: In, location: CodeLocation, time: u64) {
        self.is_in.store(is_in as u32, Ordering::Relaxed);
        self.location.store(location, Ordering::Relaxed);
        self.published.store(time.max(self.asked()), Ordering::Release);
    }

    /// Whether an answer may come in a moment.
    pub fn is_awaited(&self, time: u64) -> bool {
        let asked = self.asked();
        asked > self.published() && time < asked.saturating_add(PATIENCE)
    }

    /// Its activity and location; None if that is not known. `since`: the time since which it
    /// has been in no call of ours.
    pub fn seen(&self, since: u64, time: u64) -> Option<(In, CodeLocation)> {
        let (asked, published) = (self.asked(), self.published());
        if asked > published {
            let is_held = asked > since && time >= asked.saturating_add(HELD);
            return is_held.then_some((In::Native, 0));
        }
        let is_in = In::of(self.is_in.load(Ordering::Relaxed))?;
        let is_fresh = published > since && time < published.saturating_add(STALE);
        is_fresh.then(|| (is_in, self.location.load(Ordering::Relaxed)))
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }
}

/// A thread's system call.
#[derive(PartialEq)]
pub struct SystemCall {
    pub number: i64,
    pub arguments: [u64; 6],
}

impl SystemCall {
    /// The main thread's; None if it is in none, or the system does not say.
    pub fn current() -> Option<SystemCall> {
        SystemCall::of_thread(std::process::id())
    }

    /// That of a thread of this process.
    pub fn of_thread(id: u32) -> Option<SystemCall> {
        let path = format!("/proc/self/task/{id}/syscall");
        SystemCall::of(&std::fs::read_to_string(path).ok()?)
    }

    /// From a line of proc(5), /proc/PID/syscall.
    pub fn of(line: &str) -> Option<SystemCall> {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(SystemCall { number, arguments })
    }

    /// Whether it waits for a lock, perhaps the interpreter's.
    pub fn is_lock(&self) -> bool {
        self.number == libc::SYS_futex
    }

    /// Whether it waits for a lock, or in an event loop, and would wait for ever. The interpreter's
    /// lock is waited for a few milliseconds at a time.
    pub fn is_for_ever(&self) -> bool {
        self.is_lock() && self.arguments[3] == 0 || self.is_loop() && self.arguments[3] as i32 == -1
    }

    fn is_loop(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.number == libc::SYS_epoll_wait {
            return true;
        }
        self.number == libc::SYS_epoll_pwait
    }

    /// `contended`: threads of this process compute, so that a wait with a limit may be for the
    /// interpreter. The program itself does not wait then.
    pub fn is_in(&self, contended: bool) -> In {
        let [first, second, _, fourth, ..] = self.arguments;
        let polled = |descriptors: u64| if descriptors == 0 { In::Sleep } else { In::System };
        match self.number {
            libc::SYS_futex if fourth != 0 && contended => In::Code,
            libc::SYS_futex => In::Lock,
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => In::Sleep,
            // Only descriptor 0: `input` of a terminal waits for that.
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
            // It has yielded its core, or asked for something that is done at once.
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
    fn only_observations_since_the_last_call_count() {
        let (main, begun) = (fresh(), 1_000_000_000);
        assert_eq!(main.seen(0, begun), None);
        assert!(main.ask(begun) && !main.ask(begun) && main.is_awaited(begun));
        assert_eq!(main.seen(0, begun + PATIENCE), None, "an answer may come in a moment");
        main.publish(In::Sleep, 7, begun + 1);
        assert!(!main.is_awaited(begun + 1) && !main.ask(begun + FRESH));
        assert_eq!(main.seen(begun, begun + FRESH), Some((In::Sleep, 7)));
        assert_eq!(main.seen(begun + 2, begun + FRESH), None, "it was in a call of ours since");
        assert_eq!(main.seen(0, begun + 1 + STALE), None);
        assert!(main.ask(begun + 1 + FRESH));
    }

    #[test]
    fn a_long_wait_for_the_interpreter_means_native_code() {
        let (main, begun) = (fresh(), 1_000_000_000);
        assert!(main.ask(begun));
        assert!(!main.is_awaited(begun + PATIENCE) && !main.ask(begun + PATIENCE));
        assert_eq!(main.seen(0, begun + PATIENCE), None);
        assert_eq!(main.seen(0, begun + HELD), Some((In::Native, 0)));
        assert_eq!(main.seen(begun, begun + HELD), None, "the program has gone on since");
    }

    #[test]
    fn system_calls_are_classified() {
        let line = |number: i64, words: &str| format!("{number} {words} 0x0 0x0 0x7ffd 0x7f00\n");
        let is_in = |number, words, contended| {
            SystemCall::of(&line(number, words)).map(|call| call.is_in(contended))
        };
        assert_eq!(is_in(libc::SYS_futex, "0x1 0x189 0x0 0x0", true), Some(In::Lock));
        let lasts =
            |words: &str| SystemCall::of(&line(libc::SYS_futex, words)).unwrap().is_for_ever();
        assert!(lasts("0x1 0x189 0x0 0x0") && !lasts("0x1 0x189 0x0 0x7ff"));
        let waits = |limit: &str| {
            let words = format!("0x5 0x7ff 0x2 {limit} 0x0");
            SystemCall::of(&line(libc::SYS_epoll_pwait, &words)).unwrap().is_for_ever()
        };
        assert!(waits("0xffffffff") && !waits("0x64"));
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
