//! Making intercommunicators, and merging their two groups.

use crate::checks::{self, put};
use crate::collective::presence::complete;
use crate::collective::team::Team;
use crate::comm;
use crate::engine::Collective;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::making::inter;

pub unsafe fn intercomm_create(
    local_comm: MPI_Comm,
    local_leader: c_int,
    peer_comm: MPI_Comm,
    remote_leader: c_int,
    tag: c_int,
    newintercomm: *mut MPI_Comm,
) -> Answer {
    let local = comm::intra(local_comm)?;
    checks::rank("local_leader", local_leader, local.size(), &local.name())?;
    let peers = match local.rank == local_leader {
        false => None,
        true => {
            let peers = comm::get(peer_comm)?;
            checks::rank("remote_leader", remote_leader, peers.peers().size(), &peers.name())?;
            Some(peers)
        }
    };
    let across = peers.as_ref().map(|peers| (&***peers, remote_leader as usize));
    let made = inter::create(&local, local_leader as usize, across, tag)?;
    put("newintercomm", newintercomm, comm::open(made))
}

pub unsafe fn intercomm_merge(
    intercomm: MPI_Comm,
    high: c_int,
    newintracomm: *mut MPI_Comm,
) -> Answer {
    let both = comm::get(intercomm)?;
    if both.remote.is_none() {
        return Err(fail(MPI_ERR_COMM, "argument intercomm is not an intercommunicator"));
    }
    let team = Team::of(&both, Collective::Making);
    let made = complete(&team, inter::merge(&both, &team, high != 0))?;
    put("newintracomm", newintracomm, comm::open(made))
}
