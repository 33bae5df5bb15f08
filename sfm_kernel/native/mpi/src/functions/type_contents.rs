//! The construction of a datatype.

use crate::checks::{self, array_mut, put};
use crate::datatype::contents::Contents;
use crate::datatype::{self, Made};
use crate::errors::{fail, Answer};
use crate::handles::*;

pub unsafe fn type_get_envelope(
    datatype: MPI_Datatype,
    num_integers: *mut c_int,
    num_addresses: *mut c_int,
    num_datatypes: *mut c_int,
    combiner: *mut c_int,
) -> Answer {
    let made = &datatype::get(datatype)?.made;
    put("combiner", combiner, made.combiner)?;
    let contents = made.small_contents()?;
    put("num_integers", num_integers, contents.integers.len() as c_int)?;
    put("num_addresses", num_addresses, contents.addresses.len() as c_int)?;
    put("num_datatypes", num_datatypes, made.types.len() as c_int)
}

pub unsafe fn type_get_envelope_c(
    datatype: MPI_Datatype,
    num_integers: *mut MPI_Count,
    num_addresses: *mut MPI_Count,
    num_large_counts: *mut MPI_Count,
    num_datatypes: *mut MPI_Count,
    combiner: *mut c_int,
) -> Answer {
    let made = &datatype::get(datatype)?.made;
    let contents = made.contents();
    put("combiner", combiner, made.combiner)?;
    put("num_integers", num_integers, contents.integers.len() as MPI_Count)?;
    put("num_addresses", num_addresses, contents.addresses.len() as MPI_Count)?;
    put("num_large_counts", num_large_counts, contents.counts.len() as MPI_Count)?;
    put("num_datatypes", num_datatypes, made.types.len() as MPI_Count)
}

pub unsafe fn type_get_contents(
    datatype: MPI_Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut MPI_Aint,
    array_of_datatypes: *mut MPI_Datatype,
) -> Answer {
    let found = datatype::get(datatype)?;
    not_named(&found)?;
    let contents = found.made.small_contents()?;
    for (name, max, has) in [
        ("max_integers", max_integers, contents.integers.len()),
        ("max_addresses", max_addresses, contents.addresses.len()),
        ("max_datatypes", max_datatypes, found.made.types.len()),
    ] {
        room(name, max.into(), has)?;
    }
    give(&contents, array_of_integers, array_of_addresses)?;
    give_types(&found.made, array_of_datatypes)
}

pub unsafe fn type_get_contents_c(
    datatype: MPI_Datatype,
    max_integers: MPI_Count,
    max_addresses: MPI_Count,
    max_large_counts: MPI_Count,
    max_datatypes: MPI_Count,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut MPI_Aint,
    array_of_large_counts: *mut MPI_Count,
    array_of_datatypes: *mut MPI_Datatype,
) -> Answer {
    let found = datatype::get(datatype)?;
    not_named(&found)?;
    let contents = found.made.contents();
    for (name, max, has) in [
        ("max_integers", max_integers, contents.integers.len()),
        ("max_addresses", max_addresses, contents.addresses.len()),
        ("max_large_counts", max_large_counts, contents.counts.len()),
        ("max_datatypes", max_datatypes, found.made.types.len()),
    ] {
        room(name, max, has)?;
    }
    give(&contents, array_of_integers, array_of_addresses)?;
    array_mut("array_of_large_counts", array_of_large_counts, contents.counts.len())?
        .copy_from_slice(&contents.counts);
    give_types(&found.made, array_of_datatypes)
}

fn not_named(found: &datatype::Datatype) -> Answer {
    if found.made.combiner == MPI_COMBINER_NAMED {
        let text = format!("{} is predefined, and has no contents", found.name());
        return Err(fail(MPI_ERR_TYPE, text));
    }
    Ok(())
}

fn room(name: &str, max: MPI_Count, has: usize) -> Answer {
    if checks::count(name, max)? < has {
        let text = format!(
            "argument {name} is {max}, but there are {has}; MPI_Type_get_envelope returns the \
            number"
        );
        return Err(fail(MPI_ERR_COUNT, text));
    }
    Ok(())
}

unsafe fn give(contents: &Contents, integers: *mut c_int, addresses: *mut MPI_Aint) -> Answer {
    let targets = array_mut("array_of_integers", integers, contents.integers.len())?;
    for (target, integer) in targets.iter_mut().zip(&contents.integers) {
        *target = c_int::try_from(*integer).unwrap_or(MPI_UNDEFINED);
    }
    array_mut("array_of_addresses", addresses, contents.addresses.len())?
        .copy_from_slice(&contents.addresses);
    Ok(())
}

/// The datatypes are new handles, which the program frees.
unsafe fn give_types(made: &Made, types: *mut MPI_Datatype) -> Answer {
    let targets = array_mut("array_of_datatypes", types, made.types.len())?;
    for (target, datatype) in targets.iter_mut().zip(&made.types) {
        *target = datatype::open(datatype.clone());
    }
    Ok(())
}
