//! The tool information interface: initialization, control variables, enumerations.

use crate::checks::{not_null, put, text};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::tool::control::{self, Variable};
use crate::tool::texts::{give, offer};
use crate::tool::{self, enums};

pub unsafe fn t_init_thread(_required: c_int, provided: *mut c_int) -> Answer {
    put("provided", provided, MPI_THREAD_MULTIPLE)?;
    tool::start();
    Ok(())
}

pub unsafe fn t_finalize() -> Answer {
    tool::finish();
    Ok(())
}

fn variable(index: c_int) -> Answer<&'static Variable> {
    tool::nth(&control::ALL, index, "control variable")
}

pub unsafe fn t_cvar_get_num(num_cvar: *mut c_int) -> Answer {
    put("num_cvar", num_cvar, control::ALL.len() as c_int)
}

pub unsafe fn t_cvar_get_info(
    cvar_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    datatype: *mut MPI_Datatype,
    enumtype: *mut MPI_T_enum,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
    scope: *mut c_int,
) -> Answer {
    let variable = variable(cvar_index)?;
    give(variable.name, name, name_len);
    give(variable.about, desc, desc_len);
    offer(verbosity, variable.verbosity);
    offer(datatype, variable.datatype());
    offer(enumtype, enums::handle(variable.enumeration()));
    offer(bind, MPI_T_BIND_NO_OBJECT);
    offer(scope, variable.scope);
    Ok(())
}

pub unsafe fn t_cvar_get_index(name: *const c_char, cvar_index: *mut c_int) -> Answer {
    let name = text("name", name)?;
    let is_it = |variable: &Variable| variable.name == name;
    let index = tool::index_of(&control::ALL, is_it, "control variable", &name)?;
    put("cvar_index", cvar_index, index)
}

pub unsafe fn t_cvar_handle_alloc(
    cvar_index: c_int,
    _obj_handle: *mut c_void,
    handle: *mut MPI_T_cvar_handle,
    count: *mut c_int,
) -> Answer {
    let variable = variable(cvar_index)?;
    not_null("count", count)?;
    (*handle, *count) = control::open(variable);
    Ok(())
}

pub unsafe fn t_cvar_handle_free(handle: *mut MPI_T_cvar_handle) -> Answer {
    control::close(*handle)?;
    *handle = std::ptr::null_mut();
    Ok(())
}

pub unsafe fn t_cvar_read(handle: MPI_T_cvar_handle, buf: *mut c_void) -> Answer {
    not_null("buf", buf)?;
    control::read(handle, buf)
}

pub unsafe fn t_cvar_write(handle: MPI_T_cvar_handle, buf: *const c_void) -> Answer {
    not_null("buf", buf.cast_mut())?;
    control::write(handle, buf)
}

pub unsafe fn t_enum_get_info(
    enumtype: MPI_T_enum,
    num: *mut c_int,
    name: *mut c_char,
    name_len: *mut c_int,
) -> Answer {
    let enumeration = enums::get(enumtype)?;
    offer(num, (enumeration.items)().len() as c_int);
    give(enumeration.name, name, name_len);
    Ok(())
}

pub unsafe fn t_enum_get_item(
    enumtype: MPI_T_enum,
    index: c_int,
    value: *mut c_int,
    name: *mut c_char,
    name_len: *mut c_int,
) -> Answer {
    let items = (enums::get(enumtype)?.items)();
    let item = usize::try_from(index).ok().and_then(|index| items.get(index));
    let (number, text) = item.ok_or_else(|| {
        let text = format!("argument index is {index}, but there are {} items", items.len());
        fail(MPI_T_ERR_INVALID_INDEX, text)
    })?;
    offer(value, *number);
    give(text, name, name_len);
    Ok(())
}
