//! The constructors: each describes its layout by those of the types that it is made of.

use std::sync::Arc;

use super::{Datatype, Held, Layout, Made, Signature};
use crate::errors::{fail, Answer};
use crate::handles::*;

/// `length` items of `of`, the first at `at`.
struct Block<'a> {
    at: isize,
    length: usize,
    of: &'a Datatype,
}

/// One type of many blocks. The bounds are those of the outermost items, or where one of the types
/// has bounds that were set, of those only.
fn blocks(all: &[Block], padded: bool) -> Datatype {
    let layout = Layout::joined(
        all.iter().map(|one| Layout::repeated(&one.of.layout, one.at, one.length, one.of.extent)),
    );
    let mut signature: Vec<Arc<Signature>> = Vec::new();
    let mut run: Option<(&Datatype, usize)> = None;
    for one in all.iter().filter(|one| one.length > 0) {
        match &mut run {
            Some((of, length)) if std::ptr::eq(*of, one.of) => *length += one.length,
            _ => {
                signature.extend(run.take().map(repeat));
                run = Some((one.of, one.length));
            }
        }
    }
    signature.extend(run.map(repeat));

    let used = || all.iter().filter(|one| one.length > 0);
    let markers = (used().any(|one| one.of.markers.0), used().any(|one| one.of.markers.1));
    let low = |one: &Block| one.at + one.of.lb + first_and_last(one).0;
    let high = |one: &Block| one.at + one.of.ub() + first_and_last(one).1;
    // A marker bounds the type on its own side only; MPI_UB says nothing about where it begins.
    let lb = used().filter(|one| one.of.markers.0 || !markers.0 && !only_upper(one)).map(low).min();
    let ub =
        used().filter(|one| one.of.markers.1 || !markers.1 && !only_lower(one)).map(high).max();
    let lb = lb.unwrap_or(0);
    let align = used().map(|one| one.of.align).max().unwrap_or(1);
    let mut extent = ub.unwrap_or(lb) - lb;
    if padded && !markers.1 && extent > 0 {
        // As C pads a struct, so that the next one in an array is aligned.
        extent = (extent as usize).next_multiple_of(align) as isize;
    }
    let mut made = Datatype::new(layout, Signature::Sequence(signature), lb, extent, align);
    made.markers = markers;
    made
}

fn repeat((of, length): (&Datatype, usize)) -> Arc<Signature> {
    match length {
        1 => of.signature.clone(),
        _ => Signature::Repeat(length, of.signature.clone()).into(),
    }
}

fn only_upper(one: &Block) -> bool {
    one.of.basic == Some(super::Basic::Upper)
}

fn only_lower(one: &Block) -> bool {
    one.of.basic == Some(super::Basic::Lower)
}

/// How far the first and the last item of a block reach beyond its beginning.
fn first_and_last(one: &Block) -> (isize, isize) {
    let last = one.of.extent * (one.length as isize - 1);
    (last.min(0), last.max(0))
}

/// Give it the description that MPI_Type_get_contents returns.
fn describe(
    mut datatype: Datatype,
    combiner: c_int,
    integers: Vec<MPI_Count>,
    addresses: Vec<MPI_Aint>,
    types: Vec<Held>,
) -> Held {
    datatype.made = Made { combiner, integers, addresses, types };
    Held::Derived(Arc::new(datatype))
}

/// `count` blocks of `length` items, from one to the next `stride` bytes.
fn strided(count: usize, length: usize, stride: isize, old: &Datatype) -> Datatype {
    if count == 0 || length == 0 {
        return blocks(&[], false);
    }
    let mut block = blocks(&[Block { at: 0, length, of: old }], false);
    if count == 1 {
        return block;
    }
    let layout = Layout::repeated(&block.layout, 0, count, stride);
    let reach = stride * (count as isize - 1);
    let (lb, ub) = (block.lb + reach.min(0), block.ub() + reach.max(0));
    let signature = Signature::Repeat(count * length, old.signature.clone());
    let markers = block.markers;
    block = Datatype::new(layout, signature, lb, ub - lb, old.align);
    block.markers = markers;
    block
}

pub fn contiguous(count: usize, old: Held) -> Held {
    let new = blocks(&[Block { at: 0, length: count, of: &old }], false);
    describe(new, MPI_COMBINER_CONTIGUOUS, vec![count as MPI_Count], vec![], vec![old])
}

/// The stride counts items.
pub fn vector(count: usize, length: usize, stride: MPI_Count, old: Held) -> Held {
    let new = strided(count, length, stride as isize * old.extent, &old);
    let integers = vec![count as MPI_Count, length as MPI_Count, stride];
    describe(new, MPI_COMBINER_VECTOR, integers, vec![], vec![old])
}

/// The stride counts bytes.
pub fn hvector(count: usize, length: usize, stride: MPI_Count, old: Held) -> Held {
    let new = strided(count, length, stride as isize, &old);
    let integers = vec![count as MPI_Count, length as MPI_Count];
    describe(new, MPI_COMBINER_HVECTOR, integers, vec![stride as MPI_Aint], vec![old])
}

/// The displacements count items.
pub fn indexed(lengths: &[usize], displacements: &[MPI_Count], old: Held) -> Held {
    let at = displacements.iter().map(|one| *one as isize * old.extent);
    let new = at_each(lengths.iter().copied(), at, &old);
    let integers = [&numbered(lengths)[..], displacements].concat();
    describe(new, MPI_COMBINER_INDEXED, integers, vec![], vec![old])
}

