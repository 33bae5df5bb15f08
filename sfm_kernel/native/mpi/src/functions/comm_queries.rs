//! Queries about a communicator: size, rank, group, name, info. None of them communicates.

use std::sync::Arc;

use sfm_native::sync::lock;

use crate::checks::{put, put_new, put_text, text};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::{comm, group, info};

pub unsafe fn comm_size(comm: MPI_Comm, size: *mut c_int) -> Answer {
    put("size", size, comm::get(comm)?.size())
}

pub unsafe fn comm_rank(comm: MPI_Comm, rank: *mut c_int) -> Answer {
    put("rank", rank, comm::get(comm)?.rank)
}

pub unsafe fn comm_group(comm: MPI_Comm, group: *mut MPI_Group) -> Answer {
    let found = comm::get(comm)?;
    put_new("group", group, || group::open(found.group.clone()))
}

pub unsafe fn comm_test_inter(comm: MPI_Comm, flag: *mut c_int) -> Answer {
    put("flag", flag, c_int::from(comm::get(comm)?.remote.is_some()))
}

fn remote(comm: MPI_Comm) -> Answer<Arc<group::Group>> {
    let found = comm::get(comm)?;
    found.remote.clone().ok_or_else(|| {
        let text = format!("{} is not an intercommunicator, and has no remote group", found.name());
        fail(MPI_ERR_COMM, text)
    })
}

pub unsafe fn comm_remote_size(comm: MPI_Comm, size: *mut c_int) -> Answer {
    put("size", size, remote(comm)?.size())
}

pub unsafe fn comm_remote_group(comm: MPI_Comm, group: *mut MPI_Group) -> Answer {
    let found = remote(comm)?;
    put_new("group", group, || group::open(found))
}

pub unsafe fn comm_compare(comm1: MPI_Comm, comm2: MPI_Comm, result: *mut c_int) -> Answer {
    let (first, second) = (comm::get(comm1)?, comm::get(comm2)?);
    if Arc::ptr_eq(&first, &second) {
        return put("result", result, MPI_IDENT);
    }
    let local = first.group.compare(&second.group);
    let far = match (&first.remote, &second.remote) {
        (None, None) => MPI_IDENT,
        (Some(first), Some(second)) => first.compare(second),
        _ => MPI_UNEQUAL,
    };
    // The same processes in the same order, but another context.
    let of_groups = if local.max(far) == MPI_IDENT { MPI_CONGRUENT } else { local.max(far) };
    put("result", result, of_groups)
}

pub unsafe fn comm_get_name(
    comm: MPI_Comm,
    comm_name: *mut c_char,
    resultlen: *mut c_int,
) -> Answer {
    let name = match comm {
        MPI_COMM_NULL => "MPI_COMM_NULL".into(),
        _ => comm::get(comm)?.given_name(),
    };
    put_text("comm_name", comm_name, MPI_MAX_OBJECT_NAME, &name, resultlen)
}

pub unsafe fn comm_set_name(comm: MPI_Comm, comm_name: *const c_char) -> Answer {
    comm::get(comm)?.set_name(text("comm_name", comm_name)?);
    Ok(())
}

pub unsafe fn comm_get_info(comm: MPI_Comm, info_used: *mut MPI_Info) -> Answer {
    let found = comm::get(comm)?;
    put_new("info_used", info_used, || info::open(lock(&found.hints).info()))
}

pub unsafe fn comm_set_info(comm: MPI_Comm, info: MPI_Info) -> Answer {
    let found = comm::get(comm)?;
    lock(&found.hints).change(&info::copy_or_empty(info)?);
    Ok(())
}
