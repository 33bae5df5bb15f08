//! The collectives' arguments, checked and converted to a `Call`. Each function has the MPI
//! function's parameters; a collective and its v-form share one.

use super::calls::Call;
use super::items::Items;
use crate::checks::{array, Numbers};
use crate::comm::{self, Comm};
use crate::data::UserBuffer;
use crate::ends;
use crate::engine::Collective;
use crate::errors::Answer;
use crate::handles::*;

/// A buffer with a block for each process: contiguous blocks of equal size, or, in the v-forms,
/// blocks with counts and displacements.
pub trait Blocks {
    fn address(&self) -> *const c_void;

    /// A block for each of `size` processes.
    ///
    /// # Safety
    /// The arrays of the arguments have `size` elements.
    unsafe fn blocks(&self, size: usize) -> Answer<Vec<Items>>;
}

impl Blocks for UserBuffer {
    fn address(&self) -> *const c_void {
        self.at
    }

    unsafe fn blocks(&self, size: usize) -> Answer<Vec<Items>> {
        let each = self.items()?;
        Ok(each.split(&vec![each.count; size]))
    }
}

/// A buffer of a v-form as a call's arguments describe it, before any check.
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
}

impl Blocks for UserBlocks {
    fn address(&self) -> *const c_void {
        self.at
    }

    unsafe fn blocks(&self, size: usize) -> Answer<Vec<Items>> {
        let counts = self.counts.counts("counts", size)?;
        let displs = self.displs.list("displs", size)?;
        let most = counts.iter().copied().max().unwrap_or(0);
        let items = Items::base(self.name, self.at, most, self.datatype)?;
        let block_of = |(count, displ)| {
            let block = items.at(displ as isize * items.datatype.extent, count);
            block.check(self.name)?;
            Ok(block)
        };
        counts.into_iter().zip(displs).map(block_of).collect()
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
    let block_of = |nth: usize| {
        let items = Items::base(name, at, counts[nth], datatypes[nth])?;
        let block = items.at(displs[nth] as isize, counts[nth]);
        block.check(name)?;
        Ok(block)
    };
    (0..size).map(block_of).collect()
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
        ends::root(comm, root)?;
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

    /// The blocks at the root; none at any other process.
    unsafe fn blocks(&self, buffer: &impl Blocks, comm: &Comm) -> Answer<Vec<Items>> {
        match self.is_here {
            true => buffer.blocks(number(comm)),
            false => Ok(Vec::new()),
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
    let Some(root) = Root::of(&*comm::get(comm)?, root)? else {
        return Ok(Call::Nothing(Collective::Bcast));
    };
    Ok(Call::Bcast { items: buffer.items()?, root: root.rank })
}

pub unsafe fn gather(
    sendbuf: UserBuffer,
    recvbuf: impl Blocks,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let Some(root) = Root::of(&comm, root)? else { return Ok(Call::Nothing(Collective::Gather)) };
    let local = root.local_block(&sendbuf)?;
    let blocks = root.blocks(&recvbuf, &comm)?;
    Ok(Call::Gather { local, blocks, root: root.rank })
}

pub unsafe fn scatter(
    sendbuf: impl Blocks,
    recvbuf: UserBuffer,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let Some(root) = Root::of(&comm, root)? else { return Ok(Call::Nothing(Collective::Scatter)) };
    let local = root.local_block(&recvbuf)?;
    let blocks = root.blocks(&sendbuf, &comm)?;
    Ok(Call::Scatter { blocks, local, root: root.rank })
}

pub unsafe fn allgather(sendbuf: UserBuffer, recvbuf: impl Blocks, comm: MPI_Comm) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let local = local_or_in_place(&comm, &sendbuf)?;
    Ok(Call::Allgather { local, blocks: recvbuf.blocks(number(&comm))? })
}

pub unsafe fn alltoall<B: Blocks>(sendbuf: B, recvbuf: B, comm: MPI_Comm) -> Answer<Call> {
    let comm = comm::get(comm)?;
    let into = recvbuf.blocks(number(&comm))?;
    let out = match is_in_place(&comm, sendbuf.address()) {
        true => None,
        false => Some(sendbuf.blocks(number(&comm))?),
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
