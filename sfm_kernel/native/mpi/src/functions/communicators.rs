//! Making and freeing communicators.

use std::sync::Arc;

use crate::cart::Cart;
use crate::checks::{array, put};
use crate::collective::calls::on;
use crate::collective::schedule::Schedule;
use crate::collective::team::{whole, Team};
use crate::comm::{self, Comm};
use crate::engine::{engine, What};
use crate::errors::{fail, Answer};
use crate::functions::topologies::grid;
use crate::group::{self, Group};
use crate::handles::*;
use crate::info;
use crate::making;
use crate::request::{self, Work};
use crate::topology::Topology;

/// What stands in a new communicator's place until it is made, and stays there if it is not.
unsafe fn none_yet(newcomm: *mut MPI_Comm) -> Answer {
    put("newcomm", newcomm, MPI_COMM_NULL)
}

/// A duplicate of `comm` under its new number.
unsafe fn duplicate(handle: MPI_Comm, comm: &Comm, number: u64) -> Answer<Comm> {
    let attributes = comm.attributes.copy(handle)?;
    let mut copy = making::child(comm, number, comm.group.clone(), comm.rank as usize);
    (copy.remote, copy.topology) = (comm.remote.clone(), comm.topology.clone());
    copy.attributes = attributes;
    Ok(copy)
}

pub unsafe fn comm_dup(comm: MPI_Comm, newcomm: *mut MPI_Comm) -> Answer {
    let old = comm::get(comm)?;
    none_yet(newcomm)?;
    let number = agree(&old)?;
    let copy = duplicate(comm, &old, number)?;
    *copy.info.lock().expect("no panic under the lock") =
        old.info.lock().expect("no panic under the lock").clone();
    put("newcomm", newcomm, comm::open(copy))
}

/// A number for a duplicate; of an intercommunicator both sides have the same.
fn agree(old: &Comm) -> Answer<u64> {
    if old.remote.is_some() {
        return crate::inter::agree(old);
    }
    let team = Team::of(old, What::Making);
    whole(&team, making::agree(&team))
}

pub unsafe fn comm_dup_with_info(comm: MPI_Comm, info: MPI_Info, newcomm: *mut MPI_Comm) -> Answer {
    let old = comm::get(comm)?;
    none_yet(newcomm)?;
    let number = agree(&old)?;
    let copy = duplicate(comm, &old, number)?;
    if info != MPI_INFO_NULL {
        *copy.info.lock().expect("no panic under the lock") = info::copy_or_empty(info)?;
    }
    put("newcomm", newcomm, comm::open(copy))
}

pub unsafe fn comm_idup(
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let old = on(comm)?;
    let (team, place) = (Team::of(&old, What::Making), newcomm as usize);
    none_yet(newcomm)?;
    let algorithm = async move {
        let number = making::agree(&team).await?;
        let copy = duplicate(comm, &old, number)?;
        *(place as *mut MPI_Comm) = comm::open(copy);
        Ok(())
    };
    let work = Work::Schedule(Schedule::begin(engine(), algorithm));
    put("request", request, request::open(comm, work))
}

pub unsafe fn comm_idup_with_info(
    comm: MPI_Comm,
    _info: MPI_Info,
    newcomm: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    comm_idup(comm, newcomm, request)
}

pub unsafe fn comm_create(comm: MPI_Comm, group: MPI_Group, newcomm: *mut MPI_Comm) -> Answer {
    let old = on(comm)?;
    none_yet(newcomm)?;
    let group = within(&old, group)?;
    let team = Team::of(&old, What::Making);
    let made = match group.own_rank() {
        None => None,
        Some(rank) => Some(whole(&team, making::made(&old, &team, group, rank as usize))?),
    };
    put("newcomm", newcomm, making::open(made))
}

fn within(comm: &Comm, handle: MPI_Group) -> Answer<Arc<Group>> {
    let group = group::get(handle)?;
    if group.members.iter().all(|member| comm.group.rank_of(*member).is_some()) {
        return Ok(group);
    }
    let text = format!("the group has processes that {} has not", comm.name());
    Err(fail(MPI_ERR_GROUP, text))
}

pub unsafe fn comm_create_group(
    comm: MPI_Comm,
    group: MPI_Group,
    tag: c_int,
    newcomm: *mut MPI_Comm,
) -> Answer {
    let old = on(comm)?;
    none_yet(newcomm)?;
    let group = within(&old, group)?;
    let Some(rank) = group.own_rank() else {
        return Ok(());
    };
    let team = Team::apart(&old, group.clone(), rank as usize, tag);
    let number = whole(&team, making::agree(&team))?;
    put("newcomm", newcomm, comm::open(making::child(&old, number, group, rank as usize)))
}

pub unsafe fn comm_split(
    comm: MPI_Comm,
    color: c_int,
    key: c_int,
    newcomm: *mut MPI_Comm,
) -> Answer {
    let old = on(comm)?;
    none_yet(newcomm)?;
    if color < 0 && color != MPI_UNDEFINED {
        let text = format!("argument color is {color}; give 0 or more, or MPI_UNDEFINED");
        return Err(fail(MPI_ERR_ARG, text));
    }
    let team = Team::of(&old, What::Making);
    let made = whole(&team, making::split(&old, &team, color, key))?;
    put("newcomm", newcomm, making::open(made))
}

pub unsafe fn comm_split_type(
    comm: MPI_Comm,
    split_type: c_int,
    key: c_int,
    _info: MPI_Info,
    newcomm: *mut MPI_Comm,
) -> Answer {
    // All of a world's processes share the memory of one machine.
    let color = match split_type {
        MPI_COMM_TYPE_SHARED => 0,
        MPI_UNDEFINED
        | MPI_COMM_TYPE_HW_GUIDED
        | MPI_COMM_TYPE_HW_UNGUIDED
        | MPI_COMM_TYPE_RESOURCE_GUIDED => MPI_UNDEFINED,
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

fn placed(mut comm: Comm, cart: Cart) -> Comm {
    comm.topology = Some(Topology::Cart(cart));
    comm
}

pub unsafe fn cart_create(
    comm_old: MPI_Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    _reorder: c_int,
    comm_cart: *mut MPI_Comm,
) -> Answer {
    let old = on(comm_old)?;
    none_yet(comm_cart)?;
    let cart = grid(&old, ndims, dims, periods)?;
    let size = cart.size().expect("it fits");
    let color = if old.rank < size { 0 } else { MPI_UNDEFINED };
    let team = Team::of(&old, What::Making);
    let made = whole(&team, making::split(&old, &team, color, 0))?;
    let made = made.map(|made| placed(made, cart));
    put("comm_cart", comm_cart, making::open(made))
}

pub unsafe fn cart_sub(
    comm: MPI_Comm,
    remain_dims: *const c_int,
    newcomm: *mut MPI_Comm,
) -> Answer {
    let old = on(comm)?;
    none_yet(newcomm)?;
    let Some(Topology::Cart(cart)) = &old.topology else {
        return Err(fail(MPI_ERR_TOPOLOGY, "the communicator has no Cartesian grid"));
    };
    let remain = array("remain_dims", remain_dims, cart.dims.len())?;
    let remain: Vec<bool> = remain.iter().map(|one| *one != 0).collect();
    let (sub, color, key) = cart.sub(old.rank, &remain);
    let team = Team::of(&old, What::Making);
    let made = whole(&team, making::split(&old, &team, color, key))?;
    let made = made.map(|made| placed(made, sub));
    put("newcomm", newcomm, making::open(made))
}
