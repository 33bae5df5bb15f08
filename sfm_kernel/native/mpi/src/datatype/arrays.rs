//! Parts of arrays of several dimensions: a block of one, and what one process has of one that is
//! distributed among many.

use std::sync::Arc;

use super::making::{describe, far, scaled};
use super::{Datatype, Held, Layout, Signature};
use crate::errors::{fail, Answer};
use crate::handles::*;

/// What is taken of one dimension: `blocks` of `length` items from `start` on, each `stride` after
/// the last, and then `rest` items more.
#[derive(Clone, Copy, Default)]
struct Taken {
    start: usize,
    length: usize,
    blocks: usize,
    stride: usize,
    rest: usize,
}

impl Taken {
    fn block(start: usize, length: usize) -> Taken {
        Taken { start, length, blocks: 1, ..Taken::default() }
    }

    fn items(&self) -> usize {
        self.length * self.blocks + self.rest
    }

    /// Of items `step` apart that are each as `body`.
    fn of(&self, body: Layout, step: isize) -> Layout {
        let body = Arc::new(body);
        let part = |at: usize, length| Layout::repeated(&body, at as isize * step, length, step);
        let block = Arc::new(part(0, self.length));
        let (first, stride) = (self.start as isize * step, self.stride as isize * step);
        let blocks = Layout::repeated(&block, first, self.blocks, stride);
        Layout::joined([blocks, part(self.start + self.stride * self.blocks, self.rest)])
    }
}

/// What is `taken` of each dimension, with the extent of the whole array.
fn part(sizes: &[usize], taken: &[Taken], order: c_int, old: &Datatype) -> Answer<Datatype> {
    let mut dimensions: Vec<usize> = (0..sizes.len()).collect();
    match order {
        MPI_ORDER_C => dimensions.reverse(), // the last index is the fastest
        MPI_ORDER_FORTRAN => (),
        _ => {
            let text = format!("argument order is {order}; give MPI_ORDER_C or MPI_ORDER_FORTRAN");
            return Err(fail(MPI_ERR_ARG, text));
        }
    }
    let all = sizes.iter().try_fold(1_usize, |all, size| all.checked_mul(*size)).ok_or_else(far)?;
    old.bytes(all)?;
    let mut layout = Layout::clone(&old.layout);
    let (mut step, mut items) = (old.extent, 1);
    for at in dimensions {
        layout = taken[at].of(layout, step);
        step = scaled(sizes[at] as MPI_Count, step)?;
        items *= taken[at].items();
    }
    let signature = match items {
        0 => Signature::Sequence(Vec::new()),
        _ => Signature::Repeat(items, old.signature.clone()),
    };
    let mut new = Datatype::new(layout, signature, 0, step, old.align);
    new.markers = (true, true);
    Ok(new)
}

/// A block of a larger array, whose extent is that of the whole array.
pub fn subarray(
    sizes: &[MPI_Count],
    subsizes: &[MPI_Count],
    starts: &[MPI_Count],
    order: c_int,
    old: Held,
) -> Answer<Held> {
    at_least_one(sizes.len())?;
    for (at, ((&size, &sub), &start)) in sizes.iter().zip(subsizes).zip(starts).enumerate() {
        if sub < 1 || sub > size || start < 0 || start > size - sub {
            let text = format!(
                "in dimension {at} a part of {sub} that starts at {start} does not lie in an \
                 array of {size}"
            );
            return Err(fail(MPI_ERR_ARG, text));
        }
    }
    let whole: Vec<usize> = sizes.iter().map(|one| *one as usize).collect();
    let block =
        |(start, sub): (&MPI_Count, &MPI_Count)| Taken::block(*start as usize, *sub as usize);
    let taken: Vec<Taken> = starts.iter().zip(subsizes).map(block).collect();
    let new = part(&whole, &taken, order, &old)?;
    let integers = [&[sizes.len() as MPI_Count], sizes, subsizes, starts, &[order.into()]].concat();
    Ok(describe(new, MPI_COMBINER_SUBARRAY, integers, vec![], vec![old]))
}

fn at_least_one(dimensions: usize) -> Answer {
    match dimensions {
        0 => Err(fail(MPI_ERR_ARG, "argument ndims is 0; an array has one dimension or more")),
        _ => Ok(()),
    }
}

/// How an array is distributed among the processes of a grid.
pub struct Distribution<'a> {
    pub size: c_int,
    pub rank: c_int,
    /// Of the array, of the grid, and how the one is cut for the other, for each dimension.
    pub sizes: &'a [MPI_Count],
    pub kinds: &'a [c_int],
    pub arguments: &'a [c_int],
    pub grid: &'a [c_int],
    pub order: c_int,
}

