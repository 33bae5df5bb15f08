//! Connections that have said nothing yet: how many there may be, and for how long.
//!
//! Each takes a descriptor, whoever has made it. Of too many some have to go, and chance decides
//! which: who is unlucky tries again, so that members come in however many others knock.

use std::time::{Duration, Instant};

use ::ring::rand::{SecureRandom, SystemRandom};

use super::poll::Id;

/// A connection that has not said Hello after so long is hung up on.
pub const PATIENCE: Duration = Duration::from_secs(3);
/// All members of a world may come at once.
const MOST: usize = 512;

/// How many strangers there may be: a quarter of the descriptors that this process may have.
pub fn most() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes the limits there.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    (limit.rlim_cur as usize / 4).clamp(4, MOST)
}

pub struct Strangers {
    ones: Vec<(Id, Instant)>,
    most: usize,
    random: SystemRandom,
    /// How many were turned away because they were too many, and because they said nothing.
    pub crowded: u64,
    pub mute: u64,
}

impl Strangers {
    pub fn new(most: usize) -> Strangers {
        Strangers { ones: Vec::new(), most, random: SystemRandom::new(), crowded: 0, mute: 0 }
    }

    pub fn count(&self) -> usize {
        self.ones.len()
    }

    pub fn come(&mut self, id: Id, now: Instant) {
        self.ones.push((id, now));
    }

    /// It has said Hello, or is gone.
    pub fn gone(&mut self, id: Id) {
        self.ones.retain(|one| one.0 != id);
    }

    /// Who has to go because there are too many.
    pub fn too_many(&mut self) -> Vec<Id> {
        let mut unlucky = Vec::new();
        while self.ones.len() > self.most {
            unlucky.extend(self.any());
        }
        unlucky
    }

    /// Anyone of them, who has to go: there is no descriptor left, say.
    pub fn any(&mut self) -> Option<Id> {
        let count = self.ones.len();
        (count > 0).then(|| {
            self.crowded += 1;
            let mut bytes = [0; 8];
            self.random.fill(&mut bytes).expect("the kernel has random numbers");
            self.ones.swap_remove(u64::from_le_bytes(bytes) as usize % count).0
        })
    }

    /// Who has said nothing for too long.
    pub fn late(&mut self, now: Instant) -> Vec<Id> {
        let is_late = |one: &mut (Id, Instant)| now >= one.1 + PATIENCE;
        let late: Vec<Id> = self.ones.extract_if(.., is_late).map(|one| one.0).collect();
        self.mute += late.len() as u64;
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_some_go_whoever_they_are() {
        let now = Instant::now();
        let mut kept_first = 0;
        for _ in 0..100 {
            let mut strangers = Strangers::new(4);
            for place in 0..8 {
                strangers.come(Id::new(place, 0), now);
            }
            let unlucky = strangers.too_many();
            assert_eq!((unlucky.len(), strangers.count(), strangers.crowded), (4, 4, 4));
            kept_first += usize::from(!unlucky.contains(&Id::new(0, 0)));
        }
        assert!((1..100).contains(&kept_first), "always the same");
    }

    #[test]
    fn who_says_nothing_goes() {
        let mut strangers = Strangers::new(4);
        let start = Instant::now();
        for place in 0..3 {
            strangers.come(Id::new(place, 0), start + PATIENCE * place as u32);
        }
        strangers.gone(Id::new(2, 0));
        assert!(strangers.late(start).is_empty());
        assert_eq!(strangers.late(start + PATIENCE), [Id::new(0, 0)]);
        assert_eq!((strangers.count(), strangers.mute), (1, 1));
        assert!(strangers.any().is_some() && strangers.any().is_none());
    }

    #[test]
    fn the_bound_leaves_descriptors_for_others() {
        assert!((4..=MOST).contains(&most()));
    }
}
