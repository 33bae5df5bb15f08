//! What the arguments of the collectives mean. Each function is as MPI has it.

use super::calls::{on, Call};
use super::items::Items;
use crate::checks::{array, count, root as check_root};
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
    counts: *const c_int,
    displs: *const c_int,
    datatype: MPI_Datatype,
    size: usize,
) -> Answer<Vec<Items>> {
    let counts = array("counts", counts, size)?;
    let displs = array("displs", displs, size)?;
    let items = Items::of(name, at, 0, datatype)?;
    let one = |(length, displ): (&c_int, &c_int)| {
        let offset = *displ as isize * items.datatype.extent;
        let part = items.at(offset, count("counts", *length)?);
        part.check(name)?;
        Ok(part)
    };
    counts.iter().zip(displs).map(one).collect()
}

/// `counts`, `displs` (in bytes) and datatypes for each process.
unsafe fn typed(
    name: &str,
    at: *const c_void,
    counts: *const c_int,
    displs: *const c_int,
    datatypes: *const MPI_Datatype,
    size: usize,
) -> Answer<Vec<Items>> {
    let counts = array("counts", counts, size)?;
    let displs = array("displs", displs, size)?;
    let datatypes = array("types", datatypes, size)?;
    let one = |nth: usize| {
        let items = Items::of(name, at, 0, datatypes[nth])?;
        let part = items.at(displs[nth] as isize, count("counts", counts[nth])?);
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
    count: c_int,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    check_root(&*on(comm)?, root)?;
    Ok(Call::Bcast { items: Items::of("buffer", buffer, count, datatype)?, root: root as usize })
}

pub unsafe fn gather(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: c_int,
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
    sendcount: c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const c_int,
    displs: *const c_int,
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
    sendcount: c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: c_int,
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
    sendcounts: *const c_int,
    displs: *const c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: c_int,
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
    sendcount: c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: c_int,
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
    sendcount: c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const c_int,
    displs: *const c_int,
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
    sendcount: c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: c_int,
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
    sendcounts: *const c_int,
    sdispls: *const c_int,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const c_int,
    rdispls: *const c_int,
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
    sendcounts: *const c_int,
    sdispls: *const c_int,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const c_int,
    rdispls: *const c_int,
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
