//! The collectives' arguments, checked and converted to a `Call`. Each function has the MPI
//! function's parameters.

use super::calls::Call;
use super::items::Items;
use crate::checks::{array, root as check_root, Numbers};
use crate::comm::{self, Comm};
use crate::data::UserBuffer;
use crate::errors::Answer;
use crate::handles::*;

/// Divide items into equal, contiguous blocks for `size` processes.
pub fn equal(items: &Items, size: usize) -> Vec<Items> {
    items.split(&vec![items.count; size])
}

/// A buffer of blocks as a call's arguments describe it, before any check.
#[derive(Clone, Copy)]
pub struct UserBlocks {
    /// The name of the argument `at`, for failures.
    name: &'static str,
    at: *const c_void,
    counts: Numbers,
    /// In items.
    displs: Numbers,
    datatype: MPI_Datatype,
}

impl UserBlocks {
    pub fn new(
        name: &'static str,
        at: *const c_void,
        counts: Numbers,
        displs: Numbers,
        datatype: MPI_Datatype,
    ) -> UserBlocks {
        UserBlocks { name, at, counts, displs, datatype }
    }

    /// A block for each of `size` processes.
    pub unsafe fn items(&self, size: usize) -> Answer<Vec<Items>> {
        let counts = self.counts.counts("counts", size)?;
        let displs = self.displs.list("displs", size)?;
        let most = counts.iter().copied().max().unwrap_or(0);
        let items = Items::base(self.name, self.at, most, self.datatype)?;
        let one = |(count, displ)| {
            let block = items.at(displ as isize * items.datatype.extent, count);
            block.check(self.name)?;
            Ok(block)
        };
        counts.into_iter().zip(displs).map(one).collect()
    }
}

/// A block for each process, from `counts`, `displs` (in bytes) and datatypes.
pub unsafe fn typed(
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
        let items = Items::base(name, at, counts[nth], datatypes[nth])?;
        let block = items.at(displs[nth] as isize, counts[nth]);
        block.check(name)?;
        Ok(block)
    };
    (0..size).map(one).collect()
}

/// The number of blocks in a buffer: one for each process that a message of `comm` can name.
fn number(comm: &Comm) -> usize {
    comm.peers().members.len()
}

/// True if the send buffer is MPI_IN_PLACE, which an intercommunicator does not allow.
pub fn is_in_place(comm: &Comm, at: *const c_void) -> bool {
    at as isize == MPI_IN_PLACE && comm.remote.is_none()
}

pub struct Root {
    /// In the numbering of `Team`.
    pub rank: usize,
    /// True if the root is this process.
    pub is_here: bool,
    /// True if the root also sends to itself and receives from itself.
    includes_itself: bool,
}

impl Root {
    /// None: this process does nothing in the call.
    pub fn of(comm: &Comm, root: c_int) -> Answer<Option<Root>> {
        check_root(comm, root)?;
        let (rank_here, size) = (comm.rank as usize, comm.size() as usize);
        let of = |rank: usize, includes_itself| {
            Ok(Some(Root { rank, is_here: rank == rank_here, includes_itself }))
        };
        match root {
            MPI_PROC_NULL => Ok(None),
            MPI_ROOT => of(rank_here, false),
            _ if comm.remote.is_some() => of(size + root as usize, false),
            _ => of(root as usize, true),
        }
    }

    /// This process's block; None for a root with MPI_IN_PLACE, or a root that has no block
    /// (MPI_ROOT).
    pub fn local_block(&self, buffer: &UserBuffer) -> Answer<Option<Items>> {
        match (self.is_here, self.includes_itself) {
            (false, _) => buffer.items().map(Some),
            (true, true) => buffer.items_unless_in_place(),
            (true, false) => Ok(None),
        }
    }
}

/// This process's send block; None with MPI_IN_PLACE.
pub fn local_or_in_place(comm: &Comm, buffer: &UserBuffer) -> Answer<Option<Items>> {
    match is_in_place(comm, buffer.at) {
        true => Ok(None),
        false => buffer.items().map(Some),
    }
}

