//! Collectives that go on while the program does.

use crate::checks::Numbers;
use crate::collective::calls::open;
use crate::collective::{arguments, reductions};
use crate::errors::Answer;
use crate::handles::*;

pub unsafe fn ibarrier(comm: MPI_Comm, request: *mut MPI_Request) -> Answer {
    let call = arguments::barrier(comm)?;
    open(comm, call, request)
}

pub unsafe fn ibcast(
    buffer: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = arguments::bcast(buffer, count, datatype, root, comm)?;
    open(comm, call, request)
}

pub unsafe fn igather(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call =
        arguments::gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)?;
    open(comm, call, request)
}

pub unsafe fn igatherv(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    displs: Numbers,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = arguments::gatherv(
        sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm,
    )?;
    open(comm, call, request)
}

pub unsafe fn iscatter(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call =
        arguments::scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)?;
    open(comm, call, request)
}

pub unsafe fn iscatterv(
    sendbuf: *const c_void,
    sendcounts: Numbers,
    displs: Numbers,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = arguments::scatterv(
        sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm,
    )?;
    open(comm, call, request)
}

pub unsafe fn iallgather(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call =
        arguments::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)?;
    open(comm, call, request)
}

pub unsafe fn iallgatherv(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    displs: Numbers,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = arguments::allgatherv(
        sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
    )?;
    open(comm, call, request)
}

pub unsafe fn ialltoall(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call =
        arguments::alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)?;
    open(comm, call, request)
}

pub unsafe fn ialltoallv(
    sendbuf: *const c_void,
    sendcounts: Numbers,
    sdispls: Numbers,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    rdispls: Numbers,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = arguments::alltoallv(
        sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
    )?;
    open(comm, call, request)
}

pub unsafe fn ialltoallw(
    sendbuf: *const c_void,
    sendcounts: Numbers,
    sdispls: Numbers,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    rdispls: Numbers,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = arguments::alltoallw(
        sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
    )?;
    open(comm, call, request)
}

pub unsafe fn ireduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = reductions::reduce(sendbuf, recvbuf, count, datatype, op, root, comm)?;
    open(comm, call, request)
}

pub unsafe fn iallreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = reductions::allreduce(sendbuf, recvbuf, count, datatype, op, comm)?;
    open(comm, call, request)
}

pub unsafe fn ireduce_scatter(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = reductions::reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm)?;
    open(comm, call, request)
}

pub unsafe fn ireduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = reductions::reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm)?;
    open(comm, call, request)
}

pub unsafe fn iscan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = reductions::scan(sendbuf, recvbuf, count, datatype, op, comm)?;
    open(comm, call, request)
}

pub unsafe fn iexscan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = reductions::exscan(sendbuf, recvbuf, count, datatype, op, comm)?;
    open(comm, call, request)
}
