//! Subarrays: a block of an array, and one process's share of an array that is distributed among
//! many.

use std::sync::Arc;

use super::making::{describe, far, scaled};
use super::{Datatype, Held, Layout, Signature};
use crate::errors::{fail, Answer};
use crate::handles::*;

/// The selection in one dimension: `blocks` of `length` items from `start` on, `stride` items
/// apart, followed by `rest` more items.
#[derive(Clone, Copy, Default)]
struct Selection {
    start: usize,
    length: usize,
    blocks: usize,
    stride: usize,
    rest: usize,
}

impl Selection {
    fn block(start: usize, length: usize) -> Selection {
        Selection { start, length, blocks: 1, ..Selection::default() }
    }

    fn items(&self) -> usize {
        self.length * self.blocks + self.rest
    }

    /// The layout of the selected items, each with the layout `body`, `step` bytes apart.
    fn of(&self, body: Layout, step: isize) -> Layout {
        let body = Arc::new(body);
        let select =
            |first: usize, length| Layout::repeated(&body, first as isize * step, length, step);
        let block = Arc::new(select(0, self.length));
        let (first, stride) = (self.start as isize * step, self.stride as isize * step);
        let blocks = Layout::repeated(&block, first, self.blocks, stride);
        Layout::joined([blocks, select(self.start + self.stride * self.blocks, self.rest)])
    }
}

/// The datatype of the items selected in each dimension, with the extent of the full array.
fn select(
    sizes: &[usize],
    selected: &[Selection],
    order: c_int,
    old: &Datatype,
) -> Answer<Datatype> {
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
    for nth in dimensions {
        layout = selected[nth].of(layout, step);
        step = scaled(sizes[nth] as MPI_Count, step)?;
        items *= selected[nth].items();
    }
    let signature = match items {
        0 => Signature::Sequence(Vec::new()),
        _ => Signature::Repeat(items, old.signature.clone()),
    };
    let mut new = Datatype::new(layout, signature, 0, step, old.align);
    new.markers = (true, true);
    Ok(new)
}

/// A block of a larger array, with the extent of the larger array.
pub fn subarray(
    sizes: &[MPI_Count],
    subsizes: &[MPI_Count],
    starts: &[MPI_Count],
    order: c_int,
    old: Held,
) -> Answer<Held> {
    at_least_one(sizes.len())?;
    for (nth, ((&size, &sub), &start)) in sizes.iter().zip(subsizes).zip(starts).enumerate() {
        if sub < 1 || sub > size || start < 0 || start > size - sub {
            let text = format!(
                "in dimension {nth} a block of {sub} from {start} on is not inside an array of \
                {size}"
            );
            return Err(fail(MPI_ERR_ARG, text));
        }
    }
    let all_sizes: Vec<usize> = sizes.iter().map(|size| *size as usize).collect();
    let block =
        |(start, sub): (&MPI_Count, &MPI_Count)| Selection::block(*start as usize, *sub as usize);
    let selected: Vec<Selection> = starts.iter().zip(subsizes).map(block).collect();
    let new = select(&all_sizes, &selected, order, &old)?;
    let integers = [&[sizes.len() as MPI_Count], sizes, subsizes, starts, &[order.into()]].concat();
    Ok(describe(new, MPI_COMBINER_SUBARRAY, integers, vec![], vec![old]))
}

fn at_least_one(dimensions: usize) -> Answer {
    match dimensions {
        0 => Err(fail(MPI_ERR_ARG, "argument ndims is 0; an array has one dimension or more")),
        _ => Ok(()),
    }
}

/// The distribution of an array among the processes of a grid.
pub struct Distribution<'a> {
    pub size: c_int,
    pub rank: c_int,
    /// For each dimension: the array's size, the kind of distribution, its argument, and the grid's
    /// size.
    pub sizes: &'a [MPI_Count],
    pub kinds: &'a [c_int],
    pub arguments: &'a [c_int],
    pub grid: &'a [c_int],
    pub order: c_int,
}

