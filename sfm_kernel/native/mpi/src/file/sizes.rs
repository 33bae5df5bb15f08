//! Datatypes whose elements have other sizes in the file than in memory: made again, in the same
//! way, of elements of those sizes. Displacements that count items move with them; those that count
//! bytes are the file's already (MPI 4.1, section 14.5).

use std::sync::Arc;

use crate::datatype::{arrays, making, Datatype, Held, Layout, Signature};
use crate::errors::Answer;
use crate::handles::*;

/// How many bytes an element takes.
pub type Sizes<'a> = &'a dyn Fn(&Datatype) -> Answer<usize>;

/// `datatype` with elements of these sizes.
pub fn with(datatype: &Held, sizes: Sizes<'_>) -> Answer<Held> {
    if has_these(datatype, sizes)? {
        return Ok(datatype.clone());
    }
    let made = &datatype.made;
    let types = made.types.iter().map(|one| with(one, sizes)).collect::<Answer<Vec<_>>>()?;
    let Some(old) = types.first().cloned() else { return element(datatype, sizes) };
    let (numbers, at) = (&made.integers, &made.addresses);
    let number = |nth: usize| numbers[nth] as usize;
    let places: Vec<MPI_Count> = at.iter().map(|one| *one as MPI_Count).collect();
    let lengths: Vec<usize> = numbers.iter().skip(1).map(|one| *one as usize).collect();
    match made.combiner {
        MPI_COMBINER_DUP => Ok(old),
        MPI_COMBINER_CONTIGUOUS => making::contiguous(number(0), old),
        MPI_COMBINER_VECTOR => making::vector(number(0), number(1), numbers[2], old),
        MPI_COMBINER_HVECTOR => making::hvector(number(0), number(1), places[0], old),
        MPI_COMBINER_INDEXED => {
            let (lengths, places) = lengths.split_at(number(0));
            let places: Vec<MPI_Count> = places.iter().map(|one| *one as MPI_Count).collect();
            making::indexed(lengths, &places, old)
        }
        MPI_COMBINER_HINDEXED => making::hindexed(&lengths, &places, old),
        MPI_COMBINER_INDEXED_BLOCK => making::indexed_block(number(1), &numbers[2..], old),
        MPI_COMBINER_HINDEXED_BLOCK => making::hindexed_block(number(1), &places, old),
        MPI_COMBINER_STRUCT => making::structure(&lengths, &places, types),
        MPI_COMBINER_RESIZED => making::resized(old, at[0], at[1]),
        MPI_COMBINER_SUBARRAY => {
            let (of, rest) = (number(0), &numbers[1..]);
            let order = rest[3 * of] as c_int;
            arrays::subarray(&rest[..of], &rest[of..2 * of], &rest[2 * of..3 * of], order, old)
        }
        MPI_COMBINER_DARRAY => {
            let (dimensions, rest) = (number(2), &numbers[3..]);
            let part = |nth: usize| -> Vec<c_int> {
                let all = &rest[nth * dimensions..][..dimensions];
                all.iter().map(|one| *one as c_int).collect()
            };
            let of = arrays::Distribution {
                size: numbers[0] as c_int,
                rank: numbers[1] as c_int,
                sizes: &rest[..dimensions],
                kinds: &part(1),
                arguments: &part(2),
                grid: &part(3),
                order: rest[4 * dimensions] as c_int,
            };
            arrays::darray(&of, old)
        }
        combiner => unreachable!("no datatype is made in way {combiner} of others"),
    }
}

/// Whether its elements have these sizes in memory, too.
fn has_these(datatype: &Datatype, sizes: Sizes<'_>) -> Answer<bool> {
    match &datatype.made.types[..] {
        [] => Ok(sizes(datatype)? as isize == datatype.extent),
        types => {
            for one in types {
                if !has_these(one, sizes)? {
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
