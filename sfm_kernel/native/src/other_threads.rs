//! Whether other threads of this process have run meanwhile.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

/// Microseconds of processor time of a thread that runs all the time. The system accounts for it
/// now and then.
const RUNS: i64 = 1000;

/// How often threads that only serve have lost or given up their core.
static SERVING: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// This thread's part of it.
    static SERVED: Cell<i64> = const { Cell::new(0) };
}

/// This thread is about to sleep and has run none of the program's functions: other threads need
/// not look at what it has done. Observers wake the network thread several times a second.
pub fn has_only_served() {
    let now = switches(&usage(libc::RUSAGE_THREAD)) + 1; // with the sleep that begins
    let before = SERVED.replace(now);
    SERVING.fetch_add(now - before, Ordering::Relaxed);
}

/// How much the other threads have run up to now.
#[derive(Clone, Copy)]
pub struct OtherThreads {
    /// How often one of them has lost or given up its core: every thread that wakes does so again.
    switches: i64,
    microseconds: i64,
}

impl OtherThreads {
    pub fn now() -> OtherThreads {
        let (all, this) = (usage(libc::RUSAGE_SELF), usage(libc::RUSAGE_THREAD));
        let microseconds = |usage: &libc::rusage| {
            let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
            seconds * 1_000_000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
        };
        OtherThreads {
            switches: switches(&all) - switches(&this) - SERVING.load(Ordering::Relaxed),
            microseconds: microseconds(&all) - microseconds(&this),
        }
    }

    pub fn have_run_since(self, before: OtherThreads) -> bool {
        self.switches != before.switches || self.microseconds > before.microseconds + RUNS
    }
}

fn switches(usage: &libc::rusage) -> i64 {
    usage.ru_nvcsw + usage.ru_nivcsw
}

fn usage(whose: libc::c_int) -> libc::rusage {
    // SAFETY: numbers, for which zero is valid; getrusage fills them.
    unsafe {
        let mut usage = std::mem::zeroed();
        libc::getrusage(whose, &mut usage);
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_has_woken_has_run() {
        let (to_thread, inbox) = channel::<()>();
        let (answer, answers) = channel();
        let thread =
            std::thread::spawn(move || inbox.iter().for_each(|()| answer.send(()).unwrap()));
        let before = OtherThreads::now();
        for _ in 0..3 {
            to_thread.send(()).unwrap();
            answers.recv().unwrap();
        }
        assert!(OtherThreads::now().have_run_since(before));
        drop(to_thread);
        thread.join().unwrap();
    }
}
