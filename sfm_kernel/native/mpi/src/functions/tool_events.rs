//! The tool information interface: events and their sources.

use crate::checks::{not_null, put, put_new, text};
use crate::counting::Happened;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::info::{self, Info};
use crate::tool::events::{self, ALL, ELEMENTS, SOURCE, TICKS_PER_SECOND};
use crate::tool::texts::{give, offer};
use crate::tool::{self, enums};

type Type = (Happened, &'static str, &'static str);

fn event(index: c_int) -> Answer<&'static Type> {
    tool::nth(&ALL, index, "event")
}

fn source(index: c_int) -> Answer<&'static (&'static str, &'static str)> {
    tool::nth(std::slice::from_ref(&SOURCE), index, "source")
}

/// Return an empty info object, because no hint is supported; the caller frees it.
unsafe fn no_hints(at: *mut MPI_Info) -> Answer {
    put_new("info_used", at, || info::open(Info::default()))
}

fn hints(info: MPI_Info) -> Answer {
    info::copy_or_empty(info).map(|_| ())
}

pub unsafe fn t_event_get_num(num_events: *mut c_int) -> Answer {
    put("num_events", num_events, ALL.len() as c_int)
}

pub unsafe fn t_event_get_info(
    event_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    array_of_datatypes: *mut MPI_Datatype,
    array_of_displacements: *mut MPI_Aint,
    num_elements: *mut c_int,
    enumtype: *mut MPI_T_enum,
    info: *mut MPI_Info,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
) -> Answer {
    let (_, its_name, about) = event(event_index)?;
    give(its_name, name, name_len);
    give(about, desc, desc_len);
    offer(verbosity, MPI_T_VERBOSITY_TUNER_DETAIL);
    if !num_elements.is_null() {
        let room = ELEMENTS.len().min((*num_elements).max(0) as usize);
        for (nth, (datatype, displacement)) in ELEMENTS.into_iter().enumerate().take(room) {
            if !array_of_datatypes.is_null() {
                *array_of_datatypes.add(nth) = datatype;
            }
            if !array_of_displacements.is_null() {
                *array_of_displacements.add(nth) = displacement;
            }
        }
        *num_elements = ELEMENTS.len() as c_int;
    }
    offer(enumtype, enums::handle(None));
    if !info.is_null() {
        no_hints(info)?;
    }
    offer(bind, MPI_T_BIND_MPI_COMM);
    Ok(())
}

pub unsafe fn t_event_get_index(name: *const c_char, event_index: *mut c_int) -> Answer {
    let name = text("name", name)?;
    let index = tool::index_of(&ALL, |(_, known, _)| *known == name, "event", &name)?;
    put("event_index", event_index, index)
}

pub unsafe fn t_event_handle_alloc(
    event_index: c_int,
    obj_handle: *mut c_void,
    info: MPI_Info,
    event_registration: *mut MPI_T_event_registration,
) -> Answer {
    let (kind, ..) = event(event_index)?;
    hints(info)?;
    *event_registration = events::open(*kind, tool::bound(MPI_T_BIND_MPI_COMM, obj_handle)?);
    Ok(())
}

pub unsafe fn t_event_handle_free(
    event_registration: MPI_T_event_registration,
    user_data: *mut c_void,
    free_cb_function: MPI_T_event_free_cb_function,
) -> Answer {
    events::close(event_registration, user_data, free_cb_function)
}

pub unsafe fn t_event_handle_set_info(
    event_registration: MPI_T_event_registration,
    info: MPI_Info,
) -> Answer {
    events::get(event_registration)?;
    hints(info)
}

pub unsafe fn t_event_handle_get_info(
    event_registration: MPI_T_event_registration,
    info_used: *mut MPI_Info,
) -> Answer {
    events::get(event_registration)?;
    no_hints(info_used)
}

pub unsafe fn t_event_register_callback(
    event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety,
    info: MPI_Info,
    user_data: *mut c_void,
    event_cb_function: MPI_T_event_cb_function,
) -> Answer {
    hints(info)?;
    events::set_callback(event_registration, cb_safety, event_cb_function, user_data)
}

pub unsafe fn t_event_callback_set_info(
    event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety,
    info: MPI_Info,
) -> Answer {
    events::has_callback(event_registration, cb_safety)?;
    hints(info)
}

pub unsafe fn t_event_callback_get_info(
    event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety,
    info_used: *mut MPI_Info,
) -> Answer {
    events::has_callback(event_registration, cb_safety)?;
    no_hints(info_used)
}

pub unsafe fn t_event_set_dropped_handler(
    event_registration: MPI_T_event_registration,
    dropped_cb_function: MPI_T_event_dropped_cb_function,
) -> Answer {
    events::set_dropped_handler(event_registration, dropped_cb_function)
}

pub unsafe fn t_event_read(
    event_instance: MPI_T_event_instance,
    element_index: c_int,
    buffer: *mut c_void,
) -> Answer {
    let data = events::instance(event_instance)?.data;
    not_null("buffer", buffer)?;
    match element_index {
        0 => buffer.cast::<c_int>().write_unaligned(data.rank),
        1 => buffer.cast::<c_int>().write_unaligned(data.tag),
        2 => buffer.cast::<u64>().write_unaligned(data.bytes),
        _ => {
            let text = format!("argument element_index is {element_index}; there are 0, 1 and 2");
            return Err(fail(MPI_T_ERR_INVALID_INDEX, text));
        }
    }
    Ok(())
}

pub unsafe fn t_event_copy(event_instance: MPI_T_event_instance, buffer: *mut c_void) -> Answer {
    let data = events::instance(event_instance)?.data;
    not_null("buffer", buffer)?;
    buffer.cast::<events::Data>().write_unaligned(data);
    Ok(())
}

pub unsafe fn t_event_get_timestamp(
    event_instance: MPI_T_event_instance,
    event_timestamp: *mut MPI_Count,
) -> Answer {
    put("event_timestamp", event_timestamp, events::instance(event_instance)?.time)
}

pub unsafe fn t_event_get_source(
    event_instance: MPI_T_event_instance,
    source_index: *mut c_int,
) -> Answer {
    events::instance(event_instance)?;
    put("source_index", source_index, 0)
}

pub unsafe fn t_source_get_num(num_sources: *mut c_int) -> Answer {
    put("num_sources", num_sources, 1)
}

pub unsafe fn t_source_get_info(
    source_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    desc: *mut c_char,
    desc_len: *mut c_int,
    ordering: *mut MPI_T_source_order,
    ticks_per_second: *mut MPI_Count,
    max_ticks: *mut MPI_Count,
    info: *mut MPI_Info,
) -> Answer {
    let (its_name, about) = source(source_index)?;
    give(its_name, name, name_len);
    give(about, desc, desc_len);
    offer(ordering, MPI_T_SOURCE_UNORDERED); // several threads may queue events at the same moment
    offer(ticks_per_second, TICKS_PER_SECOND);
    offer(max_ticks, MPI_Count::MAX);
    if !info.is_null() {
        no_hints(info)?;
    }
    Ok(())
}

pub unsafe fn t_source_get_timestamp(source_index: c_int, timestamp: *mut MPI_Count) -> Answer {
    source(source_index)?;
    put("timestamp", timestamp, events::now())
}
