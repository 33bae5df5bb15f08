//! Queries about a datatype: sizes, bounds, name, attributes.

use crate::attributes::{self, Owner};
use crate::checks::{self, put, put_found, put_new, put_text, text, Results};
use crate::datatype;
use crate::errors::{fail, Answer};
use crate::handles::*;

pub unsafe fn type_size(datatype: MPI_Datatype, size: Results) -> Answer {
    size.put("size", datatype::get(datatype)?.size)
}

pub unsafe fn type_size_x(datatype: MPI_Datatype, size: *mut MPI_Count) -> Answer {
    type_size(datatype, Results::Longs(size))
}

pub unsafe fn type_get_extent(datatype: MPI_Datatype, lb: Results, extent: Results) -> Answer {
    let found = datatype::get(datatype)?;
    lb.put("lb", found.lb as MPI_Count)?;
    extent.put("extent", found.extent as MPI_Count)
}

pub unsafe fn type_get_extent_x(
    datatype: MPI_Datatype,
    lb: *mut MPI_Count,
    extent: *mut MPI_Count,
) -> Answer {
    type_get_extent(datatype, Results::Longs(lb), Results::Longs(extent))
}

pub unsafe fn type_get_true_extent(
    datatype: MPI_Datatype,
    true_lb: Results,
    true_extent: Results,
) -> Answer {
    let found = datatype::get(datatype)?;
    true_lb.put("true_lb", found.true_lb as MPI_Count)?;
    true_extent.put("true_extent", found.true_extent as MPI_Count)
}

pub unsafe fn type_get_true_extent_x(
    datatype: MPI_Datatype,
    true_lb: *mut MPI_Count,
    true_extent: *mut MPI_Count,
) -> Answer {
    type_get_true_extent(datatype, Results::Longs(true_lb), Results::Longs(true_extent))
}

pub unsafe fn type_extent(datatype: MPI_Datatype, extent: *mut MPI_Aint) -> Answer {
    put("extent", extent, datatype::get(datatype)?.extent)
}

pub unsafe fn type_lb(datatype: MPI_Datatype, displacement: *mut MPI_Aint) -> Answer {
    put("displacement", displacement, datatype::get(datatype)?.lb)
}

pub unsafe fn type_ub(datatype: MPI_Datatype, displacement: *mut MPI_Aint) -> Answer {
    put("displacement", displacement, datatype::get(datatype)?.ub())
}

pub unsafe fn type_get_name(
    datatype: MPI_Datatype,
    type_name: *mut c_char,
    resultlen: *mut c_int,
) -> Answer {
    let name = match datatype {
        MPI_DATATYPE_NULL => "MPI_DATATYPE_NULL".into(),
        _ => datatype::get(datatype)?.name(),
    };
    put_text("type_name", type_name, MPI_MAX_OBJECT_NAME, &name, resultlen)
}

pub unsafe fn type_set_name(datatype: MPI_Datatype, type_name: *const c_char) -> Answer {
    datatype::get(datatype)?.set_name(text("type_name", type_name)?);
    Ok(())
}

/// The predefined datatype of this class and size.
pub unsafe fn type_match_size(
    typeclass: c_int,
    size: c_int,
    datatype: *mut MPI_Datatype,
) -> Answer {
    let found = match (typeclass, size) {
        (MPI_TYPECLASS_REAL, 2) => MPI_REAL2,
        (MPI_TYPECLASS_REAL, 4) => MPI_REAL4,
        (MPI_TYPECLASS_REAL, 8) => MPI_REAL8,
        (MPI_TYPECLASS_REAL, 16) => MPI_REAL16,
        (MPI_TYPECLASS_INTEGER, 1) => MPI_INTEGER1,
        (MPI_TYPECLASS_INTEGER, 2) => MPI_INTEGER2,
        (MPI_TYPECLASS_INTEGER, 4) => MPI_INTEGER4,
        (MPI_TYPECLASS_INTEGER, 8) => MPI_INTEGER8,
        (MPI_TYPECLASS_INTEGER, 16) => MPI_INTEGER16,
        (MPI_TYPECLASS_COMPLEX, 4) => MPI_COMPLEX4,
        (MPI_TYPECLASS_COMPLEX, 8) => MPI_COMPLEX8,
        (MPI_TYPECLASS_COMPLEX, 16) => MPI_COMPLEX16,
        (MPI_TYPECLASS_COMPLEX, 32) => MPI_COMPLEX32,
        _ => {
            let text = format!("no predefined datatype has class {typeclass} and {size} bytes");
            return Err(fail(MPI_ERR_ARG, text));
        }
    };
    put("datatype", datatype, found)
}

/// The predefined pair for MPI_MINLOC and MPI_MAXLOC, or MPI_DATATYPE_NULL.
pub unsafe fn type_get_value_index(
    value_type: MPI_Datatype,
    index_type: MPI_Datatype,
    pair_type: *mut MPI_Datatype,
) -> Answer {
    datatype::get(value_type)?;
    datatype::get(index_type)?;
    let pair = match (value_type, index_type) {
        (MPI_FLOAT, MPI_INT) => MPI_FLOAT_INT,
        (MPI_DOUBLE, MPI_INT) => MPI_DOUBLE_INT,
        (MPI_LONG, MPI_INT) => MPI_LONG_INT,
        (MPI_INT, MPI_INT) => MPI_2INT,
        (MPI_SHORT, MPI_INT) => MPI_SHORT_INT,
        (MPI_LONG_DOUBLE, MPI_INT) => MPI_LONG_DOUBLE_INT,
        (MPI_REAL, MPI_REAL) => MPI_2REAL,
        (MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION) => MPI_2DOUBLE_PRECISION,
        (MPI_INTEGER, MPI_INTEGER) => MPI_2INTEGER,
        _ => MPI_DATATYPE_NULL,
    };
    put("pair_type", pair_type, pair)
}

pub unsafe fn type_create_keyval(
    copy: MPI_Type_copy_attr_function,
    delete: MPI_Type_delete_attr_function,
    type_keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Answer {
    let make = || attributes::create_key(Owner::Type, copy, delete, extra_state);
    put_new("type_keyval", type_keyval, make)
}

pub unsafe fn type_free_keyval(type_keyval: *mut c_int) -> Answer {
    checks::not_null("type_keyval", type_keyval)?;
    attributes::free_key(*type_keyval, Owner::Type)?;
    *type_keyval = MPI_KEYVAL_INVALID;
    Ok(())
}

pub unsafe fn type_set_attr(
    datatype: MPI_Datatype,
    type_keyval: c_int,
    value: *mut c_void,
) -> Answer {
    datatype::get(datatype)?.attributes.set(datatype, type_keyval, Owner::Type, value)
}

pub unsafe fn type_get_attr(
    datatype: MPI_Datatype,
    type_keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Answer {
    let value = datatype::get(datatype)?.attributes.get(type_keyval, Owner::Type)?;
    put_found(flag, value, |value| put("attribute_val", attribute_val.cast(), value))
}

pub unsafe fn type_delete_attr(datatype: MPI_Datatype, type_keyval: c_int) -> Answer {
    datatype::get(datatype)?.attributes.delete(datatype, type_keyval, Owner::Type)
}
