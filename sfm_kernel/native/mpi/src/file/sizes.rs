//! Datatypes whose elements have other sizes in the file than in memory: constructed again, by the
//! same constructors, from elements of those sizes. Displacements in items scale with them;
//! displacements in bytes already are the file's (MPI 4.1, section 14.5).

use std::sync::Arc;

use crate::datatype::{arrays, making, Datatype, Held, Layout, Signature};
use crate::errors::Answer;
use crate::handles::*;

/// The bytes of an element.
pub type Sizes<'a> = &'a dyn Fn(&Datatype) -> Answer<usize>;

/// `datatype` with elements of these sizes.
pub fn with(datatype: &Held, sizes: Sizes<'_>) -> Answer<Held> {
    if has_these(datatype, sizes)? {
        return Ok(datatype.clone());
    }
    let made = &datatype.made;
    let types =
        made.types.iter().map(|datatype| with(datatype, sizes)).collect::<Answer<Vec<_>>>()?;
    let Some(old) = types.first().cloned() else { return element(datatype, sizes) };
    let (numbers, addresses) = (&made.integers, &made.addresses);
    let number = |nth: usize| numbers[nth] as usize;
    let displacements: Vec<MPI_Count> =
        addresses.iter().map(|address| *address as MPI_Count).collect();
    let lengths: Vec<usize> = numbers.iter().skip(1).map(|number| *number as usize).collect();
    match made.combiner {
        MPI_COMBINER_DUP => Ok(old),
        MPI_COMBINER_CONTIGUOUS => making::contiguous(number(0), old),
        MPI_COMBINER_VECTOR => making::vector(number(0), number(1), numbers[2], old),
        MPI_COMBINER_HVECTOR => making::hvector(number(0), number(1), displacements[0], old),
        MPI_COMBINER_INDEXED => {
            let (lengths, displacements) = lengths.split_at(number(0));
            let displacements: Vec<MPI_Count> =
                displacements.iter().map(|number| *number as MPI_Count).collect();
            making::indexed(lengths, &displacements, old)
        }
        MPI_COMBINER_HINDEXED => making::hindexed(&lengths, &displacements, old),
        MPI_COMBINER_INDEXED_BLOCK => making::indexed_block(number(1), &numbers[2..], old),
        MPI_COMBINER_HINDEXED_BLOCK => making::hindexed_block(number(1), &displacements, old),
        MPI_COMBINER_STRUCT => making::structure(&lengths, &displacements, types),
        MPI_COMBINER_RESIZED => making::resized(old, addresses[0], addresses[1]),
        MPI_COMBINER_SUBARRAY => {
            let (of, rest) = (number(0), &numbers[1..]);
            let order = rest[3 * of] as c_int;
            arrays::subarray(&rest[..of], &rest[of..2 * of], &rest[2 * of..3 * of], order, old)
        }
        MPI_COMBINER_DARRAY => {
            let (dimensions, rest) = (number(2), &numbers[3..]);
            let field = |nth: usize| -> Vec<c_int> {
                let all = &rest[nth * dimensions..][..dimensions];
                all.iter().map(|number| *number as c_int).collect()
            };
            let of = arrays::Distribution {
                size: numbers[0] as c_int,
                rank: numbers[1] as c_int,
                sizes: &rest[..dimensions],
                kinds: &field(1),
                arguments: &field(2),
                grid: &field(3),
                order: rest[4 * dimensions] as c_int,
            };
            arrays::darray(&of, old)
        }
        combiner => unreachable!("combiner {combiner} makes no datatype from others"),
    }
}

/// True if its elements have these sizes in memory, too.
fn has_these(datatype: &Datatype, sizes: Sizes<'_>) -> Answer<bool> {
    match &datatype.made.types[..] {
        [] => Ok(sizes(datatype)? as isize == datatype.extent),
        types => {
            for datatype in types {
                if !has_these(datatype, sizes)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

fn element(datatype: &Datatype, sizes: Sizes<'_>) -> Answer<Held> {
    let bytes = sizes(datatype)?;
    let signature = Signature::Sequence(vec![datatype.signature.clone()]);
    let made = Datatype::new(Layout::run(0, bytes), signature, 0, bytes as isize, datatype.align);
    Ok(Held::Derived(Arc::new(made)))
}
