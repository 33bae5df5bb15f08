//! Topologies: where the processes of a communicator stand, and who is whose neighbour.

use crate::cart::Cart;
use crate::graph::{Distributed, Graph};
use crate::handles::*;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    Cart(Cart),
    Graph(Graph),
    Distributed(Distributed),
}

/// Of one process, in the order in which their parts of a buffer follow each other.
pub struct Neighbors {
    pub sources: Vec<c_int>,
    pub destinations: Vec<c_int>,
    /// They come in pairs: what goes to the first of a pair comes from the second of the receiver's.
    /// That counts where both are the same process.
    pub are_opposite: bool,
}

impl Topology {
    /// What MPI_Topo_test says of it.
    pub fn kind(&self) -> c_int {
        match self {
            Topology::Cart(_) => MPI_CART,
            Topology::Graph(_) => MPI_GRAPH,
            Topology::Distributed(_) => MPI_DIST_GRAPH,
        }
    }

    /// Of this rank; MPI_PROC_NULL beyond the edge of a grid. A distributed graph knows only those of
    /// the process itself.
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
