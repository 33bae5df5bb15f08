//! The reductions' arguments, checked and converted to a `Call`. Each function has the MPI
//! function's parameters.

use super::arguments::{local_or_in_place, Root};
use super::calls::Call;
use super::items::Items;
use crate::checks::{count, Numbers};
use crate::comm::{self, Comm};
use crate::data::UserBuffer;
use crate::engine::Collective;
use crate::errors::Answer;
use crate::handles::*;
use crate::op::{self, Op};

fn operation(handle: MPI_Op, items: &Items) -> Answer<Op> {
    let op = op::get(handle)?;
    if !items.are_of_nothing() {
        op.check(&items.datatype)?;
    }
    Ok(op)
}

pub unsafe fn reduce(
    sendbuf: *const c_void,
    recvbuf: UserBuffer,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let Some(root) = Root::of(&*comm::get(comm)?, root)? else {
        return Ok(Call::Nothing(Collective::Reduce));
    };
    let from = root.local_block(&UserBuffer { name: "sendbuf", at: sendbuf, ..recvbuf })?;
    let into = match root.is_here {
        true => Some(recvbuf.items()?),
        false => None,
    };
    let op = operation(op, from.as_ref().or(into.as_ref()).expect("one of both"))?;
    Ok(Call::Reduce { op, from, into, root: root.rank })
}

pub unsafe fn allreduce(
    sendbuf: *const c_void,
    recvbuf: UserBuffer,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer<Call> {
    let (op, from, into) = operands(&*comm::get(comm)?, sendbuf, recvbuf, op)?;
    Ok(Call::Allreduce { op, from, into })
}

fn operands(
    comm: &Comm,
    sendbuf: *const c_void,
    recvbuf: UserBuffer,
    op: MPI_Op,
) -> Answer<(Op, Option<Items>, Items)> {
    let into = recvbuf.items()?;
    let from = local_or_in_place(comm, &UserBuffer { name: "sendbuf", at: sendbuf, ..recvbuf })?;
    Ok((operation(op, &into)?, from, into))
}

pub unsafe fn reduce_scatter(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: Numbers,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let counts = recvcounts.counts("recvcounts", comm.size() as usize)?;
    from_counts(sendbuf, recvbuf, counts, &comm, datatype, op)
}

pub unsafe fn reduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: UserBuffer,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let counts = vec![count("recvcount", recvbuf.count)?; comm.size() as usize];
    from_counts(sendbuf, recvbuf.at, counts, &comm, recvbuf.datatype, op)
}

fn from_counts(
    sendbuf: *const c_void,
    recvbuf: *const c_void,
    counts: Vec<usize>,
    comm: &Comm,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Answer<Call> {
    let total =
        counts.iter().fold(0, |all: MPI_Count, count| all.saturating_add(*count as MPI_Count));
    let into = Items::base("recvbuf", recvbuf, total as usize, datatype)?;
    let into = into.slice(0, counts[comm.rank as usize]);
    into.check("recvbuf")?;
    let from = local_or_in_place(comm, &UserBuffer::new("sendbuf", sendbuf, total, datatype))?;
    Ok(Call::ReduceScatter { op: operation(op, &into)?, from, counts, into })
}

pub unsafe fn scan(
    sendbuf: *const c_void,
    recvbuf: UserBuffer,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer<Call> {
    let (op, from, into) = operands(&*comm::intra(comm)?, sendbuf, recvbuf, op)?;
    Ok(Call::Scan { op, from, into })
}

pub unsafe fn exscan(
    sendbuf: *const c_void,
    recvbuf: UserBuffer,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Answer<Call> {
    let (op, from, into) = operands(&*comm::intra(comm)?, sendbuf, recvbuf, op)?;
    Ok(Call::Exscan { op, from, into })
}