pub unsafe fn barrier(comm: MPI_Comm) -> Answer<Call> {
    comm::get(comm).map(|_| Call::Barrier)
}

pub unsafe fn bcast(buffer: UserBuffer, root: c_int, comm: MPI_Comm) -> Answer<Call> {
    let Some(root) = Root::of(&*comm::get(comm)?, root)? else { return Ok(Call::Nothing) };
    Ok(Call::Bcast { items: buffer.items()?, root: root.rank })
}

pub unsafe fn gather(
    sendbuf: UserBuffer,
    recvbuf: UserBuffer,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let Some(root) = Root::of(&comm, root)? else { return Ok(Call::Nothing) };
    let local = root.local_block(&sendbuf)?;
    let blocks = match root.is_here {
        true => equal(&recvbuf.items()?, number(&comm)),
        false => Vec::new(),
    };
    Ok(Call::Gather { local, blocks, root: root.rank })
}

pub unsafe fn gatherv(
    sendbuf: UserBuffer,
    recvbuf: UserBlocks,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let Some(root) = Root::of(&comm, root)? else { return Ok(Call::Nothing) };
    let local = root.local_block(&sendbuf)?;
    let blocks = match root.is_here {
        true => recvbuf.items(number(&comm))?,
        false => Vec::new(),
    };
    Ok(Call::Gather { local, blocks, root: root.rank })
}

pub unsafe fn scatter(
    sendbuf: UserBuffer,
    recvbuf: UserBuffer,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let Some(root) = Root::of(&comm, root)? else { return Ok(Call::Nothing) };
    let local = root.local_block(&recvbuf)?;
    let blocks = match root.is_here {
        true => equal(&sendbuf.items()?, number(&comm)),
        false => Vec::new(),
    };
    Ok(Call::Scatter { blocks, local, root: root.rank })
}

pub unsafe fn scatterv(
    sendbuf: UserBlocks,
    recvbuf: UserBuffer,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let Some(root) = Root::of(&comm, root)? else { return Ok(Call::Nothing) };
    let local = root.local_block(&recvbuf)?;
    let blocks = match root.is_here {
        true => sendbuf.items(number(&comm))?,
        false => Vec::new(),
    };
    Ok(Call::Scatter { blocks, local, root: root.rank })
}

pub unsafe fn allgather(sendbuf: UserBuffer, recvbuf: UserBuffer, comm: MPI_Comm) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let local = local_or_in_place(&comm, &sendbuf)?;
    let each = recvbuf.items()?;
    Ok(Call::Allgather { local, blocks: equal(&each, number(&comm)) })
}

pub unsafe fn allgatherv(sendbuf: UserBuffer, recvbuf: UserBlocks, comm: MPI_Comm) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let local = local_or_in_place(&comm, &sendbuf)?;
    let blocks = recvbuf.items(number(&comm))?;
    Ok(Call::Allgather { local, blocks })
}

pub unsafe fn alltoall(sendbuf: UserBuffer, recvbuf: UserBuffer, comm: MPI_Comm) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let into = recvbuf.items()?;
    let out = local_or_in_place(&comm, &sendbuf)?;
    let out = out.map(|out| equal(&out, number(&comm)));
    Ok(Call::Alltoall { out, into: equal(&into, number(&comm)) })
}

pub unsafe fn alltoallv(sendbuf: UserBlocks, recvbuf: UserBlocks, comm: MPI_Comm) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let size = number(&comm);
    let into = recvbuf.items(size)?;
    let out = match is_in_place(&comm, sendbuf.at) {
        true => None,
        false => Some(sendbuf.items(size)?),
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
    let comm = comm::get(comm)?;
    let size = number(&comm);
    let into = typed("recvbuf", recvbuf, recvcounts, rdispls, recvtypes, size)?;
    let out = match is_in_place(&comm, sendbuf) {
        true => None,
        false => Some(typed("sendbuf", sendbuf, sendcounts, sdispls, sendtypes, size)?),
    };
    Ok(Call::Alltoall { out, into })
}
