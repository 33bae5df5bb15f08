//! The world that this process is in, as the engine needs it: the others by their numbers (`process`).

use std::path::Path;
use std::sync::Arc;

use sfm_endpoint::{Error, Name, Result, Surroundings};
use sfm_native::calls::{Channel, End, Host};
use sfm_native::core::Core;
use sfm_native::segment::{self, segment_of, Segment};

use crate::errors::Answer;

/// One process's end of a world. C programs join one (`endpoint`); an engine of a notebook is in one
/// already, which Python has joined.
pub trait Home: Send + Sync {
    fn core(&self) -> &Arc<Core>;

    /// The program around calls that wait.
    fn surroundings(&self) -> &dyn Surroundings;

    /// The world's folder in shared memory.
    fn folder(&self) -> &Path;

    /// The number by which the core knows a process; 0 where it is not known.
    fn uid(&self, process: usize) -> u128;

    /// The way to a process, made if there is none.
    fn channel(&self, process: usize) -> Found;

    /// Whether messages to a process would go through memory. No way to it is made.
    fn is_near(&self, process: usize) -> bool;

    /// The segment of a process that is near.
    fn segment(&self, process: usize) -> Option<Segment> {
        let uid = self.uid(process);
        let path = self.is_near(process).then(|| segment_of(self.folder(), uid))?;
        segment::open(&path, Some(uid)).ok()
    }

    /// Whether a process has died or left.
    fn has_lost(&self, process: usize) -> bool;

    /// The site of a process: between sites the way is long. None where it is not known, or where all
    /// processes are at one, as those of a launch are.
    fn site(&self, _process: usize) -> Option<String> {
        None
    }

    /// Wait until all processes of MPI_COMM_WORLD have joined.
    fn gather(&self) -> Answer {
        Ok(())
    }

    /// Whether the processes of MPI_COMM_WORLD are one program, which ends when all have come to
    /// MPI_Finalize. Engines live on.
    fn is_program(&self) -> bool;

    fn leave(&self);
}

/// How a way to a process can be had.
pub enum Found {
    Channel(Channel),
    /// It has not joined yet.
    NotYet,
    /// It has died or left.
    Lost,
}

/// It as the host of calls that wait.
pub struct Here<'a>(pub &'a dyn Home);

impl Host for Here<'_> {
    type Error = Error;

    fn signals(&self) -> Result<()> {
        self.0.surroundings().signals()
    }

    fn release<T: Send>(&self, work: impl Send + FnOnce() -> T) -> T {
        work()
    }

    fn bystanders(&self) -> Result<Option<String>> {
        Ok(Some(self.0.surroundings().bystanders()))
    }

    fn ended(&self, why: End) -> Error {
        sfm_endpoint::host::error_of(why)
    }

    fn is_loss(&self, failure: &Error) -> bool {
        failure.kind == sfm_endpoint::Kind::PeerLost
    }
}

/// The number by which the core knows an engine; None of one that this process has never heard of.
pub fn uid_of(process: usize) -> Option<u128> {
    crate::process::uid_of(process)
}

/// An engine's end, and who the engines are.
pub struct Engines {
    /// The world's name.
    pub world: String,
    /// This one's rank.
    pub rank: usize,
    /// All that live, by rank: a number that no other that lives has, the process's own, its name.
    pub all: Vec<(u16, u128, Name)>,
}
