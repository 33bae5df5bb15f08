//! This process's membership of its world, as the engine needs it: the other processes are
//! identified by their numbers (`process`).

use std::path::Path;
use std::sync::Arc;

use sfm_endpoint::{Error, Result, Surroundings};
use sfm_native::calls::{Channel, End, Host};
use sfm_native::core::Core;
use sfm_native::segment::{self, segment_of, Segment};

use crate::errors::Answer;

/// One process's endpoint in a world. C programs join a world (`endpoint`); an engine of a notebook
/// is in one already, which Python has joined.
pub trait Membership: Send + Sync {
    fn core(&self) -> &Arc<Core>;

    /// The program around waiting calls.
    fn surroundings(&self) -> &dyn Surroundings;

    /// The world's folder in shared memory.
    fn folder(&self) -> &Path;

    /// The number by which the core knows a process; 0 if it is unknown.
    fn uid(&self, process: usize) -> u128;

    /// The channel to a process, made if there is none.
    fn channel(&self, process: usize) -> Found;

    /// True if messages to a process would go through shared memory. Makes no channel.
    fn is_near(&self, process: usize) -> bool;

    /// The segment of a process that shares memory with this one.
    fn segment(&self, process: usize) -> Option<Segment> {
        let uid = self.uid(process);
        let path = self.is_near(process).then(|| segment_of(self.folder(), uid))?;
        segment::open(&path, Some(uid)).ok()
    }

    /// True if a process has died or left.
    fn has_lost(&self, process: usize) -> bool;

    /// True if a lost process has left the world as processes do at their end; false if it has died,
    /// or if that is unknown.
    fn has_left(&self, process: usize) -> bool {
        let segment = || segment_of(self.folder(), self.uid(process));
        self.is_near(process) && !segment().exists()
    }

    /// The site of a process; messages between sites are slow. None if it is unknown, or if all
    /// processes are at one site, like those of a launch.
    fn site(&self, _process: usize) -> Option<String> {
        None
    }

    /// Wait until all processes of MPI_COMM_WORLD have joined.
    fn gather(&self) -> Answer {
        Ok(())
    }

    /// True if the processes of MPI_COMM_WORLD are one program, which ends after MPI_Finalize.
    /// False for engines, which continue.
    fn is_program(&self) -> bool;

    fn leave(&self);
}

/// The result of asking for a channel.
pub enum Found {
    Channel(Channel),
    /// It has not joined yet.
    NotYet,
    /// It has died or left.
    Lost,
}

/// A membership as the host of waiting calls.
pub struct Here<'a>(pub &'a dyn Membership);

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
