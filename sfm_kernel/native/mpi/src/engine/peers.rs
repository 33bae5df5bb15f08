//! All processes that this one has to do with: those of its world, and whom it has met beside them.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use super::peer::Peer;

/// By number. Those of the world follow each other; the others are found a little slower.
pub struct Peers {
    first: usize,
    world: Box<[Peer]>,
    /// They are never freed, as the engine is not.
    others: RwLock<BTreeMap<usize, &'static Peer>>,
}

impl Peers {
    pub fn new(first: usize, size: usize) -> Peers {
        let world = (first..first + size).map(Peer::new).collect();
        Peers { first, world, others: RwLock::default() }
    }

    /// How many are in the world.
    pub fn in_world(&self) -> usize {
        self.world.len()
    }

    #[inline]
    pub fn get(&self, process: usize) -> &Peer {
        self.world.get(process.wrapping_sub(self.first)).unwrap_or_else(|| self.other(process))
    }

    #[cold]
    fn other(&self, process: usize) -> &'static Peer {
        let known =
            self.others.read().unwrap_or_else(PoisonError::into_inner).get(&process).copied();
        known.unwrap_or_else(|| {
            let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
            others.entry(process).or_insert_with(|| Box::leak(Box::new(Peer::new(process))))
        })
    }

    pub fn all(&self) -> impl Iterator<Item = &Peer> {
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        let others: Vec<&Peer> = others.values().copied().collect();
        self.world.iter().chain(others)
    }
}
