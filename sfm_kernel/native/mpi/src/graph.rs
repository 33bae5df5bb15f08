//! Graphs: one that every process knows completely, or one of which each process knows its own
//! edges.

use crate::checks;
use crate::errors::{fail, Answer};
use crate::handles::*;

/// A graph in the form of MPI_Graph_create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// For each process, the end of its neighbours in `edges`.
    pub index: Vec<c_int>,
    pub edges: Vec<c_int>,
}

impl Graph {
    /// The number of edges that an index implies; an error if the index decreases.
    pub fn length(index: &[c_int]) -> Answer<usize> {
        let before = |node: usize| if node == 0 { 0 } else { index[node - 1] };
        match (0..index.len()).find(|node| index[*node] < before(*node)) {
            None => Ok(index.last().map_or(0, |last| *last as usize)),
            Some(node) => {
                let text = format!(
                    "index[{node}] is {}, less than {} before it: it counts the neighbours of node \
                     {node} and of all nodes before",
                    index[node],
                    before(node)
                );
                Err(fail(MPI_ERR_ARG, text))
            }
        }
    }

    /// An error if an edge leads to a node that does not exist.
    pub fn of(index: &[c_int], edges: &[c_int]) -> Answer<Graph> {
        let nodes = index.len();
        match edges.iter().position(|node| !(0..nodes as c_int).contains(node)) {
            None => Ok(Graph { index: index.to_vec(), edges: edges.to_vec() }),
            Some(nth) => {
                let text = format!(
                    "edges[{nth}] is {}, but the graph has {nodes} nodes (counted from 0)",
                    edges[nth]
                );
                Err(fail(MPI_ERR_ARG, text))
            }
        }
    }

    pub fn neighbors(&self, rank: usize) -> &[c_int] {
        let first = rank.checked_sub(1).map_or(0, |before| self.index[before]);
        &self.edges[first as usize..self.index[rank] as usize]
    }
}

/// One process's view of a distributed graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distributed {
    pub sources: Ends,
    pub destinations: Ends,
    pub is_weighted: bool,
}

/// The other ends of a process's edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    pub ranks: Vec<c_int>,
    /// As many as ranks, or none.
    pub weights: Vec<c_int>,
}

impl Ends {
    pub fn add(&mut self, rank: c_int, weight: c_int) {
        self.ranks.push(rank);
        self.weights.push(weight);
    }
}

/// Check ranks of a communicator of `size` processes.
pub fn check_ranks(name: &str, ranks: &[c_int], size: c_int) -> Answer {
    let wrong = ranks.iter().position(|rank| !(0..size).contains(rank));
    wrong.map_or(Ok(()), |nth| {
        checks::rank(&format!("{name}[{nth}]"), ranks[nth], size, "the communicator")
    })
}

/// Refuse negative weights.
pub fn check_weights(name: &str, weights: &[c_int]) -> Answer {
    match weights.iter().position(|weight| *weight < 0) {
        None => Ok(()),
        Some(nth) => {
            Err(fail(MPI_ERR_ARG, format!("{name}[{nth}] is {}, less than zero", weights[nth])))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_each_node() {
        let (index, edges) = ([2, 3, 3, 5], [1, 3, 0, 0, 0]);
        assert_eq!(Graph::length(&index).unwrap(), edges.len());
        let graph = Graph::of(&index, &edges).unwrap();
        let all: Vec<&[c_int]> = (0..4).map(|rank| graph.neighbors(rank)).collect();
        assert_eq!(all, [&[1, 3][..], &[0], &[], &[0, 0]]);
    }

    #[test]
    fn an_invalid_graph_is_refused() {
        for index in [&[-1][..], &[2, 1]] {
            assert_eq!(Graph::length(index).unwrap_err().code, MPI_ERR_ARG);
        }
        for edge in [-1, 2] {
            assert_eq!(Graph::of(&[1, 1], &[edge]).unwrap_err().code, MPI_ERR_ARG);
            assert_eq!(check_ranks("sources", &[0, edge], 2).unwrap_err().code, MPI_ERR_RANK);
        }
        assert_eq!(check_weights("weights", &[0, -1]).unwrap_err().code, MPI_ERR_ARG);
    }
}
