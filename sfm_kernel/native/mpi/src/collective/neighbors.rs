//! Collectives among the neighbours of a topology, and their arguments: each process exchanges
//! messages with its neighbours directly.

use super::arguments::{typed, Blocks};
use super::calls::Call;
use super::items::Items;
use super::team::{all_come, all_gone, Team};
use crate::checks::Numbers;
use crate::comm;
use crate::data::UserBuffer;
use crate::engine::Collective;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::topology::Neighbors;

/// Send to some processes and receive from some. Several messages between the same two processes
/// are received in the order in which they are sent.
pub async fn exchange(team: &Team<'_>, out: &[(usize, Items)], into: &[(usize, Items)]) -> Answer {
    let coming = into.iter().map(|(rank, items)| team.receive(*rank, items.data())).collect();
    let going = out.iter().map(|(rank, items)| team.send(*rank, &items.data())).collect();
    all_come(coming).await?;
    all_gone(going).await
}

fn of(comm: MPI_Comm) -> Answer<Neighbors> {
    let comm = comm::intra(comm)?;
    match &comm.topology {
        Some(topology) => Ok(topology.neighbors(comm.rank)),
        None => {
            let text = format!(
                "{} has no topology, and therefore no neighbours; MPI_Cart_create, \
                MPI_Graph_create and MPI_Dist_graph_create make communicators with a topology",
                comm.name()
            );
            Err(fail(MPI_ERR_TOPOLOGY, text))
        }
    }
}

/// `out` and `into`: a block for each neighbour, in their order. Blocks for MPI_PROC_NULL are
/// dropped.
fn call(what: Collective, neighbors: &Neighbors, out: Vec<Items>, into: Vec<Items>) -> Call {
    let existing = |(rank, items)| Some((usize::try_from(rank).ok()?, items));
    let out = neighbors.destinations.iter().copied().zip(out).filter_map(existing).collect();
    let mut into: Vec<_> = neighbors.sources.iter().copied().zip(into).collect();
    if neighbors.are_opposite {
        into.chunks_mut(2).for_each(<[_]>::reverse);
    }
    Call::Neighbors { what, out, into: into.into_iter().filter_map(existing).collect() }
}

pub unsafe fn neighbor_allgather(
    sendbuf: UserBuffer,
    recvbuf: impl Blocks,
    comm: MPI_Comm,
) -> Answer<Call> {
    let neighbors = of(comm)?;
    let out = vec![sendbuf.items()?; neighbors.destinations.len()];
    let into = recvbuf.blocks(neighbors.sources.len())?;
    Ok(call(Collective::NeighborAllgather, &neighbors, out, into))
}

pub unsafe fn neighbor_alltoall<B: Blocks>(sendbuf: B, recvbuf: B, comm: MPI_Comm) -> Answer<Call> {
    let neighbors = of(comm)?;
    let out = sendbuf.blocks(neighbors.destinations.len())?;
    let into = recvbuf.blocks(neighbors.sources.len())?;
    Ok(call(Collective::NeighborAlltoall, &neighbors, out, into))
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
) -> Answer<Call> {
    let neighbors = of(comm)?;
    let (sdispls, rdispls) = (Numbers::Longs(sdispls.cast()), Numbers::Longs(rdispls.cast()));
    let size = neighbors.destinations.len();
    let out = typed("sendbuf", sendbuf, sendcounts, sdispls, sendtypes, size)?;
    let size = neighbors.sources.len();
    let into = typed("recvbuf", recvbuf, recvcounts, rdispls, recvtypes, size)?;
    Ok(call(Collective::NeighborAlltoall, &neighbors, out, into))
}
