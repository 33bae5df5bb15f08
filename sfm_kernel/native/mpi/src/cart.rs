//! Cartesian grids: ranks and coordinates, in row-major order.

use crate::errors::{fail, Answer};
use crate::handles::*;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cart {
    pub dims: Vec<c_int>,
    pub periods: Vec<bool>,
}

impl Cart {
    /// The number of processes; None if an int cannot hold it.
    pub fn size(&self) -> Option<c_int> {
        self.dims.iter().try_fold(1_i32, |size, dim| size.checked_mul(*dim))
    }

    /// Coordinates outside a periodic dimension wrap around; outside other dimensions they are an
    /// error.
    pub fn rank(&self, coords: &[c_int]) -> Answer<c_int> {
        let mut rank = 0;
        for (nth, ((&coord, &dim), &periodic)) in
            coords.iter().zip(&self.dims).zip(&self.periods).enumerate()
        {
            let inside = if periodic { coord.rem_euclid(dim) } else { coord };
            if !(0..dim).contains(&inside) {
                let text = format!(
                    "coords[{nth}] is {coord}, but dimension {nth} has {dim} processes (0 to {}) \
                     and is not periodic",
                    dim - 1
                );
                return Err(fail(MPI_ERR_ARG, text));
            }
            rank = rank * dim + inside;
        }
        Ok(rank)
    }

    pub fn coords(&self, rank: c_int) -> Vec<c_int> {
        let mut rest = rank;
        let mut coords = vec![0; self.dims.len()];
        for (coord, dim) in coords.iter_mut().zip(&self.dims).rev() {
            *coord = rest % dim;
            rest /= dim;
        }
        coords
    }

    /// The ranks that are `by` steps behind and ahead of `rank`; MPI_PROC_NULL beyond the edge.
    pub fn shift(&self, rank: c_int, direction: usize, by: c_int) -> (c_int, c_int) {
        let coords_here = self.coords(rank);
        let neighbour = |step: i64| {
            let mut coords = coords_here.clone();
            let (dim, to) =
                (i64::from(self.dims[direction]), i64::from(coords_here[direction]) + step);
            let inside = if self.periods[direction] { to.rem_euclid(dim) } else { to };
            if !(0..dim).contains(&inside) {
                return MPI_PROC_NULL;
            }
            coords[direction] = inside as c_int;
            self.rank(&coords).unwrap_or(MPI_PROC_NULL)
        };
        (neighbour(-i64::from(by)), neighbour(i64::from(by)))
    }

    /// The grid of the remaining dimensions (MPI_Cart_sub), and for `rank` the colour of its
    /// subgrid and its rank there.
    pub fn sub(&self, rank: c_int, remain: &[bool]) -> (Cart, c_int, c_int) {
        let coords = self.coords(rank);
        let pick = |remains: bool| -> Cart {
            let chosen = |nth: &usize| remain[*nth] == remains;
            Cart {
                dims: (0..remain.len()).filter(chosen).map(|nth| self.dims[nth]).collect(),
                periods: (0..remain.len()).filter(chosen).map(|nth| self.periods[nth]).collect(),
            }
        };
        let position = |remains: bool| {
            (0..remain.len())
                .filter(|nth| remain[*nth] == remains)
                .fold(0, |position, nth| position * self.dims[nth] + coords[nth])
        };
        (pick(true), position(false), position(true))
    }
}

/// Fill the dimensions that are 0, in descending order, so that the product of all is `nodes` and
/// they are as close to each other as possible, like MPI_Dims_create.
pub fn dims_create(nodes: c_int, dims: &mut [c_int]) -> Answer {
    if nodes < 1 {
        return Err(fail(MPI_ERR_DIMS, format!("argument nnodes is {nodes}, less than one")));
    }
    if let Some(nth) = dims.iter().position(|dim| *dim < 0) {
        let text = format!("dims[{nth}] is {}; give 0 for a dimension that MPI chooses", dims[nth]);
        return Err(fail(MPI_ERR_DIMS, text));
    }
    let fixed = dims.iter().filter(|dim| **dim > 0).map(|dim| i64::from(*dim)).product::<i64>();
    let free = dims.iter().filter(|dim| **dim == 0).count();
    if i64::from(nodes) % fixed != 0 || free == 0 && fixed != i64::from(nodes) {
        let text = format!(
            "the product of the given dimensions is {fixed}, which does not divide nnodes \
            ({nodes})"
        );
        return Err(fail(MPI_ERR_DIMS, text));
    }
    let mut found = balanced(nodes / fixed as c_int, free).into_iter();
    for dim in dims.iter_mut().filter(|dim| **dim == 0) {
        *dim = found.next().expect("one for each free dimension");
    }
    Ok(())
}

/// `count` factors of `nodes` in descending order, with the largest and the smallest as close as
/// possible; among equally close ones, those with the largest smallest factor.
fn balanced(nodes: c_int, count: usize) -> Vec<c_int> {
    if count < 2 {
        return vec![nodes; count];
    }
    let mut search = Search { divisors: divisors(nodes), so_far: Vec::new(), best: Vec::new() };
    search.go_on(nodes, count);
    search.best
}

