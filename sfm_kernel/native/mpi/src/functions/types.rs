//! Constructors of datatypes, and freeing one.

use crate::checks::{self, array, put, put_new, Numbers};
use crate::datatype::{self, arrays, making, Held};
use crate::errors::{fail, Answer};
use crate::handles::*;

unsafe fn give(newtype: *mut MPI_Datatype, made: Held) -> Answer {
    put_new("newtype", newtype, || datatype::open(made))
}

pub unsafe fn type_contiguous(
    count: MPI_Count,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    let count = checks::count("count", count)?;
    give(newtype, making::contiguous(count, datatype::get(oldtype)?)?)
}

pub unsafe fn type_vector(
    count: MPI_Count,
    blocklength: MPI_Count,
    stride: MPI_Count,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    let count = checks::count("count", count)?;
    let length = checks::count("blocklength", blocklength)?;
    give(newtype, making::vector(count, length, stride, datatype::get(oldtype)?)?)
}

pub unsafe fn type_create_hvector(
    count: MPI_Count,
    blocklength: MPI_Count,
    stride: MPI_Count,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    let count = checks::count("count", count)?;
    let length = checks::count("blocklength", blocklength)?;
    give(newtype, making::hvector(count, length, stride, datatype::get(oldtype)?)?)
}

pub unsafe fn type_indexed(
    count: MPI_Count,
    array_of_blocklengths: Numbers,
    array_of_displacements: Numbers,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    let count = checks::count("count", count)?;
    let blocks = array_of_blocklengths.counts("array_of_blocklengths", count)?;
    let at = array_of_displacements.list("array_of_displacements", count)?;
    give(newtype, making::indexed(&blocks, &at, datatype::get(oldtype)?)?)
}

pub unsafe fn type_create_hindexed(
    count: MPI_Count,
    array_of_blocklengths: Numbers,
    array_of_displacements: Numbers,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    let count = checks::count("count", count)?;
    let blocks = array_of_blocklengths.counts("array_of_blocklengths", count)?;
    let at = array_of_displacements.list("array_of_displacements", count)?;
    give(newtype, making::hindexed(&blocks, &at, datatype::get(oldtype)?)?)
}

pub unsafe fn type_create_indexed_block(
    count: MPI_Count,
    blocklength: MPI_Count,
    array_of_displacements: Numbers,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    let count = checks::count("count", count)?;
    let length = checks::count("blocklength", blocklength)?;
    let at = array_of_displacements.list("array_of_displacements", count)?;
    give(newtype, making::indexed_block(length, &at, datatype::get(oldtype)?)?)
}

pub unsafe fn type_create_hindexed_block(
    count: MPI_Count,
    blocklength: MPI_Count,
    array_of_displacements: Numbers,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    let count = checks::count("count", count)?;
    let length = checks::count("blocklength", blocklength)?;
    let at = array_of_displacements.list("array_of_displacements", count)?;
    give(newtype, making::hindexed_block(length, &at, datatype::get(oldtype)?)?)
}

pub unsafe fn type_create_struct(
    count: MPI_Count,
    array_of_blocklengths: Numbers,
    array_of_displacements: Numbers,
    array_of_types: *const MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    let count = checks::count("count", count)?;
    let blocks = array_of_blocklengths.counts("array_of_blocklengths", count)?;
    let at = array_of_displacements.list("array_of_displacements", count)?;
    let types = array("array_of_types", array_of_types, count)?;
    let types = types.iter().map(|handle| datatype::get(*handle)).collect::<Answer<Vec<_>>>()?;
    give(newtype, making::structure(&blocks, &at, types)?)
}

pub unsafe fn type_create_subarray(
    ndims: c_int,
    array_of_sizes: Numbers,
    array_of_subsizes: Numbers,
    array_of_starts: Numbers,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    let ndims = checks::count("ndims", ndims)?;
    let sizes = array_of_sizes.list("array_of_sizes", ndims)?;
    let subsizes = array_of_subsizes.list("array_of_subsizes", ndims)?;
    let starts = array_of_starts.list("array_of_starts", ndims)?;
    let old = datatype::get(oldtype)?;
    give(newtype, arrays::subarray(&sizes, &subsizes, &starts, order, old)?)
}

pub unsafe fn type_create_darray(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    array_of_gsizes: Numbers,
    array_of_distribs: *const c_int,
    array_of_dargs: *const c_int,
    array_of_psizes: *const c_int,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    let ndims = checks::count("ndims", ndims)?;
    let of = arrays::Distribution {
        size,
        rank,
        sizes: &array_of_gsizes.list("array_of_gsizes", ndims)?,
        kinds: array("array_of_distribs", array_of_distribs, ndims)?,
        arguments: array("array_of_dargs", array_of_dargs, ndims)?,
        grid: array("array_of_psizes", array_of_psizes, ndims)?,
        order,
    };
    give(newtype, arrays::darray(&of, datatype::get(oldtype)?)?)
}

pub unsafe fn type_create_resized(
    oldtype: MPI_Datatype,
    lb: MPI_Count,
    extent: MPI_Count,
    newtype: *mut MPI_Datatype,
) -> Answer {
    give(newtype, making::resized(datatype::get(oldtype)?, lb as MPI_Aint, extent as MPI_Aint)?)
}

pub unsafe fn type_dup(oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> Answer {
    let old = datatype::get(oldtype)?;
    put("newtype", newtype, MPI_DATATYPE_NULL)?;
    let attributes = old.attributes.copy(oldtype)?;
    give(newtype, making::duplicate(old, attributes))
}

pub unsafe fn type_commit(datatype: *mut MPI_Datatype) -> Answer {
    datatype::get(*datatype)?.commit();
    Ok(())
}

pub unsafe fn type_free(datatype: *mut MPI_Datatype) -> Answer {
    if let Held::Derived(found) = datatype::get(*datatype)? {
        use self::{MPI_COMBINER_F90_COMPLEX as COMPLEX, MPI_COMBINER_F90_INTEGER as INTEGER};
        if [COMPLEX, INTEGER, MPI_COMBINER_F90_REAL].contains(&found.made.combiner) {
            let text = "a datatype of MPI_Type_create_f90_… is predefined, and cannot be freed";
            return Err(fail(MPI_ERR_TYPE, text));
        }
        found.attributes.clear(*datatype)?;
    }
    datatype::release(*datatype)?;
    *datatype = MPI_DATATYPE_NULL;
    Ok(())
}

// The names before MPI-2.

pub unsafe fn type_hvector(
    count: c_int,
    blocklength: c_int,
    stride: MPI_Aint,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    type_create_hvector(count.into(), blocklength.into(), stride as MPI_Count, oldtype, newtype)
}

pub unsafe fn type_hindexed(
    count: c_int,
    array_of_blocklengths: *mut c_int,
    array_of_displacements: *mut MPI_Aint,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    let blocks = Numbers::Ints(array_of_blocklengths);
    let at = Numbers::Longs(array_of_displacements.cast());
    type_create_hindexed(count.into(), blocks, at, oldtype, newtype)
}

pub unsafe fn type_struct(
    count: c_int,
    array_of_blocklengths: *mut c_int,
    array_of_displacements: *mut MPI_Aint,
    array_of_types: *mut MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Answer {
    let blocks = Numbers::Ints(array_of_blocklengths);
    let at = Numbers::Longs(array_of_displacements.cast());
    type_create_struct(count.into(), blocks, at, array_of_types, newtype)
}
