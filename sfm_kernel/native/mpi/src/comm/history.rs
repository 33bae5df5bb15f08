//! The latest collective calls of this process on a communicator, for explanations: processes whose
//! calls differ wait for each other in later ones. A call costs one store.
//!
//! Reductions of objects have numbers of their own, which mpi4py gives them: the tags on its own
//! communicator, whose history has them (`object_reductions`).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;

use sfm_endpoint::calltext::EarlierCall;
use sfm_native::sync::lock;

use super::Comm;
use crate::engine::report::Arguments;
use crate::engine::{engine, report, site_of, Alike, Collective};
use crate::op;

/// The largest number of a collective; the numbers of a communicator repeat after it.
pub const LARGEST: u32 = 0x1fff_ffff;
/// In the numbers of non-blocking calls.
pub const BEGUN: i32 = 0x2000_0000;

/// Calls that are kept of either kind, blocking and non-blocking.
const KEPT: usize = 8;

/// From the lowest bit on: `Alike`, the number of the call in the program (`unfinished`), `Collective`,
/// and the number on the communicator plus one. Only the thread in the call writes.
#[derive(Default)]
pub struct History([AtomicU64; 2 * KEPT], Mutex<VecDeque<(u64, Collective, u32)>>);

/// Reductions of objects that are kept, and calls of processes that make a communicator alone.
const OBJECTS_KEPT: usize = 3;

/// Numbers of reductions of objects are not smaller.
const OF_OBJECTS: u64 = 1 << 40;

/// The number of the reduction of objects whose messages have this tag.
pub fn of_objects(tag: i32) -> u64 {
    OF_OBJECTS + tag as u64
}

/// Numbers of calls that make a communicator of some processes alone are not smaller.
const APART: u64 = 1 << 41;

/// The number of a call with this tag in which some processes make a communicator alone.
pub fn apart(tag: i32) -> u64 {
    APART + tag as u64
}

const SITE_BITS: u32 = 11;
const WHAT_BITS: u32 = 6;
const WHAT_AT: u32 = Alike::BITS + SITE_BITS;
const NUMBER_AT: u32 = WHAT_AT + WHAT_BITS;

impl History {
    /// Note a call; `mark`: as in its messages.
    pub fn note(&self, number: i32, what: Collective, mark: u32) {
        let nth = number as usize % KEPT + if number & BEGUN == 0 { 0 } else { KEPT };
        let entry = u64::from(mark) | (what as u64) << WHAT_AT;
        self.0[nth].store(entry | (number as u64 + 1) << NUMBER_AT, Relaxed);
    }

    /// Note a reduction of objects by the tag of its messages; `mark`: as in these.
    pub fn note_of_objects(&self, tag: i32, what: Collective, mark: u32) {
        let (number, mut latest) = (of_objects(tag), lock(&self.1));
        if latest.front().is_none_or(|(known, ..)| *known != number) {
            latest.truncate(OBJECTS_KEPT - 1);
            latest.push_front((number, what, mark));
        }
    }

    /// Note a call in which some processes make a communicator alone.
    pub fn note_apart(&self, tag: i32, what: Collective, mark: u32) {
        let mut latest = lock(&self.1);
        latest.truncate(OBJECTS_KEPT - 1);
        latest.push_front((apart(tag), what, mark));
    }

    /// The latest reduction of objects whose messages have this communicator.
    pub fn turn_of_objects(&self) -> Option<u64> {
        lock(&self.1).front().map(|(number, ..)| *number)
    }

    /// The reductions of objects with their numbers, the latest first.
    pub fn of_objects(&self) -> Vec<(u64, EarlierCall)> {
        let calls = lock(&self.1).clone().into_iter().map(|(number, what, mark)| {
            let given = arguments(Alike::of(mark), None, 0);
            (number, report::earlier_call(site_of(mark), &what.method(), given))
        });
        calls.collect()
    }

    /// The calls in which some processes have made a communicator alone.
    fn apart(&self) -> Vec<(u64, EarlierCall)> {
        let calls = lock(&self.1).clone().into_iter().map(|(number, what, mark)| {
            let arguments = vec![("tag", (number - APART).to_string())];
            (number, report::earlier_call(site_of(mark), what.name(), arguments))
        });
        calls.collect()
    }

    /// The calls with their numbers, the latest first of either kind.
    pub fn latest(&self, comm: &Comm) -> Vec<(u64, EarlierCall)> {
        let mut words: Vec<_> = self.0.iter().map(|entry| entry.load(Relaxed)).collect();
        // If there is no room for all, each kind keeps its latest.
        let nth = |word: &u64| (word >> NUMBER_AT) as i32 & !BEGUN;
        words.sort_unstable_by_key(|word| std::cmp::Reverse(nth(word)));
        let calls = words.into_iter().filter(|word| *word != 0).map(|word| {
            let what = Collective::of((word >> WHAT_AT) as u8 & ((1 << WHAT_BITS) - 1));
            let mark = word as u32 & ((1 << WHAT_AT) - 1);
            let given = match comm.is_internal {
                true => vec![], // the program has not given them
                false => arguments(Alike::of(mark), Some(comm), engine().rank),
            };
            (
                (word >> NUMBER_AT).wrapping_sub(1),
                report::earlier_call(site_of(mark), what.name(), given),
            )
        });
        calls.chain(if comm.is_internal { vec![] } else { self.apart() }).collect()
    }
}

/// What a process has given of a call's arguments that all give alike; `comm`: of the call, if it
/// is known.
pub fn arguments(alike: Alike, comm: Option<&Comm>, process: usize) -> Arguments {
    let op = op::name_of(alike.op()).map(|name| ("op", name.to_owned()));
    let given = |root: u32| match comm.filter(|comm| comm.remote.is_some()) {
        _ if root == Alike::NO_ROOT - 1 => "MPI_PROC_NULL".into(),
        Some(comm) => comm.root_given(root as usize, process),
        None => root.to_string(),
    };
    let root = alike.root().checked_sub(1).map(|root| ("root", given(root)));
    op.into_iter().chain(root).collect()
}
