//! Numbers of processes, by which groups and messages name them: the same everywhere, also between
//! programs that were started apart and meet through a port.
//!
//! A number says which launch the process is of, and which of its processes it is, those counted that
//! were spawned later. A launch is one call of the launcher, or a process that nothing has started.
//! It has its number as long as it lives: it holds a socket of that name.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sfm_endpoint::Name;

use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::home::Engines;
use crate::making::COUNTING;
use crate::sockets;

/// Bits of a number, as many as there are in a message's note (`engine::Note`).
pub const BITS: u32 = 24;
/// Of which so many say which process of its launch it is.
const NTH: u32 = 14;
/// Of an engine's, so many say which of those it is that have had its slot.
const UIDS: u32 = 5;
const LAUNCHES: usize = 1 << (BITS - NTH);

/// What this process is: set by whoever has started it (sfm_kernel/mpi/launch/crew.py).
#[derive(Debug)]
pub struct Own {
    /// The name of the folder in which the processes of its launch find each other.
    pub world: String,
    launch: usize,
    /// Which process of the launch has rank 0 in our MPI_COMM_WORLD.
    first: usize,
    /// In MPI_COMM_WORLD.
    pub rank: usize,
    pub size: usize,
    /// Of engines, whose numbers do not follow each other: that of each, and what it is called.
    engines: Option<Vec<(c_int, Name)>>,
}

static OWN: AtomicPtr<Own> = AtomicPtr::new(std::ptr::null_mut());
static MAKING: Mutex<()> = Mutex::new(());

/// Of all engines that there have been, as far as this one has seen them: the core's numbers.
static UIDS_OF: Mutex<BTreeMap<usize, u128>> = Mutex::new(BTreeMap::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See `home::uid_of`.
pub fn uid_of(process: usize) -> Option<u128> {
    lock(&UIDS_OF).get(&process).copied()
}

fn known() -> Option<&'static Own> {
    // SAFETY: null, or a box that is never freed.
    unsafe { OWN.load(Acquire).as_ref() }
}

/// The environment is read once; an error of it is that of MPI_Init.
pub fn read() -> Answer<&'static Own> {
    let _one_at_a_time = lock(&MAKING);
    match known() {
        Some(own) => Ok(own),
        None => Own::of_environment().map(set),
    }
}

/// This process; after MPI_Init.
pub fn own() -> &'static Own {
    known().unwrap_or_else(|| read().unwrap_or_else(|_| set(Own::alone())))
}

/// This is what the process is from now on. Of what it was before somebody may still speak.
pub fn set(own: Own) -> &'static Own {
    let own: &'static Own = Box::leak(Box::new(own));
    OWN.store(std::ptr::from_ref(own).cast_mut(), Release);
    own
}

/// Whether the environment that the launcher has made is meant for this process: what a rank starts
/// has it, too, and is no rank.
pub fn is_rank() -> bool {
    let pid = std::env::var("SFM_MPI_PID").ok();
    pid.is_none_or(|pid| pid == std::process::id().to_string())
}

impl Own {
    fn of_environment() -> Answer<Own> {
        let world = std::env::var("SFM_MPI_WORLD").ok().filter(|name| !name.is_empty());
        let Some(world) = world.filter(|_| is_rank()) else { return Ok(Own::alone()) };
        let given = |name, other| Ok(number(name)?.unwrap_or(other));
        let (rank, size) = (given("SFM_MPI_RANK", 0)?, given("SFM_MPI_SIZE", 1)?);
        let (launch, first) = (given("SFM_MPI_LAUNCH", 0)?, given("SFM_MPI_FIRST", 0)?);
        if rank >= size {
            let text = format!("SFM_MPI_RANK={rank}, but SFM_MPI_SIZE={size}");
            return Err(fail(MPI_ERR_OTHER, text));
        }
        if launch >= LAUNCHES || first + size > 1 << NTH {
            let text = format!("SFM_MPI_LAUNCH={launch} or SFM_MPI_FIRST={first} is too large");
            return Err(fail(MPI_ERR_OTHER, text));
        }
        Ok(Own { world, launch, first, rank, size, engines: None })
    }

    /// An engine. Its number is another one than that of any engine that has had its rank before.
    pub fn engine(engines: Engines) -> Own {
        let Engines { world, rank, all } = engines;
        let launch = hash(world.as_bytes()) as usize % LAUNCHES;
        let number = |(slot, uid, name): (u16, u128, Name)| {
            let nth = usize::from(slot) << UIDS | uid as usize & ((1 << UIDS) - 1);
            let number = launch << NTH | nth;
            lock(&UIDS_OF).insert(number, uid);
            (number as c_int, name)
        };
        let all: Vec<_> = all.into_iter().map(number).collect();
        Own { world, launch, first: 0, rank, size: all.len(), engines: Some(all) }
    }

    pub fn is_engine(&self) -> bool {
        self.engines.is_some()
    }

