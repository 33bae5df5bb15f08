//! Collectives that return when this process's part is done.

use crate::checks::Numbers;
use crate::collective::calls::block;
use crate::collective::{arguments, reductions};
use crate::errors::Answer;
use crate::handles::*;

pub unsafe fn barrier(comm: MPI_Comm) -> Answer {
    let call = arguments::barrier(comm)?;
    block(comm, &call)
}

pub unsafe fn bcast(
    buffer: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Answer {
    let call = arguments::bcast(buffer, count, datatype, root, comm)?;
    block(comm, &call)
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
) -> Answer {
    let call =
        arguments::gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)?;
    block(comm, &call)
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
) -> Answer {
    let call = arguments::gatherv(
        sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm,
    )?;
    block(comm, &call)
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
) -> Answer {
    let call =
        arguments::scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)?;
    block(comm, &call)
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
) -> Answer {
    let call = arguments::scatterv(
        sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm,
    )?;
    block(comm, &call)
}

pub unsafe fn allgather(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Answer {
    let call =
        arguments::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)?;
    block(comm, &call)
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
) -> Answer {
    let call = arguments::allgatherv(
        sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
    )?;
    block(comm, &call)
}

pub unsafe fn alltoall(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Answer {
    let call =
        arguments::alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)?;
    block(comm, &call)
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
) -> Answer {
    let call = arguments::alltoallv(
        sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
    )?;
    block(comm, &call)
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
) -> Answer {
    let call = arguments::alltoallw(
        sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
    )?;
    block(comm, &call)
}

pub unsafe fn reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
) -> Answer {
    let call = reductions::reduce(sendbuf, recvbuf, count, datatype, op, root, comm)?;
    block(comm, &call)
}

pub unsafe fn allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer {
    let call = reductions::allreduce(sendbuf, recvbuf, count, datatype, op, comm)?;
    block(comm, &call)
}

pub unsafe fn reduce_scatter(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer {
    let call = reductions::reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm)?;
    block(comm, &call)
}

pub unsafe fn reduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer {
    let call = reductions::reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm)?;
    block(comm, &call)
}

pub unsafe fn scan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer {
    let call = reductions::scan(sendbuf, recvbuf, count, datatype, op, comm)?;
    block(comm, &call)
}

pub unsafe fn exscan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer {
    let call = reductions::exscan(sendbuf, recvbuf, count, datatype, op, comm)?;
    block(comm, &call)
}
