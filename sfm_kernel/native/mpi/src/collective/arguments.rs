//! What the arguments of the collectives mean. Each function is as MPI has it.

use super::calls::{on, Call};
use super::items::Items;
use crate::checks::{array, root as check_root, Numbers};
use crate::comm::Comm;
use crate::errors::Answer;
use crate::handles::*;

/// So many items for each process, one behind the other.
fn equal(items: &Items, comm: &Comm) -> Vec<Items> {
    let each = items.count;
    (0..comm.size() as usize).map(|nth| items.part(nth * each, each)).collect()
}

/// `counts` and `displs` (in items) for each process.
unsafe fn listed(
    name: &str,
    at: *const c_void,
    counts: Numbers,
    displs: Numbers,
    datatype: MPI_Datatype,
    size: usize,
) -> Answer<Vec<Items>> {
    let counts = counts.counts("counts", size)?;
    let displs = displs.list("displs", size)?;
    let items = Items::of(name, at, 0, datatype)?;
    let one = |(count, displ)| {
        let part = items.at(displ as isize * items.datatype.extent, count);
        part.check(name)?;
        Ok(part)
    };
    counts.into_iter().zip(displs).map(one).collect()
}

/// `counts`, `displs` (in bytes) and datatypes for each process.
unsafe fn typed(
    name: &str,
    at: *const c_void,
    counts: Numbers,
    displs: Numbers,
    datatypes: *const MPI_Datatype,
    size: usize,
) -> Answer<Vec<Items>> {
    let counts = counts.counts("counts", size)?;
    let displs = displs.list("displs", size)?;
    let datatypes = array("types", datatypes, size)?;
    let one = |nth: usize| {
        let items = Items::of(name, at, 0, datatypes[nth])?;
        let part = items.at(displs[nth] as isize, counts[nth]);
        part.check(name)?;
        Ok(part)
    };
    (0..size).map(one).collect()
}

fn is_root(comm: &Comm, root: c_int) -> Answer<bool> {
    check_root(comm, root)?;
    Ok(comm.rank == root)
}

pub unsafe fn barrier(comm: MPI_Comm) -> Answer<Call> {
    on(comm).map(|_| Call::Barrier)
}

pub unsafe fn bcast(
    buffer: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    check_root(&*on(comm)?, root)?;
    Ok(Call::Bcast { items: Items::of("buffer", buffer, count, datatype)?, root: root as usize })
}

pub unsafe fn gather(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = on(comm)?;
    let mut parts = Vec::new();
    let own = if is_root(&comm, root)? {
        parts = equal(&Items::of("recvbuf", recvbuf, recvcount, recvtype)?, &comm);
        Items::unless_in_place("sendbuf", sendbuf, sendcount, sendtype)?
    } else {
        Some(Items::of("sendbuf", sendbuf, sendcount, sendtype)?)
    };
    Ok(Call::Gather { own, parts, root: root as usize })
}

pub unsafe fn gatherv(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    displs: Numbers,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = on(comm)?;
    let mut parts = Vec::new();
    let own = if is_root(&comm, root)? {
        let size = comm.size() as usize;
        parts = listed("recvbuf", recvbuf, recvcounts, displs, recvtype, size)?;
        Items::unless_in_place("sendbuf", sendbuf, sendcount, sendtype)?
    } else {
        Some(Items::of("sendbuf", sendbuf, sendcount, sendtype)?)
    };
    Ok(Call::Gather { own, parts, root: root as usize })
}

pub unsafe fn scatter(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = on(comm)?;
    let mut parts = Vec::new();
    let own = if is_root(&comm, root)? {
        parts = equal(&Items::of("sendbuf", sendbuf, sendcount, sendtype)?, &comm);
        Items::unless_in_place("recvbuf", recvbuf, recvcount, recvtype)?
    } else {
        Some(Items::of("recvbuf", recvbuf, recvcount, recvtype)?)
    };
    Ok(Call::Scatter { parts, own, root: root as usize })
}

pub unsafe fn scatterv(
    sendbuf: *const c_void,
    sendcounts: Numbers,
    displs: Numbers,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = on(comm)?;
    let mut parts = Vec::new();
    let own = if is_root(&comm, root)? {
        let size = comm.size() as usize;
        parts = listed("sendbuf", sendbuf, sendcounts, displs, sendtype, size)?;
        Items::unless_in_place("recvbuf", recvbuf, recvcount, recvtype)?
    } else {
        Some(Items::of("recvbuf", recvbuf, recvcount, recvtype)?)
    };
    Ok(Call::Scatter { parts, own, root: root as usize })
}

pub unsafe fn allgather(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = on(comm)?;
    let own = Items::unless_in_place("sendbuf", sendbuf, sendcount, sendtype)?;
    let each = Items::of("recvbuf", recvbuf, recvcount, recvtype)?;
    Ok(Call::Allgather { own, parts: equal(&each, &comm) })
}

pub unsafe fn allgatherv(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    displs: Numbers,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Answer<Call> {
    let size = on(comm)?.size() as usize;
    let own = Items::unless_in_place("sendbuf", sendbuf, sendcount, sendtype)?;
    let parts = listed("recvbuf", recvbuf, recvcounts, displs, recvtype, size)?;
    Ok(Call::Allgather { own, parts })
}

pub unsafe fn alltoall(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = on(comm)?;
    let into = Items::of("recvbuf", recvbuf, recvcount, recvtype)?;
    let out = Items::unless_in_place("sendbuf", sendbuf, sendcount, sendtype)?;
    let out = out.map(|out| equal(&out, &comm));
    Ok(Call::Alltoall { out, into: equal(&into, &comm) })
}

pub unsafe fn alltoallv(
    sendbuf: *const c_void,
    sendcounts: Numbers,
    sdispls: Numbers,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    rdispls: Numbers,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Answer<Call> {
    let size = on(comm)?.size() as usize;
    let into = listed("recvbuf", recvbuf, recvcounts, rdispls, recvtype, size)?;
    let out = match sendbuf as isize {
        MPI_IN_PLACE => None,
        _ => Some(listed("sendbuf", sendbuf, sendcounts, sdispls, sendtype, size)?),
    };
    Ok(Call::Alltoall { out, into })
}

pub unsafe fn alltoallw(
    sendbuf: *const c_void,
    sendcounts: Numbers,
    sdispls: Numbers,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    rdispls: Numbers,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
) -> Answer<Call> {
    let size = on(comm)?.size() as usize;
    let into = typed("recvbuf", recvbuf, recvcounts, rdispls, recvtypes, size)?;
    let out = match sendbuf as isize {
        MPI_IN_PLACE => None,
        _ => Some(typed("sendbuf", sendbuf, sendcounts, sdispls, sendtypes, size)?),
    };
    Ok(Call::Alltoall { out, into })
}
