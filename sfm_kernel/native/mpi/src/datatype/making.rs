//! The constructors: each builds its layout from those of the old datatypes.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use super::{Basic, Datatype, Held, Layout, Made, Signature};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;

/// `length` items of `of`, the first at displacement `at`.
struct Block<'a> {
    at: isize,
    length: usize,
    of: &'a Datatype,
}

/// The largest displacement in a datatype. It is small enough for the difference of any two to be
/// representable.
const FARTHEST: i128 = 1 << 62;

/// The failure for a datatype that no memory has room for.
#[cold]
pub(super) fn far() -> Failure {
    let text = "the datatype spans more bytes than any memory has; give smaller counts, strides \
        or displacements";
    fail(MPI_ERR_COUNT, text)
}

/// `count` steps of `step` bytes each.
pub(super) fn scaled(count: MPI_Count, step: isize) -> Answer<isize> {
    (count as isize).checked_mul(step).ok_or_else(far)
}

/// Refuse blocks that no memory has room for.
fn check(all: &[Block]) -> Answer {
    let mut bytes = 0_usize;
    for block in all.iter().filter(|block| block.length > 0) {
        let of = block.of;
        bytes = bytes.checked_add(of.bytes(block.length)?).ok_or_else(far)?;
        let wide = |number: isize| i128::from(number as i64);
        let last = wide(of.extent) * (block.length as i128 - 1);
        let ends = [of.lb, of.ub(), of.true_lb, of.true_lb + of.true_extent];
        let far_off = |end: isize| {
            let first = wide(block.at) + wide(end);
            first.abs() > FARTHEST || (first + last).abs() > FARTHEST
        };
        if ends.into_iter().any(far_off) {
            return Err(far());
        }
    }
    isize::try_from(bytes).map(|_| ()).map_err(|_| far())
}

/// One datatype of many blocks. Its bounds are those of the outermost items; but if bounds of a
/// type were set explicitly, only explicit bounds count.
fn blocks(all: &[Block], padded: bool) -> Answer<Datatype> {
    check(all)?;
    let layout =
        Layout::joined(all.iter().map(|block| {
            Layout::repeated(&block.of.layout, block.at, block.length, block.of.extent)
        }));
    let mut signature: Vec<Arc<Signature>> = Vec::new();
    let mut run: Option<(&Datatype, usize)> = None;
    for block in all.iter().filter(|block| block.length > 0) {
        match &mut run {
            Some((of, length)) if std::ptr::eq(*of, block.of) => *length += block.length,
            _ => {
                signature.extend(run.take().map(repeat));
                run = Some((block.of, block.length));
            }
        }
    }
    signature.extend(run.map(repeat));

    let used = || all.iter().filter(|block| block.length > 0);
    let markers = (used().any(|block| block.of.markers.0), used().any(|block| block.of.markers.1));
    let low = |block: &Block| block.at + block.of.lb + first_and_last(block).0;
    let high = |block: &Block| block.at + block.of.ub() + first_and_last(block).1;
    // A marker sets the bound on its side only; MPI_UB has no effect on the lower bound.
    let is = |block: &Block, basic| block.of.basic == Some(basic);
    let lb = used().filter(|block| block.of.markers.0 || !markers.0 && !is(block, Basic::Upper));
    let ub = used().filter(|block| block.of.markers.1 || !markers.1 && !is(block, Basic::Lower));
    let (lb, ub) = (lb.map(low).min(), ub.map(high).max());
    let lb = lb.unwrap_or(0);
    let align = used().map(|block| block.of.align).max().unwrap_or(1);
    let mut extent = ub.unwrap_or(lb) - lb;
    if padded && !markers.1 && extent > 0 {
        // C pads a struct in the same manner, so that the next struct in an array is aligned.
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

/// The displacements of the first and the last item of a block, the smaller one first.
fn first_and_last(block: &Block) -> (isize, isize) {
    let last = block.of.extent * (block.length as isize - 1);
    (last.min(0), last.max(0))
}

/// Attach the description that MPI_Type_get_contents returns.
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

/// `count` blocks of `length` items, `stride` bytes apart.
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

/// The stride is in items.
pub fn vector(count: usize, length: usize, stride: MPI_Count, old: Held) -> Answer<Held> {
    let new = strided(count, length, scaled(stride, old.extent)?, &old)?;
    let integers = vec![count as MPI_Count, length as MPI_Count, stride];
    Ok(describe(new, MPI_COMBINER_VECTOR, integers, vec![], vec![old]))
}

/// The stride is in bytes.
pub fn hvector(count: usize, length: usize, stride: MPI_Count, old: Held) -> Answer<Held> {
    let new = strided(count, length, stride as isize, &old)?;
    let integers = vec![count as MPI_Count, length as MPI_Count];
    Ok(describe(new, MPI_COMBINER_HVECTOR, integers, vec![stride as MPI_Aint], vec![old]))
}

/// The displacements are in items.
pub fn indexed(lengths: &[usize], displacements: &[MPI_Count], old: Held) -> Answer<Held> {
    let new = at_each(lengths.iter().copied(), displacements, old.extent, &old)?;
    let integers = [&numbered(lengths)[..], displacements].concat();
    Ok(describe(new, MPI_COMBINER_INDEXED, integers, vec![], vec![old]))
}

/// The displacements are in bytes.
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

/// The number of lengths, followed by the lengths.
fn numbered(lengths: &[usize]) -> Vec<MPI_Count> {
    [lengths.len()].iter().chain(lengths).map(|length| *length as MPI_Count).collect()
}

fn addresses(all: &[MPI_Count]) -> Vec<MPI_Aint> {
    all.iter().map(|displacement| *displacement as MPI_Aint).collect()
}

/// The displacements are in units of `unit` bytes.
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

/// The caller copies name and attributes.
pub fn duplicate(old: Held, attributes: crate::attributes::Attributes) -> Held {
    let mut new = same_data(&old, old.lb, old.extent);
    new.markers = old.markers;
    new.attributes = attributes;
    if old.is_committed() {
        new.commit();
    }
    describe(new, MPI_COMBINER_DUP, vec![], vec![], vec![old])
}

/// The same elements with the description of a Fortran parameterized type.
pub fn renamed(old: Held, combiner: c_int, integers: Vec<MPI_Count>) -> Held {
    describe(same_data(&old, old.lb, old.extent), combiner, integers, vec![], vec![])
}

/// The elements of `old` with these bounds, sharing its layout and signature.
fn same_data(old: &Datatype, lb: isize, extent: isize) -> Datatype {
    let empty = Signature::Sequence(Vec::new());
    let mut new = Datatype::new(Layout::nothing(), empty, lb, extent, old.align);
    new.layout = old.layout.clone();
    new.signature = old.signature.clone();
    new.size = old.size;
    (new.true_lb, new.true_extent) = (old.true_lb, old.true_extent);
    // A copy of a predefined type stays a basic element for reductions: a duplicate of MPI_INT adds
    // like MPI_INT.
    new.basic = old.basic.filter(|_| lb == old.lb && extent == old.extent);
    new
}
