//! This process's end of the world, as the engine needs it: the others by their ranks.

use std::sync::{Arc, OnceLock};

use sfm_endpoint::{Endpoint as Whole, Kind, Member, Name, Wish};
use sfm_native::calls::Way;
use sfm_native::core::Core;
use sfm_native::sender::Sender;

use crate::errors::{self, fail, Answer, Failure};
use crate::handles::*;
use crate::{host, launcher};

pub struct Endpoint {
    pub whole: Whole,
    pub rank: usize,
    /// Everybody by rank, once all have joined.
    members: OnceLock<Vec<Member>>,
}

fn number(name: &str) -> Answer<Option<usize>> {
    let Some(text) = std::env::var_os(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| fail(MPI_ERR_OTHER, format!("{name}={text:?} is no number")))
}

/// What went wrong with the world, as an error of MPI.
pub fn failure(error: sfm_endpoint::Error) -> Failure {
    let code = match error.kind {
        Kind::PeerLost | Kind::WorldGone | Kind::MessagesLost => MPI_ERR_PROC_ABORTED,
        Kind::SegmentFull | Kind::MessageTooLarge => MPI_ERR_NO_MEM,
        Kind::Interrupted => errors::INTERRUPTED,
        _ => MPI_ERR_OTHER,
    };
    fail(code, error.text)
}

impl Endpoint {
    /// Join the world that the environment names, and wait until all of its processes have; without
    /// a launcher, be a world of one.
    pub fn join() -> Answer<Endpoint> {
        let world = std::env::var("SFM_MPI_WORLD").ok().filter(|name| !name.is_empty());
        let own = std::env::var("SFM_MPI_PID").ok();
        let is_rank = own.is_none_or(|pid| pid == std::process::id().to_string());
        let (world, rank, size) = match world.filter(|_| is_rank) {
            Some(world) => {
                let (rank, size) = (number("SFM_MPI_RANK")?, number("SFM_MPI_SIZE")?);
                (world, rank.unwrap_or(0), size.unwrap_or(1))
            }
            None => (format!("mpi-alone-{}", std::process::id()), 0, 1),
        };
        if rank >= size {
            let text = format!("SFM_MPI_RANK={rank}, but SFM_MPI_SIZE={size}");
            return Err(fail(MPI_ERR_OTHER, text));
        }
        let wish = Wish { rank: Some(rank as i64), ..Wish::default() };
        let joined = Whole::join(&world, &wish, Some(size as u64), host::surroundings());
        let whole = joined.map_err(failure)?;
        // Before the others are waited for: the launcher tells who waits for one that never comes.
        launcher::tell(launcher::STARTED, 0, "");
        let names: Vec<Name> = (0..size as i64).map(Name::Rank).collect();
        whole.wait_for(&names, None).map_err(failure)?;
        let mut members = Vec::with_capacity(size);
        for name in &names {
            let member = whole.lookup(name).map_err(failure)?;
            members.push(member.ok_or_else(|| {
                fail(MPI_ERR_PROC_ABORTED, format!("process {name} has ended before MPI_Init"))
            })?);
        }
        Ok(Endpoint { whole, rank, members: members.into() })
    }

    fn member(&self, rank: usize) -> &Member {
        &self.members.get().expect("all have joined")[rank]
    }

    pub fn size(&self) -> usize {
        self.members.get().map_or(1, Vec::len)
    }

    pub fn core(&self) -> &Arc<Core> {
        self.whole.core()
    }

    pub fn uid(&self, rank: usize) -> u128 {
        u128::from_str_radix(&self.member(rank).uid, 16).unwrap_or(0)
    }

    /// The way to a process, made if there is none. None where it has died.
    pub fn sender(&self, rank: usize) -> Option<Arc<Sender>> {
        let route = self.whole.route(&Name::Rank(rank as i64)).ok()?;
        match route.way() {
            Way::Ring(sender) => Some(sender.clone()),
            Way::Link(_) | Way::Local { .. } => None,
        }
    }

    /// Whether a process has died or left.
    pub fn has_lost(&self, rank: usize) -> bool {
        !self.whole.alive(self.member(rank))
    }
}
