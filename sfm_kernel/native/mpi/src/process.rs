//! Numbers of processes, by which groups and messages identify them: the same everywhere, even in
//! programs that were started separately and meet through a port.
//!
//! A number consists of the launch of the process, and of its index in that launch, which includes
//! processes spawned later. A launch is one call of the launcher, or a process that nothing has
//! started. A launch keeps its number as long as it lives, by holding a socket of that name.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Mutex;

use sfm_endpoint::Name;
use sfm_native::sync::lock;

use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::{pmi, sockets};

/// Bits of a number, as many as there are in a message's note (`engine::Note`).
pub const BITS: u32 = 24;
/// The bits of a context number that count (`making`); the others are the number of a process.
pub const COUNTING: u32 = 24;
/// The bits for the index of a process in its launch.
const NTH: u32 = 14;
/// The bits, within an engine's index, that distinguish engines which have had the same slot.
const UIDS: u32 = 5;
const LAUNCHES: usize = 1 << (BITS - NTH);

/// This process's identity, which its launcher sets in the environment
/// (sfm_kernel/mpi/launch/job.py).
#[derive(Debug)]
pub struct Identity {
    /// The name of the folder in which the processes of its launch find each other.
    pub world: String,
    launch: usize,
    /// The index in the launch of rank 0 of our MPI_COMM_WORLD.
    first: usize,
    /// In MPI_COMM_WORLD.
    pub rank: usize,
    pub size: usize,
    /// For engines, whose numbers are not consecutive: number and name of each.
    engines: Option<Vec<(c_int, Name)>>,
}

/// The engines, as one of them sees them.
pub struct Engines {
    /// The world's name.
    pub world: String,
    /// This engine's rank.
    pub rank: usize,
    /// All living engines, by rank: the slot, which is unique among living engines, the process's
    /// number in the core, and its name.
    pub all: Vec<(u16, u128, Name)>,
}

static THIS: AtomicPtr<Identity> = AtomicPtr::new(std::ptr::null_mut());
static MAKING: Mutex<()> = Mutex::new(());

/// The index of the first process of each world of our launch, in the order in which they were
/// started, and then the number of processes; as far as this process knows.
static WORLDS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The worlds that this process knows, for processes that it meets.
pub fn worlds() -> Vec<usize> {
    lock(&WORLDS).clone()
}

/// Learn of the worlds of our launch.
pub fn note_worlds(worlds: impl Iterator<Item = usize>) {
    let (worlds, mut known): (Vec<_>, _) = (worlds.collect(), lock(&WORLDS));
    if worlds.len() > known.len() {
        *known = worlds; // none is ever removed
    }
}

/// The core's numbers of all engines that this process has seen.
static UIDS_OF: Mutex<BTreeMap<usize, u128>> = Mutex::new(BTreeMap::new());

/// The number by which the core knows an engine; None if this process does not know the engine.
pub fn uid_of(process: usize) -> Option<u128> {
    lock(&UIDS_OF).get(&process).copied()
}

fn known() -> Option<&'static Identity> {
    // SAFETY: null, or a box that is never freed.
    unsafe { THIS.load(Acquire).as_ref() }
}

/// Read the environment, once; MPI_Init returns its errors.
pub fn read() -> Answer<&'static Identity> {
    let _one_at_a_time = lock(&MAKING);
    match known() {
        Some(this) => Ok(this),
        None => Identity::of_environment().map(set),
    }
}

/// This process; after MPI_Init.
pub fn this() -> &'static Identity {
    known().unwrap_or_else(|| read().unwrap_or_else(|_| set(Identity::alone())))
}

/// Replace this process's identity. The previous one is never freed, because it may still be in
/// use.
pub fn set(this: Identity) -> &'static Identity {
    let this: &'static Identity = Box::leak(Box::new(this));
    THIS.store(std::ptr::from_ref(this).cast_mut(), Release);
    this
}

/// True if the launcher's environment is meant for this process; a process that a rank starts
/// inherits it, but is not a rank.
pub fn is_rank() -> bool {
    let pid = std::env::var("SFM_MPI_PID").ok();
    pid.is_none_or(|pid| pid == std::process::id().to_string())
}

/// The world's name, by which observers find its processes.
pub fn world_name() -> String {
    std::env::var("SFM_MPI_WORLD").unwrap_or_default()
}

impl Identity {
    fn of_environment() -> Answer<Identity> {
        let world = std::env::var("SFM_MPI_WORLD").ok().filter(|name| !name.is_empty());
        let Some(world) = world.filter(|_| is_rank()) else {
            return pmi::greet()?.map_or_else(|| Ok(Identity::alone()), Identity::of_job);
        };
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
        let worlds = std::env::var("SFM_MPI_WORLDS").unwrap_or_default();
        note_worlds(worlds.split(' ').filter_map(|first| first.parse().ok()));
        Ok(Identity { world, launch, first, rank, size, engines: None })
    }

    /// The identity of an engine. Its number differs from those of earlier engines with the same
    /// rank.
    pub fn engine(engines: Engines) -> Identity {
        let Engines { world, rank, all } = engines;
        let launch = hash(world.as_bytes()) as usize % LAUNCHES;
        let number = |(slot, uid, name): (u16, u128, Name)| {
            let nth = usize::from(slot) << UIDS | uid as usize & ((1 << UIDS) - 1);
            let number = launch << NTH | nth;
            lock(&UIDS_OF).insert(number, uid);
            (number as c_int, name)
        };
        let all: Vec<_> = all.into_iter().map(number).collect();
        Identity { world, launch, first: 0, rank, size: all.len(), engines: Some(all) }
    }

