//! What the arguments of the collectives mean. Each function is as MPI has it.

use super::calls::Call;
use super::items::Items;
use crate::checks::{array, root as check_root, Numbers};
use crate::comm::{self, Comm};
use crate::errors::Answer;
use crate::handles::*;

/// So many items for each of `size` processes, one behind the other.
pub fn equal(items: &Items, size: usize) -> Vec<Items> {
    items.parts(&vec![items.count; size])
}

/// `counts` and `displs` (in items) for each process.
pub unsafe fn listed(
    name: &str,
    at: *const c_void,
    counts: Numbers,
    displs: Numbers,
    datatype: MPI_Datatype,
    size: usize,
) -> Answer<Vec<Items>> {
    let counts = counts.counts("counts", size)?;
    let displs = displs.list("displs", size)?;
    let most = counts.iter().copied().max().unwrap_or(0);
    let items = Items::base(name, at, most, datatype)?;
    let one = |(count, displ)| {
        let part = items.at(displ as isize * items.datatype.extent, count);
        part.check(name)?;
        Ok(part)
    };
    counts.into_iter().zip(displs).map(one).collect()
}

/// `counts`, `displs` (in bytes) and datatypes for each process.
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
        let part = items.at(displs[nth] as isize, counts[nth]);
        part.check(name)?;
        Ok(part)
    };
    (0..size).map(one).collect()
}

/// How many processes the parts of a buffer are for: those whose ranks a message names.
fn number(comm: &Comm) -> usize {
    comm.peers().members.len()
}

/// Whether what is sent stands already where the result is to go: never on an intercommunicator.
pub fn is_in_place(comm: &Comm, at: *const c_void) -> bool {
    at as isize == MPI_IN_PLACE && comm.remote.is_none()
}

/// The root of a collective.
pub struct Root {
    /// As `Team` counts.
    pub rank: usize,
    /// It is this process.
    pub is_own: bool,
    /// It sends to itself, too, and receives from itself.
    takes_part: bool,
}

impl Root {
    /// None: this process has nothing to do.
    pub fn of(comm: &Comm, root: c_int) -> Answer<Option<Root>> {
        check_root(comm, root)?;
        let (own, near) = (comm.rank as usize, comm.size() as usize);
        let of = |rank: usize, takes_part| Ok(Some(Root { rank, is_own: rank == own, takes_part }));
        match root {
            MPI_PROC_NULL => Ok(None),
            MPI_ROOT => of(own, false),
            _ if comm.remote.is_some() => of(near + root as usize, false),
            _ => of(root as usize, true),
        }
    }

    /// What this process itself sends or receives: None for a root whose part stands in place already,
    /// or that has none.
    pub fn own_part(
        &self,
        name: &str,
        at: *const c_void,
        count: MPI_Count,
        datatype: MPI_Datatype,
    ) -> Answer<Option<Items>> {
        match (self.is_own, self.takes_part) {
            (false, _) => Items::of(name, at, count, datatype).map(Some),
            (true, true) => Items::unless_in_place(name, at, count, datatype),
            (true, false) => Ok(None),
        }
    }
}

/// What this process sends: None if it stands in place.
pub fn own_or_in_place(
    comm: &Comm,
    name: &str,
    at: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Answer<Option<Items>> {
    match is_in_place(comm, at) {
        true => Ok(None),
        false => Items::of(name, at, count, datatype).map(Some),
    }
}

pub unsafe fn barrier(comm: MPI_Comm) -> Answer<Call> {
    comm::get(comm).map(|_| Call::Barrier)
}

pub unsafe fn bcast(
    buffer: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Answer<Call> {
    let Some(root) = Root::of(&*comm::get(comm)?, root)? else { return Ok(Call::Nothing) };
    Ok(Call::Bcast { items: Items::of("buffer", buffer, count, datatype)?, root: root.rank })
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
    let comm = comm::get(comm)?;
    let Some(root) = Root::of(&comm, root)? else { return Ok(Call::Nothing) };
    let own = root.own_part("sendbuf", sendbuf, sendcount, sendtype)?;
    let parts = match root.is_own {
        true => equal(&Items::of("recvbuf", recvbuf, recvcount, recvtype)?, number(&comm)),
        false => Vec::new(),
    };
    Ok(Call::Gather { own, parts, root: root.rank })
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
    let comm = comm::get(comm)?;
    let Some(root) = Root::of(&comm, root)? else { return Ok(Call::Nothing) };
    let own = root.own_part("sendbuf", sendbuf, sendcount, sendtype)?;
    let parts = match root.is_own {
        true => listed("recvbuf", recvbuf, recvcounts, displs, recvtype, number(&comm))?,
        false => Vec::new(),
    };
    Ok(Call::Gather { own, parts, root: root.rank })
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
    let comm = comm::get(comm)?;
    let Some(root) = Root::of(&comm, root)? else { return Ok(Call::Nothing) };
    let own = root.own_part("recvbuf", recvbuf, recvcount, recvtype)?;
    let parts = match root.is_own {
        true => equal(&Items::of("sendbuf", sendbuf, sendcount, sendtype)?, number(&comm)),
        false => Vec::new(),
    };
    Ok(Call::Scatter { parts, own, root: root.rank })
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
    let comm = comm::get(comm)?;
    let Some(root) = Root::of(&comm, root)? else { return Ok(Call::Nothing) };
    let own = root.own_part("recvbuf", recvbuf, recvcount, recvtype)?;
    let parts = match root.is_own {
        true => listed("sendbuf", sendbuf, sendcounts, displs, sendtype, number(&comm))?,
        false => Vec::new(),
    };
    Ok(Call::Scatter { parts, own, root: root.rank })
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
    let comm = comm::get(comm)?;
    let own = own_or_in_place(&comm, "sendbuf", sendbuf, sendcount, sendtype)?;
    let each = Items::of("recvbuf", recvbuf, recvcount, recvtype)?;
    Ok(Call::Allgather { own, parts: equal(&each, number(&comm)) })
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
    let comm = comm::get(comm)?;
    let own = own_or_in_place(&comm, "sendbuf", sendbuf, sendcount, sendtype)?;
    let parts = listed("recvbuf", recvbuf, recvcounts, displs, recvtype, number(&comm))?;
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
    let comm = comm::get(comm)?;
    let into = Items::of("recvbuf", recvbuf, recvcount, recvtype)?;
    let out = own_or_in_place(&comm, "sendbuf", sendbuf, sendcount, sendtype)?;
    let out = out.map(|out| equal(&out, number(&comm)));
    Ok(Call::Alltoall { out, into: equal(&into, number(&comm)) })
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
    let comm = comm::get(comm)?;
    let size = number(&comm);
    let into = listed("recvbuf", recvbuf, recvcounts, rdispls, recvtype, size)?;
    let out = match is_in_place(&comm, sendbuf) {
        true => None,
        false => Some(listed("sendbuf", sendbuf, sendcounts, sdispls, sendtype, size)?),
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
