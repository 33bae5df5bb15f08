//! All processes that this one has to do with: those of its world, and whom it has met beside them.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{PoisonError, RwLock};

use super::peer::Peer;
use crate::handles::*;

/// By number. Those of a program's world follow each other; engines, and whom the process has met
/// beside its world, are found a little slower.
pub struct Peers {
    first: usize,
    world: Box<[Peer]>,
    /// They are never freed, as the engine is not.
    others: RwLock<BTreeMap<usize, &'static Peer>>,
    /// The one of them that was looked for last.
    latest: AtomicPtr<Peer>,
}

impl Peers {
    /// `first`: the number of rank 0, if the others of the world follow it.
    pub fn new(first: Option<c_int>, size: usize) -> Peers {
        let (first, size) = first.map_or((0, 0), |first| (first as usize, size));
        let world = (first..first + size).map(Peer::new).collect();
        Peers { first, world, others: RwLock::default(), latest: AtomicPtr::default() }
    }

    #[inline]
    pub fn get(&self, process: usize) -> &Peer {
        self.world.get(process.wrapping_sub(self.first)).unwrap_or_else(|| self.other(process))
    }

    fn other(&self, process: usize) -> &'static Peer {
        // SAFETY: null, or one that is never freed.
        if let Some(latest) = unsafe { self.latest.load(Acquire).as_ref() } {
            if latest.rank == process {
                return latest;
            }
        }
        let found = self.find(process);
        self.latest.store(ptr::from_ref(found).cast_mut(), Release);
        found
    }

    fn find(&self, process: usize) -> &'static Peer {
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