/// The share of the process with this rank, with the extent of the full array.
pub fn darray(of: &Distribution<'_>, old: Held) -> Answer<Held> {
    at_least_one(of.sizes.len())?;
    check(of)?;
    let mut selected = vec![Selection::default(); of.sizes.len()];
    // Ranks number the processes of the grid row by row, whatever the array's order.
    let mut rest = of.rank as usize;
    for nth in (0..of.sizes.len()).rev() {
        let processes = of.grid[nth] as usize;
        selected[nth] = selection_of(of, nth, rest % processes)?;
        rest /= processes;
    }
    let sizes: Vec<usize> = of.sizes.iter().map(|size| *size as usize).collect();
    let new = select(&sizes, &selected, of.order, &old)?;
    let wide =
        |all: &[c_int]| all.iter().map(|number| MPI_Count::from(*number)).collect::<Vec<_>>();
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
    if let Some(nth) = of.sizes.iter().position(|size| *size < 1) {
        return wrong(format!("array_of_gsizes[{nth}] is {}, less than one", of.sizes[nth]));
    }
    if let Some(nth) = of.grid.iter().position(|size| *size < 1) {
        return wrong(format!("array_of_psizes[{nth}] is {}, less than one", of.grid[nth]));
    }
    let processes = of.grid.iter().try_fold(1, |all: c_int, size| all.checked_mul(*size));
    if processes != Some(of.size) {
        return wrong(format!(
            "argument size is {}, but the grid of array_of_psizes has {} processes",
            of.size,
            processes.map_or("too many".into(), |all| all.to_string())
        ));
    }
    Ok(())
}

/// The share of one dimension for the process with this coordinate in the grid.
fn selection_of(of: &Distribution<'_>, nth: usize, coordinate: usize) -> Answer<Selection> {
    let (size, processes) = (of.sizes[nth] as usize, of.grid[nth] as usize);
    let (kind, argument) = (of.kinds[nth], of.arguments[nth]);
    let given = match argument {
        MPI_DISTRIBUTE_DFLT_DARG => None,
        1.. => Some(argument as usize),
        _ if kind == MPI_DISTRIBUTE_NONE => None,
        _ => {
            let text = format!(
                "array_of_dargs[{nth}] is {argument}; give MPI_DISTRIBUTE_DFLT_DARG, or the length \
                 of a block"
            );
            return Err(fail(MPI_ERR_ARG, text));
        }
    };
    match kind {
        MPI_DISTRIBUTE_NONE if processes == 1 => Ok(Selection::block(0, size)),
        MPI_DISTRIBUTE_NONE => {
            let text = format!(
                "dimension {nth} is not distributed (MPI_DISTRIBUTE_NONE), but \
                 array_of_psizes[{nth}] is {processes}; give 1"
            );
            Err(fail(MPI_ERR_ARG, text))
        }
        MPI_DISTRIBUTE_BLOCK => {
            let length = given.unwrap_or(size.div_ceil(processes));
            if length.saturating_mul(processes) < size {
                let text = format!(
                    "{processes} blocks of {length} do not make up dimension {nth}, which has \
                     {size}; give MPI_DISTRIBUTE_DFLT_DARG for blocks of equal length"
                );
                return Err(fail(MPI_ERR_ARG, text));
            }
            let start = length.saturating_mul(coordinate).min(size);
            Ok(Selection::block(start, length.min(size - start)))
        }
        MPI_DISTRIBUTE_CYCLIC => {
            let length = given.unwrap_or(1);
            let (start, stride) = (length * coordinate, length * processes);
            let remaining = size.saturating_sub(start);
            let (blocks, rest) = (remaining / stride, (remaining % stride).min(length));
            // A complete last block counts as one of `blocks`.
            let (blocks, rest) = if rest == length { (blocks + 1, 0) } else { (blocks, rest) };
            Ok(Selection { start: start.min(size), length, blocks, stride, rest })
        }
        _ => {
            let text = format!(
                "array_of_distribs[{nth}] is {kind}; give MPI_DISTRIBUTE_BLOCK, \
                 MPI_DISTRIBUTE_CYCLIC or MPI_DISTRIBUTE_NONE"
            );
            Err(fail(MPI_ERR_ARG, text))
        }
    }
}
