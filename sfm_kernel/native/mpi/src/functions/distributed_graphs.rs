//! Distributed graph topologies, in which each process knows its own edges: creation and queries.

use super::communicators::none_yet;
use super::graphs::{first, none};
use super::topologies::with_topology;
use crate::checks::{self, array, put, Numbers};
use crate::collective::presence::complete;
use crate::collective::team::Team;
use crate::collective::words;
use crate::comm;
use crate::engine::Collective;
use crate::errors::{fail, Answer, Failure};
use crate::graph::{check_ranks, check_weights, Distributed, Ends};
use crate::handles::*;
use crate::topology::Topology;

/// None: MPI_UNWEIGHTED. The array may be MPI_WEIGHTS_EMPTY if it is empty.
unsafe fn weights<'a>(name: &str, at: *const c_int, count: usize) -> Answer<Option<&'a [c_int]>> {
    if at as usize == UNWEIGHTED {
        return Ok(None);
    }
    let weights = match at as usize {
        WEIGHTS_EMPTY if count > 0 => {
            let text = format!("argument {name} is MPI_WEIGHTS_EMPTY, but there are {count} edges");
            return Err(fail(MPI_ERR_ARG, text));
        }
        _ => array(name, at, count)?,
    };
    check_weights(name, weights)?;
    Ok(Some(weights))
}

pub unsafe fn dist_graph_create_adjacent(
    comm_old: MPI_Comm,
    indegree: c_int,
    sources: *const c_int,
    sourceweights: *const c_int,
    outdegree: c_int,
    destinations: *const c_int,
    destweights: *const c_int,
    _info: MPI_Info,
    _reorder: c_int,
    comm_dist_graph: *mut MPI_Comm,
) -> Answer {
    let old = comm::intra(comm_old)?;
    none_yet(comm_dist_graph)?;
    let ends = |name: &str, ranks, weight_name: &str, weights_, degree| {
        let ranks = array(name, ranks, degree)?.to_vec();
        check_ranks(name, &ranks, old.size())?;
        let weights = weights(weight_name, weights_, degree)?;
        let is_weighted = weights.is_some();
        Ok((Ends { ranks, weights: weights.unwrap_or_default().to_vec() }, is_weighted))
    };
    let (indegree, outdegree) =
        (checks::count("indegree", indegree)?, checks::count("outdegree", outdegree)?);
    let (sources, is_weighted) =
        ends("sources", sources, "sourceweights", sourceweights, indegree)?;
    let (destinations, both) =
        ends("destinations", destinations, "destweights", destweights, outdegree)?;
    if is_weighted != both {
        return Err(half_weighted());
    }
    let graph = Topology::Distributed(Distributed { sources, destinations, is_weighted });
    put("comm_dist_graph", comm_dist_graph, with_topology(&old, 0, 0, graph)?)
}

#[cold]
fn half_weighted() -> Failure {
    let text = "some edges have weights, and others are MPI_UNWEIGHTED: either all processes give \
        weights for all edges (MPI_WEIGHTS_EMPTY if they have none), or none does";
    fail(MPI_ERR_TOPOLOGY, text)
}

/// An edge as it is sent to every process.
#[derive(Clone, Copy, Default)]
struct Edge {
    source: c_int,
    destination: c_int,
    weight: c_int,
    is_weighted: bool,
}

pub unsafe fn dist_graph_create(
    comm_old: MPI_Comm,
    n: c_int,
    sources: *const c_int,
    degrees: *const c_int,
    destinations: *const c_int,
    weights_: *const c_int,
    _info: MPI_Info,
    _reorder: c_int,
    comm_dist_graph: *mut MPI_Comm,
) -> Answer {
    let old = comm::intra(comm_old)?;
    none_yet(comm_dist_graph)?;
    let n = checks::count("n", n)?;
    let sources = array("sources", sources, n)?;
    check_ranks("sources", sources, old.size())?;
    let degrees = Numbers::Ints(degrees).counts("degrees", n)?;
    let count = degrees.iter().sum();
    let destinations = array("destinations", destinations, count)?;
    check_ranks("destinations", destinations, old.size())?;
    let weights = weights("weights", weights_, count)?;
    let sources = sources.iter().zip(degrees).flat_map(|(source, degree)| vec![*source; degree]);
    let edge = |(nth, source)| Edge {
        source,
        destination: destinations[nth],
        weight: weights.map_or(1, |weights| weights[nth]),
        is_weighted: weights.is_some(),
    };
    let edges: Vec<Edge> = sources.enumerate().map(edge).collect();
    let team = Team::of(&old, Collective::Making);
    let all = complete(&team, words::all(&team, &edges))?;
    let is_weighted = all.first().map_or(weights.is_some(), |edge| edge.is_weighted);
    let mut graph = Distributed { is_weighted, ..Distributed::default() };
    for edge in &all {
        if edge.is_weighted != is_weighted {
            return Err(half_weighted());
        }
        if edge.source == old.rank {
            graph.destinations.add(edge.destination, edge.weight);
        }
        if edge.destination == old.rank {
            graph.sources.add(edge.source, edge.weight);
        }
    }
    let made = with_topology(&old, 0, 0, Topology::Distributed(graph))?;
    put("comm_dist_graph", comm_dist_graph, made)
}

/// Use a communicator's graph.
fn with(handle: MPI_Comm, use_: impl FnOnce(&Distributed) -> Answer) -> Answer {
    let comm = comm::get(handle)?;
    match &comm.topology {
        Some(Topology::Distributed(graph)) => use_(graph),
        _ => Err(none(&comm, "distributed graph topology", "MPI_Dist_graph_create")),
    }
}

pub unsafe fn dist_graph_neighbors_count(
    comm: MPI_Comm,
    indegree: *mut c_int,
    outdegree: *mut c_int,
    weighted: *mut c_int,
) -> Answer {
    with(comm, |graph| {
        put("indegree", indegree, graph.sources.ranks.len() as c_int)?;
        put("outdegree", outdegree, graph.destinations.ranks.len() as c_int)?;
        put("weighted", weighted, c_int::from(graph.is_weighted))
    })
}

pub unsafe fn dist_graph_neighbors(
    comm: MPI_Comm,
    maxindegree: c_int,
    sources: *mut c_int,
    sourceweights: *mut c_int,
    maxoutdegree: c_int,
    destinations: *mut c_int,
    destweights: *mut c_int,
) -> Answer {
    with(comm, |Distributed { sources: incoming, destinations: outgoing, is_weighted }| {
        let has_weights = |at: *mut c_int| *is_weighted && at as usize != UNWEIGHTED;
        first("sources", "maxindegree", sources, maxindegree, &incoming.ranks)?;
        if has_weights(sourceweights) {
            let weights = &incoming.weights;
            first("sourceweights", "maxindegree", sourceweights, maxindegree, weights)?;
        }
        first("destinations", "maxoutdegree", destinations, maxoutdegree, &outgoing.ranks)?;
        if has_weights(destweights) {
            let weights = &outgoing.weights;
            first("destweights", "maxoutdegree", destweights, maxoutdegree, weights)?;
        }
        Ok(())
    })
}
