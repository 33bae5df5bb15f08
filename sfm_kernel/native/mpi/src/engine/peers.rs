//! All peers of this process: those of its world, and those it has met outside (accept, connect,
//! join).

use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{PoisonError, RwLock};

use super::peer::Peer;
use crate::handles::*;

/// By number. The processes of a program's world have consecutive numbers; engines, and processes
/// met outside the world, take a little longer to find.
pub struct Peers {
    first: usize,
    world: Box<[Peer]>,
    /// Never freed, like the engine.
    others: RwLock<BTreeMap<usize, &'static Peer>>,
    /// The most recently used of them.
    latest: AtomicPtr<Peer>,
}

impl Peers {
    /// `first`: the number of rank 0, if the world's numbers are consecutive.
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
        // SAFETY: it is null, or a peer in `others`, none of which is ever freed.
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