/// The displacements count bytes.
pub fn hindexed(lengths: &[usize], displacements: &[MPI_Count], old: Held) -> Held {
    let new = at_each(lengths.iter().copied(), addresses(displacements), &old);
    let integers = numbered(lengths);
    describe(new, MPI_COMBINER_HINDEXED, integers, addresses(displacements).collect(), vec![old])
}

pub fn indexed_block(length: usize, displacements: &[MPI_Count], old: Held) -> Held {
    let at = displacements.iter().map(|one| *one as isize * old.extent);
    let new = at_each(std::iter::repeat(length), at, &old);
    let integers =
        [&[displacements.len() as MPI_Count, length as MPI_Count], displacements].concat();
    describe(new, MPI_COMBINER_INDEXED_BLOCK, integers, vec![], vec![old])
}

pub fn hindexed_block(length: usize, displacements: &[MPI_Count], old: Held) -> Held {
    let new = at_each(std::iter::repeat(length), addresses(displacements), &old);
    let integers = vec![displacements.len() as MPI_Count, length as MPI_Count];
    describe(
        new,
        MPI_COMBINER_HINDEXED_BLOCK,
        integers,
        addresses(displacements).collect(),
        vec![old],
    )
}

/// How many there are, and each.
fn numbered(lengths: &[usize]) -> Vec<MPI_Count> {
    [lengths.len()].iter().chain(lengths).map(|one| *one as MPI_Count).collect()
}

fn addresses(all: &[MPI_Count]) -> impl Iterator<Item = MPI_Aint> + '_ {
    all.iter().map(|one| *one as MPI_Aint)
}

fn at_each(
    lengths: impl Iterator<Item = usize>,
    at: impl Iterator<Item = isize>,
    old: &Datatype,
) -> Datatype {
    let block = |(length, at)| Block { at, length, of: old };
    blocks(&lengths.zip(at).map(block).collect::<Vec<_>>(), false)
}

pub fn structure(lengths: &[usize], displacements: &[MPI_Count], types: Vec<Held>) -> Held {
    let all: Vec<Block> = lengths
        .iter()
        .zip(displacements)
        .zip(&types)
        .map(|((length, at), of)| Block { at: *at as isize, length: *length, of })
        .collect();
    let new = blocks(&all, true);
    let integers = numbered(lengths);
    describe(new, MPI_COMBINER_STRUCT, integers, addresses(displacements).collect(), types)
}

/// A block of a larger array, whose extent is that of the whole array.
pub fn subarray(
    sizes: &[MPI_Count],
    subsizes: &[MPI_Count],
    starts: &[MPI_Count],
    order: c_int,
    old: Held,
) -> Answer<Held> {
    for (at, ((&size, &sub), &start)) in sizes.iter().zip(subsizes).zip(starts).enumerate() {
        if sub < 1 || sub > size || start < 0 || start > size - sub {
            let text = format!(
                "in dimension {at} a part of {sub} that starts at {start} does not lie in an \
                 array of {size}"
            );
            return Err(fail(MPI_ERR_ARG, text));
        }
    }
    let mut dimensions: Vec<usize> = (0..sizes.len()).collect();
    match order {
        MPI_ORDER_C => dimensions.reverse(), // the last index is the fastest
        MPI_ORDER_FORTRAN => (),
        _ => {
            let text = format!("argument order is {order}; give MPI_ORDER_C or MPI_ORDER_FORTRAN");
            return Err(fail(MPI_ERR_ARG, text));
        }
    }
    let mut layout = Layout::clone(&old.layout);
    let (mut step, mut items) = (old.extent, 1);
    for at in dimensions {
        let (sub, start) = (subsizes[at] as usize, starts[at] as isize);
        layout = Layout::repeated(&Arc::new(layout), start * step, sub, step);
        step *= sizes[at] as isize;
        items *= sub;
    }
    let signature = Signature::Repeat(items, old.signature.clone());
    let mut new = Datatype::new(layout, signature, 0, step, old.align);
    new.markers = (true, true);
    let integers = [&[sizes.len() as MPI_Count], sizes, subsizes, starts, &[order.into()]].concat();
    Ok(describe(new, MPI_COMBINER_SUBARRAY, integers, vec![], vec![old]))
}

pub fn resized(old: Held, lb: MPI_Aint, extent: MPI_Aint) -> Held {
    let mut new = same_data(&old, lb, extent);
    new.markers = (true, true);
    describe(new, MPI_COMBINER_RESIZED, vec![], vec![lb, extent], vec![old])
}

/// Its name and attributes are the caller's concern.
pub fn duplicate(old: Held, attributes: crate::attributes::Attributes) -> Held {
    let mut new = same_data(&old, old.lb, old.extent);
    new.markers = old.markers;
    new.attributes = attributes;
    if old.is_committed() {
        new.commit();
    }
    describe(new, MPI_COMBINER_DUP, vec![], vec![], vec![old])
}

/// The same elements, described as Fortran asked for them.
pub fn renamed(old: Held, combiner: c_int, integers: Vec<MPI_Count>) -> Held {
    describe(same_data(&old, old.lb, old.extent), combiner, integers, vec![], vec![])
}

/// The elements of `old` with these bounds, sharing its description.
fn same_data(old: &Datatype, lb: isize, extent: isize) -> Datatype {
    let empty = Signature::Sequence(Vec::new());
    let mut new = Datatype::new(Layout::nothing(), empty, lb, extent, old.align);
    new.layout = old.layout.clone();
    new.signature = old.signature.clone();
    new.size = old.size;
    (new.true_lb, new.true_extent) = (old.true_lb, old.true_extent);
    // What is named stays a basic element for reductions: a duplicate of MPI_INT adds as MPI_INT.
    new.basic = old.basic.filter(|_| lb == old.lb && extent == old.extent);
    new
}
