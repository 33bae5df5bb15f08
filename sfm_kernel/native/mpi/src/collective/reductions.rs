//! What the arguments of the reductions mean. Each function is as MPI has it.

use super::calls::{on, Call};
use super::items::Items;
use crate::checks::{array, count, root as check_root};
use crate::errors::Answer;
use crate::handles::*;
use crate::op::{self, Op};

fn operation(handle: MPI_Op, items: &Items) -> Answer<Op> {
    let op = op::get(handle)?;
    op.check(&items.datatype)?;
    Ok(op)
}

pub unsafe fn reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: c_int,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = on(comm)?;
    check_root(&comm, root)?;
    let into = match comm.rank == root {
        true => Some(Items::of("recvbuf", recvbuf, count, datatype)?),
        false => None,
    };
    let from = match (sendbuf as isize, &into) {
        (MPI_IN_PLACE, Some(into)) => into.clone(),
        _ => Items::of("sendbuf", sendbuf, count, datatype)?,
    };
    Ok(Call::Reduce { op: operation(op, &from)?, from, into, root: root as usize })
}

pub unsafe fn allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: c_int,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer<Call> {
    on(comm)?;
    let into = Items::of("recvbuf", recvbuf, count, datatype)?;
    let from = Items::unless_in_place("sendbuf", sendbuf, count, datatype)?;
    Ok(Call::Allreduce { op: operation(op, &into)?, from, into })
}

pub unsafe fn reduce_scatter(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: *const c_int,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = on(comm)?;
    let counts = array("recvcounts", recvcounts, comm.size() as usize)?;
    let counts: Answer<Vec<usize>> = counts.iter().map(|one| count("recvcounts", *one)).collect();
    parts(sendbuf, recvbuf, counts?, comm.rank as usize, datatype, op)
}

pub unsafe fn reduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: c_int,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = on(comm)?;
    let counts = vec![count("recvcount", recvcount)?; comm.size() as usize];
    parts(sendbuf, recvbuf, counts, comm.rank as usize, datatype, op)
}

fn parts(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: Vec<usize>,
    rank: usize,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Answer<Call> {
    let total = counts.iter().sum::<usize>() as c_int;
    let into = Items::of("recvbuf", recvbuf, counts[rank] as c_int, datatype)?;
    let from = match sendbuf as isize {
        MPI_IN_PLACE => into.part(0, total as usize),
        _ => Items::of("sendbuf", sendbuf, total, datatype)?,
    };
    Ok(Call::ReduceScatter { op: operation(op, &from)?, from, counts, into })
}

pub unsafe fn scan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: c_int,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer<Call> {
    on(comm)?;
    let into = Items::of("recvbuf", recvbuf, count, datatype)?;
    let from = Items::unless_in_place("sendbuf", sendbuf, count, datatype)?;
    Ok(Call::Scan { op: operation(op, &into)?, from, into })
}

pub unsafe fn exscan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: c_int,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer<Call> {
    on(comm)?;
    let into = Items::of("recvbuf", recvbuf, count, datatype)?;
    let from = Items::unless_in_place("sendbuf", sendbuf, count, datatype)?;
    let from = from.unwrap_or_else(|| into.clone());
    Ok(Call::Exscan { op: operation(op, &into)?, from, into })
}