/// What the process of this rank has, with the extent of the whole array.
pub fn darray(of: &Distribution<'_>, old: Held) -> Answer<Held> {
    at_least_one(of.sizes.len())?;
    check(of)?;
    let mut taken = vec![Taken::default(); of.sizes.len()];
    // Ranks count the processes of the grid row by row, whatever the order of the array is.
    let mut rest = of.rank as usize;
    for at in (0..of.sizes.len()).rev() {
        let processes = of.grid[at] as usize;
        taken[at] = own(of, at, rest % processes)?;
        rest /= processes;
    }
    let sizes: Vec<usize> = of.sizes.iter().map(|one| *one as usize).collect();
    let new = part(&sizes, &taken, of.order, &old)?;
    let wide = |all: &[c_int]| all.iter().map(|one| MPI_Count::from(*one)).collect::<Vec<_>>();
    let first = [of.size.into(), of.rank.into(), of.sizes.len() as MPI_Count];
    let [kinds, arguments, grid] = [of.kinds, of.arguments, of.grid].map(wide);
    let integers = [&first, of.sizes, &kinds, &arguments, &grid, &[of.order.into()]].concat();
    Ok(describe(new, MPI_COMBINER_DARRAY, integers, vec![], vec![old]))
}

fn check(of: &Distribution<'_>) -> Answer {
    let wrong = |text| Err(fail(MPI_ERR_ARG, text));
    if of.size < 1 || !(0..of.size).contains(&of.rank) {
        let (rank, size) = (of.rank, of.size);
        return wrong(format!(
            "argument rank is {rank} of size {size}; ranks are from 0 to size - 1"
        ));
    }
    if let Some(at) = of.sizes.iter().position(|size| *size < 1) {
        return wrong(format!("array_of_gsizes[{at}] is {}, less than one", of.sizes[at]));
    }
    if let Some(at) = of.grid.iter().position(|size| *size < 1) {
        return wrong(format!("array_of_psizes[{at}] is {}, less than one", of.grid[at]));
    }
    let processes = of.grid.iter().try_fold(1, |all: c_int, one| all.checked_mul(*one));
    if processes != Some(of.size) {
        return wrong(format!(
            "argument size is {}, but the grid of array_of_psizes has {} processes",
            of.size,
            processes.map_or("too many".into(), |all| all.to_string())
        ));
    }
    Ok(())
}

/// What the process in this place of the grid has of one dimension.
fn own(of: &Distribution<'_>, at: usize, place: usize) -> Answer<Taken> {
    let (size, processes) = (of.sizes[at] as usize, of.grid[at] as usize);
    let (kind, argument) = (of.kinds[at], of.arguments[at]);
    let given = match argument {
        MPI_DISTRIBUTE_DFLT_DARG => None,
        1.. => Some(argument as usize),
        _ if kind == MPI_DISTRIBUTE_NONE => None,
        _ => {
            let text = format!(
                "array_of_dargs[{at}] is {argument}; give MPI_DISTRIBUTE_DFLT_DARG, or the length \
                 of a block"
            );
            return Err(fail(MPI_ERR_ARG, text));
        }
    };
    match kind {
        MPI_DISTRIBUTE_NONE if processes == 1 => Ok(Taken::block(0, size)),
        MPI_DISTRIBUTE_NONE => {
            let text = format!(
                "dimension {at} is not distributed (MPI_DISTRIBUTE_NONE), but array_of_psizes[{at}] \
                 is {processes}; give 1"
            );
            Err(fail(MPI_ERR_ARG, text))
        }
        MPI_DISTRIBUTE_BLOCK => {
            let length = given.unwrap_or(size.div_ceil(processes));
            if length.saturating_mul(processes) < size {
                let text = format!(
                    "{processes} blocks of {length} do not make up dimension {at}, which has \
                     {size}; give MPI_DISTRIBUTE_DFLT_DARG for blocks of equal length"
                );
                return Err(fail(MPI_ERR_ARG, text));
            }
            let start = length.saturating_mul(place).min(size);
            Ok(Taken::block(start, length.min(size - start)))
        }
        MPI_DISTRIBUTE_CYCLIC => {
            let length = given.unwrap_or(1);
            let (start, stride) = (length * place, length * processes);
            let left = size.saturating_sub(start);
            let (blocks, rest) = (left / stride, (left % stride).min(length));
            // The last block is as any other where it is whole.
            let (blocks, rest) = if rest == length { (blocks + 1, 0) } else { (blocks, rest) };
            Ok(Taken { start: start.min(size), length, blocks, stride, rest })
        }
        _ => {
            let text = format!(
                "array_of_distribs[{at}] is {kind}; give MPI_DISTRIBUTE_BLOCK, \
                 MPI_DISTRIBUTE_CYCLIC or MPI_DISTRIBUTE_NONE"
            );
            Err(fail(MPI_ERR_ARG, text))
        }
    }
}
