//! Making and freeing communicators.

use std::sync::{Arc, Mutex};

use crate::checks::put;
use crate::collective::presence::{complete, complete_described};
use crate::collective::schedule::Schedule;
use crate::collective::team::Team;
use crate::comm::{self, Comm};
use crate::engine::{Alike, Collective};
use crate::errors::{fail, Answer};
use crate::group::{self, Group};
use crate::handles::*;
use crate::info::{self, Hints, Info};
use crate::making::{self, inter};
use crate::request::{self, Partner, Work};

/// Write MPI_COMM_NULL, which stays if the communicator cannot be made.
pub(super) unsafe fn none_yet(newcomm: *mut MPI_Comm) -> Answer {
    put("newcomm", newcomm, MPI_COMM_NULL)
}

/// A duplicate of `comm` with a new context number.
unsafe fn duplicate(handle: MPI_Comm, comm: &Comm, number: u64, info: Info) -> Answer<Comm> {
    let attributes = comm.attributes.copy(handle)?;
    let mut copy = making::child(comm, number, comm.group.clone(), comm.rank as usize);
    (copy.remote, copy.topology) = (comm.remote.clone(), comm.topology.clone());
    copy.attributes = attributes;
    copy.hints = Mutex::new(Hints::of(comm::HINTS, &info));
    Ok(copy)
}

pub unsafe fn comm_dup(comm: MPI_Comm, newcomm: *mut MPI_Comm) -> Answer {
    dup(comm, Info::default(), newcomm) // since MPI 4.0 a duplicate does not inherit hints
}

pub unsafe fn comm_dup_with_info(comm: MPI_Comm, info: MPI_Info, newcomm: *mut MPI_Comm) -> Answer {
    let info = info::copy_or_empty(info)?;
    dup(comm, info, newcomm)
}

unsafe fn dup(comm: MPI_Comm, info: Info, newcomm: *mut MPI_Comm) -> Answer {
    let old = comm::get(comm)?;
    none_yet(newcomm)?;
    let team = Team::of(&old, Collective::Making);
    let number = complete(&team, making::agree(&team))?;
    put("newcomm", newcomm, comm::open(duplicate(comm, &old, number, info)?))
}

pub unsafe fn comm_idup(
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    idup(comm, Info::default(), newcomm, request)
}

pub unsafe fn comm_idup_with_info(
    comm: MPI_Comm,
    info: MPI_Info,
    newcomm: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let info = info::copy_or_empty(info)?;
    idup(comm, info, newcomm, request)
}

unsafe fn idup(
    comm: MPI_Comm,
    info: Info,
    newcomm: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let old = comm::get(comm)?;
    let (team, address) =
        (Team::begun(&old, Collective::Making, Alike::default()), newcomm as usize);
    none_yet(newcomm)?;
    let all = team.clone();
    let algorithm = async move {
        let number = making::agree(&team).await?;
        let copy = duplicate(comm, &old, number, info)?;
        *(address as *mut MPI_Comm) = comm::open(copy);
        Ok(())
    };
    let work = Work::Schedule(Schedule::begin(all, algorithm));
    put("request", request, request::open(comm, Partner::Others, work))
}

pub unsafe fn comm_create(comm: MPI_Comm, group: MPI_Group, newcomm: *mut MPI_Comm) -> Answer {
    let old = comm::get(comm)?;
    none_yet(newcomm)?;
    let group = within(&old, group)?;
    let team = Team::of(&old, Collective::Making);
    let made = match group.calling_rank() {
        _ if old.remote.is_some() => complete(&team, inter::subset(&old, &team, group))?,
        None => None,
        Some(rank) => Some(complete(&team, making::made(&old, &team, group, rank as usize))?),
    };
    put("newcomm", newcomm, making::open(made))
}

fn within(comm: &Comm, handle: MPI_Group) -> Answer<Arc<Group>> {
    let group = group::get(handle)?;
    if group.members.iter().all(|member| comm.group.rank_of(*member).is_some()) {
        return Ok(group);
    }
    Err(fail(MPI_ERR_GROUP, format!("the group has processes that are not in {}", comm.name())))
}

pub unsafe fn comm_create_group(
    comm: MPI_Comm,
    group: MPI_Group,
    tag: c_int,
    newcomm: *mut MPI_Comm,
) -> Answer {
    let old = comm::intra(comm)?;
    none_yet(newcomm)?;
    let group = within(&old, group)?;
    let Some(rank) = group.calling_rank() else {
        return Ok(());
    };
    let team = Team::apart(&old, group.clone(), rank as usize, tag);
    let call = || team.call_waiting(vec![("tag", tag.to_string())]);
    let number = complete_described(&team, &call, making::agree(&team))?;
    put("newcomm", newcomm, comm::open(making::child(&old, number, group, rank as usize)))
}

pub unsafe fn comm_split(
    comm: MPI_Comm,
    color: c_int,
    key: c_int,
    newcomm: *mut MPI_Comm,
) -> Answer {
    let old = comm::get(comm)?;
    none_yet(newcomm)?;
    if color < 0 && color != MPI_UNDEFINED {
        let text = format!("argument color is {color}; give 0 or more, or MPI_UNDEFINED");
        return Err(fail(MPI_ERR_ARG, text));
    }
    let team = Team::of(&old, Collective::Making);
    let made = complete(&team, making::split(&old, &team, color, key))?;
    put("newcomm", newcomm, making::open(made))
}

/// All of a world's processes share the memory of one machine, and no smaller hardware unit is
/// known.
pub unsafe fn comm_split_type(
    comm: MPI_Comm,
    split_type: c_int,
    key: c_int,
    info: MPI_Info,
    newcomm: *mut MPI_Comm,
) -> Answer {
    let hints = info::copy_or_empty(info)?;
    let is_of_memory = hints.get("mpi_hw_resource_type") == Some("mpi_shared_memory");
    let color = match split_type {
        MPI_COMM_TYPE_SHARED => 0,
        MPI_COMM_TYPE_HW_GUIDED | MPI_COMM_TYPE_RESOURCE_GUIDED if is_of_memory => 0,
        MPI_COMM_TYPE_HW_GUIDED | MPI_COMM_TYPE_RESOURCE_GUIDED => MPI_UNDEFINED,
        MPI_COMM_TYPE_HW_UNGUIDED | MPI_UNDEFINED => MPI_UNDEFINED,
        _ => {
            let text = format!("argument split_type is {split_type}; give MPI_COMM_TYPE_SHARED");
            return Err(fail(MPI_ERR_ARG, text));
        }
    };
    comm_split(comm, color, key, newcomm)
}

pub unsafe fn comm_free(comm: *mut MPI_Comm) -> Answer {
    let old = comm::get(*comm)?;
    old.attributes.clear(*comm)?;
    comm::release(*comm)?;
    *comm = MPI_COMM_NULL;
    Ok(())
}
