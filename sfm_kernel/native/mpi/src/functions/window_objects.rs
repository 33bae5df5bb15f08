//! The objects attached to a window: attributes, error handler, hints, name, group.

use super::attributes::not_predefined;
use crate::attributes::{self, Owner};
use crate::checks::{self, put, put_found, put_new, put_text, text};
use crate::errors::{Answer, On};
use crate::handles::*;
use crate::{group, info, raising, window};

pub unsafe fn win_create_keyval(
    copy: MPI_Win_copy_attr_function,
    delete: MPI_Win_delete_attr_function,
    win_keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Answer {
    let make = || attributes::create_key(Owner::Win, copy, delete, extra_state);
    put_new("win_keyval", win_keyval, make)
}

pub unsafe fn win_free_keyval(win_keyval: *mut c_int) -> Answer {
    checks::not_null("win_keyval", win_keyval)?;
    changeable(*win_keyval)?;
    attributes::free_key(*win_keyval, Owner::Win)?;
    *win_keyval = MPI_KEYVAL_INVALID;
    Ok(())
}

const PREDEFINED: [c_int; 5] =
    [MPI_WIN_BASE, MPI_WIN_SIZE, MPI_WIN_DISP_UNIT, MPI_WIN_CREATE_FLAVOR, MPI_WIN_MODEL];

fn changeable(keyval: c_int) -> Answer {
    not_predefined(PREDEFINED.contains(&keyval))
}

pub unsafe fn win_set_attr(win: MPI_Win, win_keyval: c_int, attribute_val: *mut c_void) -> Answer {
    let window = window::get(win)?;
    changeable(win_keyval)?;
    window.attributes.set(win, win_keyval, Owner::Win, attribute_val)
}

/// The value; for a predefined key, the address of the window's memory or of a number.
pub unsafe fn win_get_attr(
    win: MPI_Win,
    win_keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Answer {
    let window = window::get(win)?;
    let local = &window.local;
    let value = match win_keyval {
        MPI_WIN_BASE => Some(local.base as *mut c_void),
        MPI_WIN_SIZE => Some((&raw const local.size).cast_mut().cast()),
        MPI_WIN_DISP_UNIT => Some((&raw const local.disp_unit).cast_mut().cast()),
        MPI_WIN_CREATE_FLAVOR => Some((&raw const local.flavor).cast_mut().cast()),
        MPI_WIN_MODEL => Some((&raw const local.model).cast_mut().cast()),
        _ => window.attributes.get(win_keyval, Owner::Win)?,
    };
    put_found(flag, value, |value| put("attribute_val", attribute_val.cast(), value))
}

pub unsafe fn win_delete_attr(win: MPI_Win, win_keyval: c_int) -> Answer {
    let window = window::get(win)?;
    changeable(win_keyval)?;
    window.attributes.delete(win, win_keyval, Owner::Win)
}

pub unsafe fn win_set_errhandler(win: MPI_Win, errhandler: MPI_Errhandler) -> Answer {
    window::get(win)?.errhandler.set(errhandler)
}

pub unsafe fn win_get_errhandler(win: MPI_Win, errhandler: *mut MPI_Errhandler) -> Answer {
    let window = window::get(win)?;
    put_new("errhandler", errhandler, || window.errhandler.get())
}

/// As if a function of MPI had failed with this code.
pub unsafe fn win_call_errhandler(win: MPI_Win, errorcode: c_int) -> Answer {
    window::get(win)?;
    raising::call("MPI_Win_call_errhandler", errorcode, On::Win(win));
    Ok(())
}

pub unsafe fn win_set_info(win: MPI_Win, info: MPI_Info) -> Answer {
    let window = window::get(win)?;
    window.change_hints(&info::with(info, |info| info.clone())?);
    Ok(())
}

pub unsafe fn win_get_info(win: MPI_Win, info_used: *mut MPI_Info) -> Answer {
    let window = window::get(win)?;
    put_new("info_used", info_used, || info::open(window.hints()))
}

pub unsafe fn win_set_name(win: MPI_Win, win_name: *const c_char) -> Answer {
    let window = window::get(win)?;
    window.set_name(text("win_name", win_name)?);
    Ok(())
}

pub unsafe fn win_get_name(win: MPI_Win, win_name: *mut c_char, resultlen: *mut c_int) -> Answer {
    let name = match win {
        MPI_WIN_NULL => "MPI_WIN_NULL".into(),
        _ => window::get(win)?.name(),
    };
    put_text("win_name", win_name, MPI_MAX_OBJECT_NAME, &name, resultlen)
}

pub unsafe fn win_get_group(win: MPI_Win, group: *mut MPI_Group) -> Answer {
    let window = window::get(win)?;
    put_new("group", group, || group::open(window.comm.group.clone()))
}
