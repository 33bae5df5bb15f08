//! Reading and changing statuses.

use crate::checks::{self, put, Results};
use crate::datatype::{self, Held};
use crate::errors::{fail, Answer};
use crate::handles::*;

/// A status that can be read.
unsafe fn read<'a>(status: *const MPI_Status) -> Answer<&'a MPI_Status> {
    if !is_requested(status) {
        return Err(fail(MPI_ERR_ARG, "argument status is MPI_STATUS_IGNORE or a null pointer"));
    }
    Ok(&*status)
}

unsafe fn change<'a>(status: *mut MPI_Status) -> Answer<&'a mut MPI_Status> {
    read(status)?;
    Ok(&mut *status)
}

pub unsafe fn get_count(
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: Results,
) -> Answer {
    let (bytes, size) = (read(status)?.bytes(), datatype::get(datatype)?.size as u64);
    let items = match size {
        0 if bytes == 0 => 0,
        0 => MPI_UNDEFINED,
        _ if bytes % size != 0 => MPI_UNDEFINED,
        _ => return count.put("count", bytes / size),
    };
    count.put("count", items)
}

/// None if the bytes end within an element.
fn elements(found: &Held, bytes: u64) -> Option<MPI_Count> {
    if found.size == 0 {
        return (bytes == 0).then_some(0);
    }
    let (complete, rest) = (bytes / found.size as u64, bytes % found.size as u64);
    let (more, partial) = found.signature.within(rest as usize);
    (partial == 0)
        .then(|| complete as MPI_Count * found.signature.elements() as MPI_Count + more as i64)
}

pub unsafe fn get_elements(
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: Results,
) -> Answer {
    let found = elements(&datatype::committed(datatype)?, read(status)?.bytes());
    count.put("count", found.unwrap_or(MPI_UNDEFINED.into()))
}

pub unsafe fn get_elements_x(
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: *mut MPI_Count,
) -> Answer {
    get_elements(status, datatype, Results::Longs(count))
}

pub unsafe fn status_set_elements(
    status: *mut MPI_Status,
    datatype: MPI_Datatype,
    count: MPI_Count,
) -> Answer {
    let count = checks::count("count", count)?;
    let found = datatype::get(datatype)?;
    let each = found.signature.elements().max(1);
    let rest = found.signature.bytes_of(count % each);
    change(status)?.set_bytes((found.bytes(count / each)? + rest) as u64);
    Ok(())
}

pub unsafe fn status_set_cancelled(status: *mut MPI_Status, flag: c_int) -> Answer {
    change(status)?.set_cancelled(flag != 0);
    Ok(())
}

pub unsafe fn test_cancelled(status: *const MPI_Status, flag: *mut c_int) -> Answer {
    put("flag", flag, c_int::from(read(status)?.is_cancelled()))
}

pub unsafe fn status_get_source(status: *const MPI_Status, source: *mut c_int) -> Answer {
    put("source", source, read(status)?.MPI_SOURCE)
}

pub unsafe fn status_get_tag(status: *const MPI_Status, tag: *mut c_int) -> Answer {
    put("tag", tag, read(status)?.MPI_TAG)
}

pub unsafe fn status_get_error(status: *const MPI_Status, err: *mut c_int) -> Answer {
    put("err", err, read(status)?.MPI_ERROR)
}

pub unsafe fn status_set_source(status: *mut MPI_Status, source: c_int) -> Answer {
    change(status)?.MPI_SOURCE = source;
    Ok(())
}

pub unsafe fn status_set_tag(status: *mut MPI_Status, tag: c_int) -> Answer {
    change(status)?.MPI_TAG = tag;
    Ok(())
}

pub unsafe fn status_set_error(status: *mut MPI_Status, err: c_int) -> Answer {
    change(status)?.MPI_ERROR = err;
    Ok(())
}

// Fortran's status is an array of five integers: the same bytes.

unsafe fn copy(from: *const MPI_Status, to: *mut MPI_Status) -> Answer {
    let status = *read(from)?;
    checks::not_null("the destination", to)?;
    to.write(status);
    Ok(())
}

pub unsafe fn status_c2f(c_status: *const MPI_Status, f_status: *mut MPI_Fint) -> Answer {
    copy(c_status, f_status.cast())
}

pub unsafe fn status_f2c(f_status: *const MPI_Fint, c_status: *mut MPI_Status) -> Answer {
    copy(f_status.cast(), c_status)
}

pub unsafe fn status_c2f08(c_status: *const MPI_Status, f08_status: *mut MPI_F08_status) -> Answer {
    copy(c_status, f08_status)
}

pub unsafe fn status_f082c(f08_status: *const MPI_F08_status, c_status: *mut MPI_Status) -> Answer {
    copy(f08_status, c_status)
}

pub unsafe fn status_f082f(f08_status: *const MPI_F08_status, f_status: *mut MPI_Fint) -> Answer {
    copy(f08_status, f_status.cast())
}

pub unsafe fn status_f2f08(f_status: *const MPI_Fint, f08_status: *mut MPI_F08_status) -> Answer {
    copy(f_status.cast(), f08_status)
}