/// A search through all products of descending factors, except those that cannot improve on the
/// best one found.
struct Search {
    divisors: Vec<c_int>,
    so_far: Vec<c_int>,
    best: Vec<c_int>,
}

impl Search {
    /// True if descending factors whose smallest is at most `smallest` can improve on the best.
    fn is_worth(&self, largest: c_int, smallest: c_int) -> bool {
        let (Some(first), Some(last)) = (self.best.first(), self.best.last()) else { return true };
        (largest - smallest, -smallest) < (first - last, -last)
    }

    /// Write `rest` as `count` more factors.
    fn go_on(&mut self, rest: c_int, count: usize) {
        let limit = self.so_far.last().copied().unwrap_or(rest);
        if count == 1 {
            let largest = self.so_far.first().copied().unwrap_or(rest);
            if rest <= limit && self.is_worth(largest, rest) {
                self.best = [&self.so_far[..], &[rest]].concat();
            }
            return;
        }
        // The next factor is at least the root, and the smallest at most the root of what then
        // remains.
        let from = self.divisors.partition_point(|divisor| power(*divisor, count) < rest as u128);
        for nth in from..self.divisors.len() {
            let next = self.divisors[nth];
            if next > limit.min(rest) {
                return;
            }
            let remaining = rest / next;
            let above = self
                .divisors
                .partition_point(|divisor| power(*divisor, count - 1) <= remaining as u128);
            let smallest = self.divisors[above - 1]; // 1 is a divisor
            if !self.is_worth(self.so_far.first().copied().unwrap_or(next), smallest) {
                return; // from here on the distance of largest and smallest only grows
            }
            if rest % next == 0 {
                self.so_far.push(next);
                self.go_on(remaining, count - 1);
                self.so_far.pop();
            }
        }
    }
}

fn power(of: c_int, exponent: usize) -> u128 {
    u128::try_from(of).map_or(0, |of| of.saturating_pow(exponent as u32))
}

fn divisors(of: c_int) -> Vec<c_int> {
    let root = (1..=of).take_while(|n| i64::from(*n) * i64::from(*n) <= i64::from(of));
    let mut all: Vec<c_int> = root.filter(|n| of % n == 0).flat_map(|n| [n, of / n]).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims<const N: usize>(nodes: c_int, mut given: [c_int; N]) -> [c_int; N] {
        dims_create(nodes, &mut given).expect("can be divided");
        given
    }

    #[test]
    fn dimensions_are_balanced_and_fall() {
        assert_eq!(dims(6, [0, 0]), [3, 2]);
        assert_eq!(dims(7, [0, 0]), [7, 1]);
        assert_eq!(dims(6, [0, 3, 0]), [2, 3, 1]);
        assert_eq!(dims(16, [0, 0, 0]), [4, 2, 2]);
        assert_eq!(dims(36, [0, 0, 0]), [4, 3, 3]);
        assert_eq!(dims(1 << 20, [0; 10]), [4; 10]);
        assert_eq!(dims(5040, [0, 0, 0]), [21, 16, 15], "not 20, 18, 14: as near, but smaller");
        assert_eq!(dims(7488, [0, 0, 0]), [26, 18, 16], "not 24, 24, 13, whose largest is smaller");
        assert_eq!(dims(1, [0, 0]), [1, 1]);
        assert_eq!(dims(2_147_483_647, [0, 0]), [2_147_483_647, 1]);
        assert_eq!(dims(4, [2, 2]), [2, 2]);
    }

    #[test]
    fn impossible_dimensions_are_refused_and_named() {
        for (nodes, mut given) in [(7, [2, 0]), (4, [2, 3]), (0, [0, 0]), (4, [-1, 0])] {
            assert_eq!(dims_create(nodes, &mut given).unwrap_err().code, MPI_ERR_DIMS);
        }
    }

    fn grid() -> Cart {
        Cart { dims: vec![3, 4], periods: vec![true, false] }
    }

    #[test]
    fn ranks_and_coordinates_are_row_major() {
        for rank in 0..12 {
            assert_eq!(grid().rank(&grid().coords(rank)).unwrap(), rank);
        }
        assert_eq!(grid().coords(7), [1, 3]);
        assert_eq!(grid().rank(&[-1, 0]).unwrap(), 8, "the first dimension is periodic");
        assert_eq!(grid().rank(&[0, 4]).unwrap_err().code, MPI_ERR_ARG);
    }

    #[test]
    fn a_shift_ends_at_an_edge_and_goes_round_a_period() {
        assert_eq!(grid().shift(0, 0, 1), (8, 4));
        assert_eq!(grid().shift(0, 1, 1), (MPI_PROC_NULL, 1));
        assert_eq!(grid().shift(3, 1, 2), (1, MPI_PROC_NULL));
        assert_eq!(grid().shift(0, 0, c_int::MIN), (8, 4), "no overflow");
    }

    #[test]
    fn a_subgrid_keeps_the_remaining_dimensions() {
        let (sub, colour, rank) = grid().sub(7, &[false, true]);
        assert_eq!((sub.dims, sub.periods, colour, rank), (vec![4], vec![false], 1, 3));
        let (sub, colour, rank) = grid().sub(7, &[false, false]);
        assert_eq!((sub.size(), colour, rank), (Some(1), 7, 0));
    }
}
