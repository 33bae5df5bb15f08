//! The tool information interface: performance variables and their sessions.

use crate::checks::{not_null, put, put_new, text};
use crate::errors::Answer;
use crate::handles::*;
use crate::tool::performance::{self, Variable};
use crate::tool::sessions::{self, Action};
use crate::tool::texts::{give, offer};
use crate::tool::{self, enums};

fn variable(index: c_int) -> Answer<&'static Variable> {
    tool::nth(performance::ALL, index, "performance variable")
}

pub unsafe fn t_pvar_get_num(num_pvar: *mut c_int) -> Answer {
    put("num_pvar", num_pvar, performance::ALL.len() as c_int)
}

pub unsafe fn t_pvar_get_info(
    pvar_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    var_class: *mut c_int,
    datatype: *mut MPI_Datatype,
    enumtype: *mut MPI_T_enum,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
    readonly: *mut c_int,
    continuous: *mut c_int,
    atomic: *mut c_int,
) -> Answer {
    let variable = variable(pvar_index)?;
    give(variable.name, name, name_len);
    give(variable.about, desc, desc_len);
    offer(verbosity, variable.verbosity);
    offer(var_class, variable.class);
    offer(datatype, variable.datatype());
    offer(enumtype, enums::handle(variable.enumeration()));
    offer(bind, variable.bind());
    offer(readonly, c_int::from(!variable.is_stateful()));
    offer(continuous, c_int::from(!variable.is_stateful()));
    offer(atomic, c_int::from(variable.is_stateful()));
    Ok(())
}

pub unsafe fn t_pvar_get_index(
    name: *const c_char,
    var_class: c_int,
    pvar_index: *mut c_int,
) -> Answer {
    let name = text("name", name)?;
    let is_it = |variable: &Variable| variable.name == name && variable.class == var_class;
    let kind = "performance variable of this class";
    put("pvar_index", pvar_index, tool::index_of(performance::ALL, is_it, kind, &name)?)
}

pub unsafe fn t_pvar_session_create(pe_session: *mut MPI_T_pvar_session) -> Answer {
    put_new("pe_session", pe_session, sessions::begin)
}

pub unsafe fn t_pvar_session_free(pe_session: *mut MPI_T_pvar_session) -> Answer {
    sessions::end(*pe_session)?;
    *pe_session = std::ptr::null_mut();
    Ok(())
}

pub unsafe fn t_pvar_handle_alloc(
    pe_session: MPI_T_pvar_session,
    pvar_index: c_int,
    obj_handle: *mut c_void,
    handle: *mut MPI_T_pvar_handle,
    count: *mut c_int,
) -> Answer {
    let variable = variable(pvar_index)?;
    not_null("count", count)?;
    let scope = tool::bound(variable.bind(), obj_handle)?;
    (*handle, *count) = sessions::open(pe_session, variable, scope)?;
    Ok(())
}

pub unsafe fn t_pvar_handle_free(
    pe_session: MPI_T_pvar_session,
    handle: *mut MPI_T_pvar_handle,
) -> Answer {
    sessions::close(pe_session, *handle)?;
    *handle = std::ptr::null_mut();
    Ok(())
}

pub unsafe fn t_pvar_start(pe_session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Answer {
    sessions::do_with(pe_session, handle, Action::Start)
}

pub unsafe fn t_pvar_stop(pe_session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Answer {
    sessions::do_with(pe_session, handle, Action::Stop)
}

pub unsafe fn t_pvar_reset(pe_session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Answer {
    sessions::do_with(pe_session, handle, Action::Reset)
}

pub unsafe fn t_pvar_read(
    pe_session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    buf: *mut c_void,
) -> Answer {
    not_null("buf", buf)?;
    sessions::read(pe_session, handle, buf, false)
}

pub unsafe fn t_pvar_readreset(
    pe_session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    buf: *mut c_void,
) -> Answer {
    not_null("buf", buf)?;
    sessions::read(pe_session, handle, buf, true)
}

pub unsafe fn t_pvar_write(
    pe_session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    buf: *const c_void,
) -> Answer {
    not_null("buf", buf.cast_mut())?;
    sessions::write(pe_session, handle, buf)
}