    pub fn is_engine(&self) -> bool {
        self.engines.is_some()
    }

    /// A context number for the communicator of all engines, which changes whenever the engines
    /// change.
    pub fn generation(&self) -> u64 {
        let Some(all) = &self.engines else { return 0 };
        let numbers: Vec<u8> = all.iter().flat_map(|(number, _)| number.to_le_bytes()).collect();
        // The number of a process that no engine can have, since there are fewer slots.
        let no_engine = (self.launch << NTH | ((1 << NTH) - 1)) as u64;
        no_engine << COUNTING | u64::from(hash(&numbers)) & ((1 << COUNTING) - 1)
    }

    /// The identity of a process that nothing has started: a world of one.
    fn alone() -> Identity {
        let launch = claim();
        let world = format!("mpi-alone-{}-{launch}", std::process::id());
        Identity { world, launch, first: 0, rank: 0, size: 1, engines: None }
    }

    /// The identity of a process that another MPI's launcher has started.
    fn of_job(job: pmi::Job) -> Answer<Identity> {
        let launch = job.share(claim)?;
        let world = format!("mpi-job-{:08x}-{launch}", hash(job.name.as_bytes()));
        Ok(Identity { world, launch, first: 0, rank: job.rank, size: job.size, engines: None })
    }

    pub fn number(&self) -> c_int {
        match &self.engines {
            Some(all) => all[self.rank].0,
            None => self.of_launch(self.first + self.rank),
        }
    }

    /// The numbers of MPI_COMM_WORLD's processes, by rank.
    pub fn everybody(&self) -> Vec<c_int> {
        match &self.engines {
            Some(all) => all.iter().map(|(number, _)| *number).collect(),
            None => (0..self.size).map(|rank| self.of_launch(self.first + rank)).collect(),
        }
    }

    /// The number of rank 0, if the numbers are consecutive.
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

    /// The minimum number of processes of the launch.
    pub fn launched(&self) -> usize {
        self.first + self.size
    }
}

/// The index of a process of our launch, by which the directory knows it; None for another launch.
pub fn nth(process: usize) -> Option<i64> {
    let (launch, nth) = launch_and_index(process);
    (launch == this().launch).then_some(nth as i64)
}

/// The launch of a process, and its index there.
pub fn launch_and_index(process: usize) -> (usize, usize) {
    (process >> NTH, process & ((1 << NTH) - 1))
}

/// True if a world of this name belongs to a launch.
pub fn is_world_of(name: &str, launch: usize) -> bool {
    name.starts_with("mpi-") && name.rsplit('-').next() == Some(launch.to_string().as_str())
}

/// The name for observers.
pub fn shown(process: usize) -> Name {
    if let Some(all) = &this().engines {
        if let Some((_, name)) = all.iter().find(|(number, _)| *number as usize == process) {
            return name.clone();
        }
    }
    match nth(process) {
        Some(nth) => Name::Rank(nth),
        None => Name::Text(named(process)),
    }
}

/// The name for sentences.
pub fn named(process: usize) -> String {
    let (launch, nth) = launch_and_index(process);
    match this().rank_of(process) {
        Some(rank) => format!("process {rank} of MPI_COMM_WORLD"),
        None if launch == this().launch => in_launch(nth, &lock(&WORLDS)),
        None => format!("process {nth} of another launch"),
    }
}

/// The name of the `nth` process of our launch, which is not in our MPI_COMM_WORLD.
fn in_launch(nth: usize, worlds: &[usize]) -> String {
    let world = worlds.iter().rposition(|first| *first <= nth);
    match world.filter(|world| world + 1 < worlds.len()) {
        Some(0) => format!("process {nth} of the first MPI_COMM_WORLD"),
        Some(world) => format!("process {} of spawned world {world}", nth - worlds[world]),
        None => format!("process {nth} of this launch"),
    }
}

/// A number from the environment.
fn number(name: &str) -> Answer<Option<usize>> {
    let Some(text) = std::env::var_os(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| fail(MPI_ERR_OTHER, format!("{name}={text:?} is not a number")))
}

/// A number for this launch, which no other launch of this user has as long as this process lives.
fn claim() -> usize {
    let begin = std::process::id() as usize % LAUNCHES;
    let is_taken = |launch: &usize| {
        let bound = sockets::address(&format!("launch-{launch}"))
            .and_then(|address| UnixDatagram::bind_addr(&address));
        match bound {
            Ok(socket) => {
                let _ = socket.into_raw_fd(); // held until the process ends
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
    fn a_number_has_the_launch_and_the_index_of_a_process() {
        let this =
            Identity { world: "w".into(), launch: 3, first: 2, rank: 1, size: 4, engines: None };
        assert_eq!(launch_and_index(this.number() as usize), (3, 3));
        assert_eq!(this.rank_of(this.number() as usize), Some(1));
        assert_eq!(this.rank_of(this.of_launch(1) as usize), None);
        assert_eq!(this.rank_of(this.of_launch(6) as usize), None);
    }

    #[test]
    fn a_process_is_named_by_its_world() {
        let name = |nth| in_launch(nth, &[0, 2, 5, 6]);
        assert_eq!(name(1), "process 1 of the first MPI_COMM_WORLD");
        assert_eq!(name(4), "process 2 of spawned world 1");
        assert_eq!(name(5), "process 0 of spawned world 2");
        assert_eq!(name(6), "process 6 of this launch");
        assert_eq!(in_launch(3, &[]), "process 3 of this launch");
    }

    #[test]
    fn no_two_launches_have_a_number_at_the_same_time() {
        assert_ne!(claim(), claim());
    }
}
