//! The constructors: each describes its layout by those of the types that it is made of.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use super::{Datatype, Held, Layout, Made, Signature};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;

/// `length` items of `of`, the first at `at`.
struct Block<'a> {
    at: isize,
    length: usize,
    of: &'a Datatype,
}

/// No place of a datatype is farther from its beginning: so the way between any two can be counted.
const FARTHEST: i128 = 1 << 62;

/// A datatype that no memory has room for.
#[cold]
pub(super) fn far() -> Failure {
    let text = "the datatype reaches over more bytes than any memory has; give smaller counts, \
                strides or displacements";
    fail(MPI_ERR_COUNT, text)
}

/// `count` steps of so many bytes.
pub(super) fn scaled(count: MPI_Count, step: isize) -> Answer<isize> {
    (count as isize).checked_mul(step).ok_or_else(far)
}

/// Refuse blocks that no memory has room for.
fn check(all: &[Block]) -> Answer {
    let mut bytes = 0_usize;
    for one in all.iter().filter(|one| one.length > 0) {
        let of = one.of;
        bytes = bytes.checked_add(of.bytes(one.length)?).ok_or_else(far)?;
        let wide = |number: isize| i128::from(number as i64);
        let last = wide(of.extent) * (one.length as i128 - 1);
        let ends = [of.lb, of.ub(), of.true_lb, of.true_lb + of.true_extent];
        let far_off = |end: isize| {
            let first = wide(one.at) + wide(end);
            first.abs() > FARTHEST || (first + last).abs() > FARTHEST
        };
        if ends.into_iter().any(far_off) {
            return Err(far());
        }
    }
    match isize::try_from(bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(far()),
    }
}

/// One type of many blocks. The bounds are those of the outermost items, or where one of the types
/// has bounds that were set, of those only.
fn blocks(all: &[Block], padded: bool) -> Answer<Datatype> {
    check(all)?;
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
    Ok(made)
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
pub(super) fn describe(
    mut datatype: Datatype,
    combiner: c_int,
    integers: Vec<MPI_Count>,
    addresses: Vec<MPI_Aint>,
    types: Vec<Held>,
) -> Held {
    datatype.made = Made { combiner, integers, addresses, types, is_large: AtomicBool::new(false) };
    Held::Derived(Arc::new(datatype))
}

/// `count` blocks of `length` items, from one to the next `stride` bytes.
fn strided(count: usize, length: usize, stride: isize, old: &Datatype) -> Answer<Datatype> {
    if count == 0 || length == 0 {
        return blocks(&[], false);
    }
    let mut block = blocks(&[Block { at: 0, length, of: old }], false)?;
    if count == 1 {
        return Ok(block);
    }
    block.bytes(count)?;
    let reach = scaled(count as MPI_Count - 1, stride)?;
    check(&[Block { at: reach, length, of: old }])?;
    let layout = Layout::repeated(&block.layout, 0, count, stride);
    let (lb, ub) = (block.lb + reach.min(0), block.ub() + reach.max(0));
    let signature = Signature::Repeat(count * length, old.signature.clone());
    let markers = block.markers;
    block = Datatype::new(layout, signature, lb, ub - lb, old.align);
    block.markers = markers;
    Ok(block)
}

pub fn contiguous(count: usize, old: Held) -> Answer<Held> {
    let new = blocks(&[Block { at: 0, length: count, of: &old }], false)?;
    Ok(describe(new, MPI_COMBINER_CONTIGUOUS, vec![count as MPI_Count], vec![], vec![old]))
}

/// The stride counts items.
pub fn vector(count: usize, length: usize, stride: MPI_Count, old: Held) -> Answer<Held> {
    let new = strided(count, length, scaled(stride, old.extent)?, &old)?;
    let integers = vec![count as MPI_Count, length as MPI_Count, stride];
    Ok(describe(new, MPI_COMBINER_VECTOR, integers, vec![], vec![old]))
}

/// The stride counts bytes.
pub fn hvector(count: usize, length: usize, stride: MPI_Count, old: Held) -> Answer<Held> {
    let new = strided(count, length, stride as isize, &old)?;
    let integers = vec![count as MPI_Count, length as MPI_Count];
    Ok(describe(new, MPI_COMBINER_HVECTOR, integers, vec![stride as MPI_Aint], vec![old]))
}

/// The displacements count items.
pub fn indexed(lengths: &[usize], displacements: &[MPI_Count], old: Held) -> Answer<Held> {
    let new = at_each(lengths.iter().copied(), displacements, old.extent, &old)?;
    let integers = [&numbered(lengths)[..], displacements].concat();
    Ok(describe(new, MPI_COMBINER_INDEXED, integers, vec![], vec![old]))
}

/// The displacements count bytes.
pub fn hindexed(lengths: &[usize], displacements: &[MPI_Count], old: Held) -> Answer<Held> {
    let new = at_each(lengths.iter().copied(), displacements, 1, &old)?;
    let (integers, addresses) = (numbered(lengths), addresses(displacements));
    Ok(describe(new, MPI_COMBINER_HINDEXED, integers, addresses, vec![old]))
}

pub fn indexed_block(length: usize, displacements: &[MPI_Count], old: Held) -> Answer<Held> {
    let new = at_each(std::iter::repeat(length), displacements, old.extent, &old)?;
    let integers =
        [&[displacements.len() as MPI_Count, length as MPI_Count], displacements].concat();
    Ok(describe(new, MPI_COMBINER_INDEXED_BLOCK, integers, vec![], vec![old]))
}

pub fn hindexed_block(length: usize, displacements: &[MPI_Count], old: Held) -> Answer<Held> {
    let new = at_each(std::iter::repeat(length), displacements, 1, &old)?;
    let integers = vec![displacements.len() as MPI_Count, length as MPI_Count];
    let addresses = addresses(displacements);
    Ok(describe(new, MPI_COMBINER_HINDEXED_BLOCK, integers, addresses, vec![old]))
}

/// How many there are, and each.
fn numbered(lengths: &[usize]) -> Vec<MPI_Count> {
    [lengths.len()].iter().chain(lengths).map(|one| *one as MPI_Count).collect()
}

fn addresses(all: &[MPI_Count]) -> Vec<MPI_Aint> {
    all.iter().map(|one| *one as MPI_Aint).collect()
}

/// The displacements count `unit` bytes each.
fn at_each(
    lengths: impl Iterator<Item = usize>,
    displacements: &[MPI_Count],
    unit: isize,
    old: &Datatype,
) -> Answer<Datatype> {
    let block = |(length, at): (usize, &MPI_Count)| {
        scaled(*at, unit).map(|at| Block { at, length, of: old })
    };
    blocks(&lengths.zip(displacements).map(block).collect::<Answer<Vec<_>>>()?, false)
}

pub fn structure(lengths: &[usize], displacements: &[MPI_Count], types: Vec<Held>) -> Answer<Held> {
    let all: Vec<Block> = lengths
        .iter()
        .zip(displacements)
        .zip(&types)
        .map(|((length, at), of)| Block { at: *at as isize, length: *length, of })
        .collect();
    let new = blocks(&all, true)?;
    let (integers, addresses) = (numbered(lengths), addresses(displacements));
    Ok(describe(new, MPI_COMBINER_STRUCT, integers, addresses, types))
}

pub fn resized(old: Held, lb: MPI_Aint, extent: MPI_Aint) -> Answer<Held> {
    lb.checked_add(extent).ok_or_else(far)?;
    let mut new = same_data(&old, lb, extent);
    new.markers = (true, true);
    Ok(describe(new, MPI_COMBINER_RESIZED, vec![], vec![lb, extent], vec![old]))
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