    /// A number for the communicator of all engines, as long as they stay the same.
    pub fn generation(&self) -> u64 {
        let Some(all) = &self.engines else { return 0 };
        let numbers: Vec<u8> = all.iter().flat_map(|(number, _)| number.to_le_bytes()).collect();
        // As a process's that no engine is, since there are fewer slots.
        let nobody = (self.launch << NTH | ((1 << NTH) - 1)) as u64;
        nobody << COUNTING | u64::from(hash(&numbers)) & ((1 << COUNTING) - 1)
    }

    /// Nothing has started it: a world of one.
    fn alone() -> Own {
        let launch = claim();
        let world = format!("mpi-alone-{}-{launch}", std::process::id());
        Own { world, launch, first: 0, rank: 0, size: 1, engines: None }
    }

    /// The number of this process.
    pub fn number(&self) -> c_int {
        match &self.engines {
            Some(all) => all[self.rank].0,
            None => self.of_launch(self.first + self.rank),
        }
    }

    /// Those of MPI_COMM_WORLD, by rank.
    pub fn everybody(&self) -> Vec<c_int> {
        match &self.engines {
            Some(all) => all.iter().map(|(number, _)| *number).collect(),
            None => (0..self.size).map(|rank| self.of_launch(self.first + rank)).collect(),
        }
    }

    /// That of rank 0, if the others follow it.
    pub fn first_number(&self) -> Option<c_int> {
        self.engines.is_none().then(|| self.of_launch(self.first))
    }

    /// The number of the `nth` process of this launch.
    pub fn of_launch(&self, nth: usize) -> c_int {
        (self.launch << NTH | nth) as c_int
    }

    /// A process's rank in MPI_COMM_WORLD.
    fn rank_of(&self, process: usize) -> Option<usize> {
        if let Some(all) = &self.engines {
            return all.iter().position(|(number, _)| *number as usize == process);
        }
        let rank = process.checked_sub(self.of_launch(self.first) as usize)?;
        (rank < self.size).then_some(rank)
    }

    /// How many processes the launch has at least.
    pub fn launched(&self) -> usize {
        self.first + self.size
    }
}

/// Which process of its launch it is, if that is ours; the directory knows it by that.
pub fn nth(process: usize) -> Option<i64> {
    let (launch, nth) = parts(process);
    (launch == own().launch).then_some(nth as i64)
}

/// The launch of a process, and which of its processes it is.
pub fn parts(process: usize) -> (usize, usize) {
    (process >> NTH, process & ((1 << NTH) - 1))
}

/// Whether a world of this name is that of a launch.
pub fn is_world_of(name: &str, launch: usize) -> bool {
    name.starts_with("mpi-") && name.rsplit('-').next() == Some(launch.to_string().as_str())
}

/// As observers know it.
pub fn shown(process: usize) -> Name {
    if let Some(all) = &own().engines {
        if let Some((_, name)) = all.iter().find(|(number, _)| *number as usize == process) {
            return name.clone();
        }
    }
    match nth(process) {
        Some(nth) => Name::Rank(nth),
        None => Name::Text(named(process)),
    }
}

/// In a sentence.
pub fn named(process: usize) -> String {
    let (launch, nth) = parts(process);
    match own().rank_of(process) {
        Some(rank) => format!("process {rank} of MPI_COMM_WORLD"),
        None if launch == own().launch => {
            format!("process {nth} of this launch, which is not in MPI_COMM_WORLD")
        }
        None => format!("process {nth} of another launch"),
    }
}

/// A number from the environment.
fn number(name: &str) -> Answer<Option<usize>> {
    let Some(text) = std::env::var_os(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| fail(MPI_ERR_OTHER, format!("{name}={text:?} is no number")))
}

/// A number for this launch, which no other launch of this user has as long as this process lives.
fn claim() -> usize {
    let begin = std::process::id() as usize % LAUNCHES;
    let is_taken = |launch: &usize| {
        let bound = sockets::address(&format!("launch-{launch}"))
            .and_then(|address| UnixDatagram::bind_addr(&address));
        match bound {
            Ok(socket) => {
                let _ = socket.into_raw_fd(); // held to the end of the process
                false
            }
            Err(error) => error.kind() == io::ErrorKind::AddrInUse,
        }
    };
    let mut all = (0..LAUNCHES).map(|more| (begin + more) % LAUNCHES);
    all.find(|launch| !is_taken(launch)).unwrap_or(begin)
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_which_process_of_which_launch_it_is() {
        let own = Own { world: "w".into(), launch: 3, first: 2, rank: 1, size: 4, engines: None };
        assert_eq!(parts(own.number() as usize), (3, 3));
        assert_eq!(own.rank_of(own.number() as usize), Some(1));
        assert_eq!(own.rank_of(own.of_launch(1) as usize), None);
        assert_eq!(own.rank_of(own.of_launch(6) as usize), None);
    }

    #[test]
    fn no_two_launches_have_a_number_at_the_same_time() {
        assert_ne!(claim(), claim());
    }
}
