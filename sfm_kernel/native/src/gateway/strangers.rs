//! Connections that have not said Hello yet: their number and their time are limited.
//!
//! Each takes a descriptor, even if a stranger has made it. If there are too many, chance decides
//! which are ended; an evicted member tries again, so members come in however many strangers there
//! are.

use std::time::{Duration, Instant};

use ::ring::rand::{SecureRandom, SystemRandom};

use super::poll::Id;

/// Time within which a connection must say Hello.
pub const PATIENCE: Duration = Duration::from_secs(3);
/// All members of a world may come at once.
const MAX_STRANGERS: usize = 512;

/// The maximum number of strangers: a quarter of this process's descriptors.
pub fn limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes the limits into a variable of this function.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    (limit.rlim_cur as usize / 4).clamp(4, MAX_STRANGERS)
}

pub struct Strangers {
    waiting: Vec<(Id, Instant)>,
    limit: usize,
    random: SystemRandom,
    /// Strangers evicted because there were too many, and because they sent nothing.
    pub crowded: u64,
    pub silent: u64,
}

impl Strangers {
    pub fn new(limit: usize) -> Strangers {
        Strangers { waiting: Vec::new(), limit, random: SystemRandom::new(), crowded: 0, silent: 0 }
    }

    pub fn count(&self) -> usize {
        self.waiting.len()
    }

    pub fn add(&mut self, id: Id, now: Instant) {
        self.waiting.push((id, now));
    }

    /// It has said Hello, or has ended.
    pub fn remove(&mut self, id: Id) {
        self.waiting.retain(|(stranger, _)| *stranger != id);
    }

    /// Evict strangers until the limit is kept; returns them.
    pub fn evict_excess(&mut self) -> Vec<Id> {
        let mut evicted = Vec::new();
        while self.waiting.len() > self.limit {
            evicted.extend(self.evict_one());
        }
        evicted
    }

    /// Evict any stranger, for example because no descriptor is left.
    pub fn evict_one(&mut self) -> Option<Id> {
        let count = self.waiting.len();
        (count > 0).then(|| {
            self.crowded += 1;
            let mut bytes = [0; 8];
            self.random.fill(&mut bytes).expect("the kernel has random numbers");
            self.waiting.swap_remove(u64::from_le_bytes(bytes) as usize % count).0
        })
    }

    /// Remove the strangers whose time is over; returns them.
    pub fn take_late(&mut self, now: Instant) -> Vec<Id> {
        let is_late = |(_, since): &mut (Id, Instant)| now >= *since + PATIENCE;
        let late: Vec<Id> = self.waiting.extract_if(.., is_late).map(|(id, _)| id).collect();
        self.silent += late.len() as u64;
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_strangers_are_evicted_at_random() {
        let now = Instant::now();
        let mut first_stayed = 0;
        for _ in 0..100 {
            let mut strangers = Strangers::new(4);
            for index in 0..8 {
                strangers.add(Id::new(index, 0), now);
            }
            let evicted = strangers.evict_excess();
            assert_eq!((evicted.len(), strangers.count(), strangers.crowded), (4, 4, 4));
            first_stayed += usize::from(!evicted.contains(&Id::new(0, 0)));
        }
        assert!((1..100).contains(&first_stayed), "always the same");
    }

    #[test]
    fn silent_strangers_are_removed() {
        let mut strangers = Strangers::new(4);
        let start = Instant::now();
        for index in 0..3 {
            strangers.add(Id::new(index, 0), start + PATIENCE * index as u32);
        }
        strangers.remove(Id::new(2, 0));
        assert!(strangers.take_late(start).is_empty());
        assert_eq!(strangers.take_late(start + PATIENCE), [Id::new(0, 0)]);
        assert_eq!((strangers.count(), strangers.silent), (1, 1));
        assert!(strangers.evict_one().is_some() && strangers.evict_one().is_none());
    }

    #[test]
    fn the_bound_leaves_descriptors_for_others() {
        assert!((4..=MAX_STRANGERS).contains(&limit()));
    }
}
