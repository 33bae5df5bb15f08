//! Topologies: the positions of a communicator's processes, and their neighbours.

use crate::cart::Cart;
use crate::graph::{Distributed, Graph};
use crate::handles::*;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    Cart(Cart),
    Graph(Graph),
    Distributed(Distributed),
}

/// The neighbours of one process, in the order of their blocks in a buffer.
pub struct Neighbors {
    pub sources: Vec<c_int>,
    pub destinations: Vec<c_int>,
    /// The neighbours come in pairs, and a block sent to the first of a pair arrives as the block
    /// from the second. That matters if both are the same process.
    pub are_opposite: bool,
}

impl Topology {
    /// The value of MPI_Topo_test.
    pub fn kind(&self) -> c_int {
        match self {
            Topology::Cart(_) => MPI_CART,
            Topology::Graph(_) => MPI_GRAPH,
            Topology::Distributed(_) => MPI_DIST_GRAPH,
        }
    }

    /// The neighbours of this rank; MPI_PROC_NULL beyond the edge of a grid. A distributed graph
    /// knows only the neighbours of this process.
    pub fn neighbors(&self, rank: c_int) -> Neighbors {
        let same = |ranks: Vec<c_int>, are_opposite| Neighbors {
            sources: ranks.clone(),
            destinations: ranks,
            are_opposite,
        };
        match self {
            Topology::Cart(cart) => {
                let pair = |direction| <[c_int; 2]>::from(cart.shift(rank, direction, 1));
                same((0..cart.dims.len()).flat_map(pair).collect(), true)
            }
            Topology::Graph(graph) => same(graph.neighbors(rank as usize).to_vec(), false),
            Topology::Distributed(graph) => Neighbors {
                sources: graph.sources.ranks.clone(),
                destinations: graph.destinations.ranks.clone(),
                are_opposite: false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_on_a_grid_come_in_pairs() {
        let grid = Cart { dims: vec![2, 3], periods: vec![true, false] };
        let of = |rank| Topology::Cart(grid.clone()).neighbors(rank);
        assert_eq!(of(0).sources, [3, 3, MPI_PROC_NULL, 1]);
        assert_eq!(of(4).destinations, [1, 1, 3, 5]);
        assert!(of(4).are_opposite);
    }
}
