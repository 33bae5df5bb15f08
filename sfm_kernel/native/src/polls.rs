//! Unsuccessful polls: their number, their times, and what they ask for.
//!
//! A process that polls is not blocked, and yet may wait for what never comes. Polling must stay
//! cheap: a count, and a read of a clock that is a little late. What it asks for is written down
//! once the process has polled for a tenth of a second, and then at each observer's request.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::clock::coarse;
use crate::code_location::CodeLocation;
use crate::text::Text;

/// Nanoseconds until a process publishes what it polls for.
const SOON: u64 = 100_000_000;

#[repr(C, align(64))]
pub struct Polls {
    /// Unsuccessful calls since something came.
    count: AtomicU64,
    /// The times of the first and of the latest of them: nanoseconds of the coarse clock.
    since: AtomicU64,
    last: AtomicU64,
    /// The observers' request that the next fields answer, plus 1; 0 if they were not written.
    published: AtomicU32,
    location: AtomicU64,
    /// The wanted message, as JSON.
    about: Text<256>,
}

/// The polls as observers see them.
pub struct Series {
    pub count: u64,
    /// Seconds from the first to the latest, and from that until now.
    pub lasted: f64,
    pub ago: f64,
    pub location: CodeLocation,
    pub about: Option<String>,
}

impl Polls {
    /// Count an unsuccessful call. True if `publish` is to be called: the process has polled for a
    /// while, and has not answered the observers' request of this number yet.
    pub fn failed(&self, request: u32) -> bool {
        let (count, time) = (self.count.load(Ordering::Relaxed) + 1, coarse());
        if count == 1 {
            self.since.store(time, Ordering::Relaxed);
        }
        self.last.store(time, Ordering::Relaxed);
        self.count.store(count, Ordering::Release);
        self.published.load(Ordering::Relaxed) != request.wrapping_add(1)
            && time.saturating_sub(self.since.load(Ordering::Relaxed)) >= SOON
    }

    /// Publish what the latest call asked for, and its location. One thread at a time.
    pub fn publish(&self, request: u32, location: CodeLocation, about: &str) {
        self.location.store(location, Ordering::Relaxed);
        self.about.write(about);
        self.published.store(request.wrapping_add(1), Ordering::Release);
    }

    /// End the series: something has come, or nobody polls any more.
    pub fn end(&self) {
        if self.count.load(Ordering::Relaxed) != 0 {
            self.published.store(0, Ordering::Relaxed);
            self.count.store(0, Ordering::Release);
        }
    }

    /// Whether it is known what the process asks for.
    pub fn is_published(&self) -> bool {
        self.published.load(Ordering::Acquire) != 0
    }

    /// The polls, from a copy and those that were made before and after it; None if nothing was
    /// published.
    pub fn read_between(&self, before: &Polls, after: &Polls) -> Option<Series> {
        let count = self.count.load(Ordering::Acquire);
        if count == 0 || !self.is_published() {
            return None;
        }
        let time = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let (since, last) = (time(&self.since), time(&self.last));
        let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
        Some(Series {
            count,
            lasted: seconds(since, last),
            ago: seconds(last, coarse()),
            location: time(&self.location),
            about: self.about.read_between(&before.about, &after.about),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_published_after_a_while_and_on_request() {
        // SAFETY: atomics, for which zero is a valid value.
        let polls: Box<Polls> = unsafe { Box::new_zeroed().assume_init() };
        let read = || polls.read_between(&polls, &polls);
        assert!(!polls.failed(0) && read().is_none());
        polls.since.store(polls.since.load(Ordering::Relaxed) - SOON, Ordering::Relaxed);
        assert!(polls.failed(0));
        polls.publish(0, 7, "what");
        assert!(!polls.failed(0));
        assert!(polls.failed(1), "an observer asks again");
        let series = read().unwrap();
        assert_eq!((series.count, series.location, series.about.unwrap().as_str()), (4, 7, "what"));
        assert!(series.lasted >= 0.1);
        polls.end();
        assert!(read().is_none() && !polls.failed(1), "the next polls are a new series");
    }
}
