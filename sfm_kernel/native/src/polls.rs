//! Calls that ask in vain, again and again: how often, since when, and for what.
//!
//! A process that polls is not blocked, and yet may wait for what never comes. Asking must stay
//! cheap: a count, and a look at a clock that is a little late. What is asked for is written down
//! once the process has polled for a tenth of a second, and then when an observer wishes.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::clock::coarse;
use crate::code_location::CodeLocation;
use crate::text::Text;

/// Nanoseconds until it is told what is asked for.
const SOON: u64 = 100_000_000;

#[repr(C, align(64))]
pub struct Polls {
    /// Calls in vain since something came.
    count: AtomicU64,
    /// When the first and the latest of them were: nanoseconds of the coarse clock.
    since: AtomicU64,
    last: AtomicU64,
    /// The observers' wish up to which the next ones were written, plus 1; 0 where they were not.
    told: AtomicU32,
    location: AtomicU64,
    /// What is asked for, as JSON.
    about: Text<256>,
}

/// What observers see.
pub struct Series {
    pub count: u64,
    /// Seconds from the first to the latest, and from that until now.
    pub lasted: f64,
    pub ago: f64,
    pub location: CodeLocation,
    pub about: Option<String>,
}

impl Polls {
    /// A call has asked in vain. True if `tell` is to be called: nobody knows what for, and an
    /// observer has wished, for the `wish`th time, to know.
    pub fn failed(&self, wish: u32) -> bool {
        let (count, time) = (self.count.load(Ordering::Relaxed) + 1, coarse());
        if count == 1 {
            self.since.store(time, Ordering::Relaxed);
        }
        self.last.store(time, Ordering::Relaxed);
        self.count.store(count, Ordering::Release);
        self.told.load(Ordering::Relaxed) != wish.wrapping_add(1)
            && time.saturating_sub(self.since.load(Ordering::Relaxed)) >= SOON
    }

    /// Write down what the latest call asked for, and from where. One thread at a time.
    pub fn tell(&self, wish: u32, location: CodeLocation, about: &str) {
        self.location.store(location, Ordering::Relaxed);
        self.about.write(about);
        self.told.store(wish.wrapping_add(1), Ordering::Release);
    }

    /// Something has come, or nobody asks any more.
    pub fn end(&self) {
        if self.count.load(Ordering::Relaxed) != 0 {
            self.told.store(0, Ordering::Relaxed);
            self.count.store(0, Ordering::Release);
        }
    }

    /// Whether it is known what is asked for.
    pub fn is_told(&self) -> bool {
        self.told.load(Ordering::Acquire) != 0
    }

    /// The calls in vain, from a copy and those that were made before and after it; None where
    /// nothing is known of them.
    pub fn read_between(&self, before: &Polls, after: &Polls) -> Option<Series> {
        let count = self.count.load(Ordering::Acquire);
        if count == 0 || !self.is_told() {
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
    fn what_is_asked_for_is_told_after_a_while_and_when_it_is_wished() {
        // SAFETY: atomics, for which zero is a valid value.
        let polls: Box<Polls> = unsafe { Box::new_zeroed().assume_init() };
        let read = || polls.read_between(&polls, &polls);
        assert!(!polls.failed(0) && read().is_none());
        polls.since.store(polls.since.load(Ordering::Relaxed) - SOON, Ordering::Relaxed);
        assert!(polls.failed(0));
        polls.tell(0, 7, "what");
        assert!(!polls.failed(0));
        assert!(polls.failed(1), "an observer wishes");
        let series = read().unwrap();
        assert_eq!((series.count, series.location, series.about.unwrap().as_str()), (4, 7, "what"));
        assert!(series.lasted >= 0.1);
        polls.end();
        assert!(read().is_none() && !polls.failed(1), "the next ones are others");
    }
}
