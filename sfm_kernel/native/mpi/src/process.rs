//! Numbers of processes, by which groups and messages name them: the same everywhere, also between
//! programs that were started apart and meet through a port.
//!
//! A number says which launch the process is of, and which of its processes it is, those counted that
//! were spawned later. A launch is one call of the launcher, or a process that nothing has started.
//! It has its number as long as it lives: it holds a socket of that name.

use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixDatagram;
use std::sync::OnceLock;

use sfm_endpoint::Name;

use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::sockets;

/// Bits of a number, as many as there are in a message's note (`engine::Note`).
pub const BITS: u32 = 24;
/// Of which so many say which process of its launch it is.
const NTH: u32 = 14;
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
}

static OWN: OnceLock<Own> = OnceLock::new();

/// The environment is read once; an error of it is that of MPI_Init.
pub fn read() -> Answer<&'static Own> {
    if let Some(own) = OWN.get() {
        return Ok(own);
    }
    let own = Own::of_environment()?;
    Ok(OWN.get_or_init(|| own))
}

/// This process; after MPI_Init.
pub fn own() -> &'static Own {
    OWN.get_or_init(|| Own::of_environment().unwrap_or_else(|_| Own::alone()))
}

impl Own {
    fn of_environment() -> Answer<Own> {
        let world = std::env::var("SFM_MPI_WORLD").ok().filter(|name| !name.is_empty());
        let pid = std::env::var("SFM_MPI_PID").ok();
        let is_rank = pid.is_none_or(|pid| pid == std::process::id().to_string());
        let Some(world) = world.filter(|_| is_rank) else { return Ok(Own::alone()) };
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
        Ok(Own { world, launch, first, rank, size })
    }

    /// Nothing has started it: a world of one.
    fn alone() -> Own {
        let launch = claim();
        let world = format!("mpi-alone-{}-{launch}", std::process::id());
        Own { world, launch, first: 0, rank: 0, size: 1 }
    }

    /// The number of this process.
    pub fn number(&self) -> c_int {
        self.first_number() + self.rank as c_int
    }

    /// That of rank 0 of MPI_COMM_WORLD; the others follow.
    pub fn first_number(&self) -> c_int {
        self.of_launch(self.first)
    }

    /// The number of the `nth` process of this launch.
    pub fn of_launch(&self, nth: usize) -> c_int {
        (self.launch << NTH | nth) as c_int
    }

    /// A process's rank in MPI_COMM_WORLD.
    fn rank_of(&self, process: usize) -> Option<usize> {
        let rank = process.checked_sub(self.first_number() as usize)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_which_process_of_which_launch_it_is() {
        let own = Own { world: "w".into(), launch: 3, first: 2, rank: 1, size: 4 };
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
