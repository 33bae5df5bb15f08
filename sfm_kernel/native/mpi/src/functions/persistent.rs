//! Collectives that are begun again and again.

use crate::checks::Numbers;
use crate::collective::calls::prepare;
use crate::collective::{arguments, reductions};
use crate::errors::Answer;
use crate::handles::*;

pub unsafe fn barrier_init(comm: MPI_Comm, _info: MPI_Info, request: *mut MPI_Request) -> Answer {
    let call = arguments::barrier(comm)?;
    prepare(comm, call, request)
}

pub unsafe fn bcast_init(
    buffer: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = arguments::bcast(buffer, count, datatype, root, comm)?;
    prepare(comm, call, request)
}

pub unsafe fn gather_init(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call =
        arguments::gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)?;
    prepare(comm, call, request)
}

pub unsafe fn gatherv_init(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    displs: Numbers,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = arguments::gatherv(
        sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm,
    )?;
    prepare(comm, call, request)
}

pub unsafe fn scatter_init(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call =
        arguments::scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)?;
    prepare(comm, call, request)
}

pub unsafe fn scatterv_init(
    sendbuf: *const c_void,
    sendcounts: Numbers,
    displs: Numbers,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = arguments::scatterv(
        sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm,
    )?;
    prepare(comm, call, request)
}

pub unsafe fn allgather_init(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call =
        arguments::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)?;
    prepare(comm, call, request)
}

pub unsafe fn allgatherv_init(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    displs: Numbers,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = arguments::allgatherv(
        sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
    )?;
    prepare(comm, call, request)
}

pub unsafe fn alltoall_init(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call =
        arguments::alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)?;
    prepare(comm, call, request)
}

pub unsafe fn alltoallv_init(
    sendbuf: *const c_void,
    sendcounts: Numbers,
    sdispls: Numbers,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    rdispls: Numbers,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = arguments::alltoallv(
        sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
    )?;
    prepare(comm, call, request)
}

pub unsafe fn alltoallw_init(
    sendbuf: *const c_void,
    sendcounts: Numbers,
    sdispls: Numbers,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    rdispls: Numbers,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = arguments::alltoallw(
        sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
    )?;
    prepare(comm, call, request)
}

pub unsafe fn reduce_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = reductions::reduce(sendbuf, recvbuf, count, datatype, op, root, comm)?;
    prepare(comm, call, request)
}

pub unsafe fn allreduce_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = reductions::allreduce(sendbuf, recvbuf, count, datatype, op, comm)?;
    prepare(comm, call, request)
}

pub unsafe fn reduce_scatter_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = reductions::reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm)?;
    prepare(comm, call, request)
}

pub unsafe fn reduce_scatter_block_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = reductions::reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm)?;
    prepare(comm, call, request)
}

pub unsafe fn scan_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = reductions::scan(sendbuf, recvbuf, count, datatype, op, comm)?;
    prepare(comm, call, request)
}

pub unsafe fn exscan_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = reductions::exscan(sendbuf, recvbuf, count, datatype, op, comm)?;
    prepare(comm, call, request)
}
