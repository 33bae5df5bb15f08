//! Collectives among the neighbours of a topology: that return when this process's part is done, that
//! go on while the program does, and that are begun again and again.

use crate::checks::Numbers;
use crate::collective::calls::{block, open, prepare};
use crate::collective::neighbors;
use crate::errors::Answer;
use crate::handles::*;

pub unsafe fn neighbor_allgather(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Answer {
    let call =
        neighbors::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)?;
    block(comm, &call)
}

pub unsafe fn ineighbor_allgather(
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
        neighbors::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)?;
    open(comm, call, request)
}

pub unsafe fn neighbor_allgather_init(
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
        neighbors::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)?;
    prepare(comm, call, request)
}

pub unsafe fn neighbor_allgatherv(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    displs: Numbers,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Answer {
    let call = neighbors::allgatherv(
        sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
    )?;
    block(comm, &call)
}

pub unsafe fn ineighbor_allgatherv(
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
    let call = neighbors::allgatherv(
        sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
    )?;
    open(comm, call, request)
}

pub unsafe fn neighbor_allgatherv_init(
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
    let call = neighbors::allgatherv(
        sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
    )?;
    prepare(comm, call, request)
}

pub unsafe fn neighbor_alltoall(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Answer {
    let call =
        neighbors::alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)?;
    block(comm, &call)
}

pub unsafe fn ineighbor_alltoall(
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
        neighbors::alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)?;
    open(comm, call, request)
}

pub unsafe fn neighbor_alltoall_init(
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
        neighbors::alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)?;
    prepare(comm, call, request)
}

pub unsafe fn neighbor_alltoallv(
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
    let call = neighbors::alltoallv(
        sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
    )?;
    block(comm, &call)
}

pub unsafe fn ineighbor_alltoallv(
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
    let call = neighbors::alltoallv(
        sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
    )?;
    open(comm, call, request)
}

pub unsafe fn neighbor_alltoallv_init(
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
    let call = neighbors::alltoallv(
        sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
    )?;
    prepare(comm, call, request)
}

pub unsafe fn neighbor_alltoallw(
    sendbuf: *const c_void,
    sendcounts: Numbers,
    sdispls: *const MPI_Aint,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    rdispls: *const MPI_Aint,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
) -> Answer {
    let call = neighbors::alltoallw(
        sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
    )?;
    block(comm, &call)
}

pub unsafe fn ineighbor_alltoallw(
    sendbuf: *const c_void,
    sendcounts: Numbers,
    sdispls: *const MPI_Aint,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    rdispls: *const MPI_Aint,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let call = neighbors::alltoallw(
        sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
    )?;
    open(comm, call, request)
}

pub unsafe fn neighbor_alltoallw_init(
    sendbuf: *const c_void,
    sendcounts: Numbers,
    sdispls: *const MPI_Aint,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    rdispls: *const MPI_Aint,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let call = neighbors::alltoallw(
        sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
    )?;
    prepare(comm, call, request)
}
