//! Graph topologies: creation and queries.

use super::communicators::none_yet;
use super::topologies::{color, room, with_topology};
use crate::checks::{self, array, array_mut, put};
use crate::comm::{self, Comm};
use crate::errors::{fail, Answer, Failure};
use crate::graph::Graph;
use crate::handles::*;
use crate::topology::Topology;

/// The graph of MPI_Graph_create's arguments, with at most as many nodes as processes.
unsafe fn graph(
    comm: &Comm,
    nnodes: c_int,
    index: *const c_int,
    edges: *const c_int,
) -> Answer<Graph> {
    let nodes = checks::count("nnodes", nnodes)?;
    if nnodes > comm.size() {
        let text = format!(
            "argument nnodes is {nnodes}, more than the {} processes of {}",
            comm.size(),
            comm.name()
        );
        return Err(fail(MPI_ERR_ARG, text));
    }
    let index = array("index", index, nodes)?;
    Graph::of(index, array("edges", edges, Graph::length(index)?)?)
}

pub unsafe fn graph_create(
    comm_old: MPI_Comm,
    nnodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    _reorder: c_int,
    comm_graph: *mut MPI_Comm,
) -> Answer {
    let old = comm::intra(comm_old)?;
    none_yet(comm_graph)?;
    let graph = Topology::Graph(graph(&old, nnodes, index, edges)?);
    put("comm_graph", comm_graph, with_topology(&old, color(&old, nnodes), 0, graph)?)
}

/// The rank that MPI_Graph_create would give this process: its own, because it never reorders.
pub unsafe fn graph_map(
    comm: MPI_Comm,
    nnodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    newrank: *mut c_int,
) -> Answer {
    let comm = comm::intra(comm)?;
    graph(&comm, nnodes, index, edges)?;
    put("newrank", newrank, if comm.rank < nnodes { comm.rank } else { MPI_UNDEFINED })
}

/// The error for a communicator that lacks the topology.
#[cold]
pub(super) fn none(comm: &Comm, kind: &str, maker: &str) -> Failure {
    let text = format!("{} has no {kind}; {maker} makes a communicator that has one", comm.name());
    fail(MPI_ERR_TOPOLOGY, text)
}

/// Use a communicator's graph.
fn with<T>(handle: MPI_Comm, use_: impl FnOnce(&Graph) -> Answer<T>) -> Answer<T> {
    let comm = comm::get(handle)?;
    match &comm.topology {
        Some(Topology::Graph(graph)) => use_(graph),
        _ => Err(none(&comm, "graph topology", "MPI_Graph_create")),
    }
}

pub unsafe fn graphdims_get(comm: MPI_Comm, nnodes: *mut c_int, nedges: *mut c_int) -> Answer {
    with(comm, |graph| {
        put("nnodes", nnodes, graph.index.len() as c_int)?;
        put("nedges", nedges, graph.edges.len() as c_int)
    })
}

pub unsafe fn graph_get(
    comm: MPI_Comm,
    maxindex: c_int,
    maxedges: c_int,
    index: *mut c_int,
    edges: *mut c_int,
) -> Answer {
    with(comm, |graph| {
        room("maxindex", maxindex, graph.index.len())?;
        room("maxedges", maxedges, graph.edges.len())?;
        first("index", "maxindex", index, maxindex, &graph.index)?;
        first("edges", "maxedges", edges, maxedges, &graph.edges)
    })
}

fn neighbors(comm: MPI_Comm, rank: c_int) -> Answer<Vec<c_int>> {
    with(comm, |graph| {
        checks::rank("rank", rank, graph.index.len() as c_int, "the graph")?;
        Ok(graph.neighbors(rank as usize).to_vec())
    })
}

pub unsafe fn graph_neighbors_count(comm: MPI_Comm, rank: c_int, nneighbors: *mut c_int) -> Answer {
    put("nneighbors", nneighbors, neighbors(comm, rank)?.len() as c_int)
}

pub unsafe fn graph_neighbors(
    comm: MPI_Comm,
    rank: c_int,
    maxneighbors: c_int,
    neighbors_: *mut c_int,
) -> Answer {
    first("neighbors", "maxneighbors", neighbors_, maxneighbors, &neighbors(comm, rank)?)
}

/// Write as many as there is room for.
///
/// # Safety
/// There is that room.
pub(super) unsafe fn first(
    name: &str,
    of_room: &str,
    at: *mut c_int,
    room: c_int,
    all: &[c_int],
) -> Answer {
    let count = checks::count(of_room, room)?.min(all.len());
    array_mut(name, at, count)?.copy_from_slice(&all[..count]);
    Ok(())
}
