//! Attributes of communicators. (Those of datatypes: type_queries.rs; of windows:
//! window_objects.rs.)

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::attributes::{self, Owner};
use crate::checks::{self, put, put_found, put_new};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::{classes, comm, world};

pub unsafe fn comm_create_keyval(
    copy: MPI_Comm_copy_attr_function,
    delete: MPI_Comm_delete_attr_function,
    comm_keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Answer {
    let make = || attributes::create_key(Owner::Comm, copy, delete, extra_state);
    put_new("comm_keyval", comm_keyval, make)
}

pub unsafe fn comm_free_keyval(comm_keyval: *mut c_int) -> Answer {
    checks::not_null("comm_keyval", comm_keyval)?;
    changeable(*comm_keyval)?;
    attributes::free_key(*comm_keyval, Owner::Comm)?;
    *comm_keyval = MPI_KEYVAL_INVALID;
    Ok(())
}

pub unsafe fn comm_set_attr(
    comm: MPI_Comm,
    comm_keyval: c_int,
    attribute_val: *mut c_void,
) -> Answer {
    changeable(comm_keyval)?;
    comm::get(comm)?.attributes.set(comm, comm_keyval, Owner::Comm, attribute_val)
}

pub unsafe fn comm_delete_attr(comm: MPI_Comm, comm_keyval: c_int) -> Answer {
    changeable(comm_keyval)?;
    comm::get(comm)?.attributes.delete(comm, comm_keyval, Owner::Comm)
}

/// The value, or for a predefined key the address of an int.
pub unsafe fn comm_get_attr(
    comm: MPI_Comm,
    comm_keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Answer {
    let comm = comm::get(comm)?;
    let value = match predefined(comm_keyval) {
        Some(value) => value,
        None => comm.attributes.get(comm_keyval, Owner::Comm)?,
    };
    put_found(flag, value, |value| put("attribute_val", attribute_val.cast(), value))
}

fn changeable(keyval: c_int) -> Answer {
    not_predefined(predefined(keyval).is_some())
}

pub(super) fn not_predefined(is_predefined: bool) -> Answer {
    if is_predefined {
        let text = "the key is predefined; its value can be read, but neither set nor deleted";
        return Err(fail(MPI_ERR_KEYVAL, text));
    }
    Ok(())
}

/// The address of a predefined key's value, which is static; the inner None says that the key has
/// no value here, the outer one that it is not predefined.
fn predefined(keyval: c_int) -> Option<Option<*mut c_void>> {
    static TAG_UB: AtomicI32 = AtomicI32::new(checks::TAG_UB);
    static HOST: AtomicI32 = AtomicI32::new(MPI_PROC_NULL);
    static IO: AtomicI32 = AtomicI32::new(MPI_ANY_SOURCE);
    static WTIME_IS_GLOBAL: AtomicI32 = AtomicI32::new(1); // one machine has one clock
    static UNIVERSE_SIZE: AtomicI32 = AtomicI32::new(0);
    static APPNUM: AtomicI32 = AtomicI32::new(0);
    static LASTUSEDCODE: AtomicI32 = AtomicI32::new(0);
    let known = |value_at: &'static AtomicI32, value: Option<c_int>| {
        value.inspect(|value| value_at.store(*value, Relaxed)).map(|_| value_at)
    };
    let value_at = match keyval {
        MPI_TAG_UB => Some(&TAG_UB),
        MPI_HOST => Some(&HOST),
        MPI_IO => Some(&IO),
        MPI_WTIME_IS_GLOBAL => Some(&WTIME_IS_GLOBAL),
        MPI_UNIVERSE_SIZE => known(&UNIVERSE_SIZE, world::universe()),
        MPI_APPNUM => known(&APPNUM, world::application()),
        MPI_LASTUSEDCODE => known(&LASTUSEDCODE, Some(classes::last_used())),
        _ => return None,
    };
    Some(value_at.map(|value_at| value_at.as_ptr().cast()))
}

/// MPI_COMM_DUP_FN and the like: a duplicate gets the same value.
pub unsafe fn dup_fn(
    _oldcomm: MPI_Comm,
    _keyval: c_int,
    _extra_state: *mut c_void,
    attribute_val_in: *mut c_void,
    attribute_val_out: *mut c_void,
    flag: *mut c_int,
) -> Answer {
    put("attribute_val_out", attribute_val_out.cast(), attribute_val_in)?;
    put("flag", flag, 1)
}
