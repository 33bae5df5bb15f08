//! Packing into and unpacking from a buffer of the program. Packed data is the data itself.

use crate::checks::{self, put};
use crate::comm;
use crate::datatype;
use crate::errors::{fail, Answer};
use crate::handles::*;

pub unsafe fn pack_size(
    incount: c_int,
    datatype: MPI_Datatype,
    comm: MPI_Comm,
    size: *mut c_int,
) -> Answer {
    comm::get(comm)?;
    let count = checks::count("incount", incount)?;
    let bytes = count * datatype::committed(datatype)?.size;
    put("size", size, c_int::try_from(bytes).unwrap_or(MPI_UNDEFINED))
}

pub unsafe fn pack(
    inbuf: *const c_void,
    incount: c_int,
    datatype: MPI_Datatype,
    outbuf: *mut c_void,
    outsize: c_int,
    position: *mut c_int,
    comm: MPI_Comm,
) -> Answer {
    comm::get(comm)?;
    let count = checks::count("incount", incount)?;
    let found = datatype::committed(datatype)?;
    let bytes = count * found.size;
    checks::buffer("inbuf", inbuf, bytes, found.basic.is_none())?;
    checks::buffer("outbuf", outbuf, bytes, false)?;
    let at = step(("outsize", outsize), position, bytes, "make the buffer larger: MPI_Pack_size")?;
    found.pack(inbuf, count, 0..bytes, outbuf.cast::<u8>().add(at));
    *position = (at + bytes) as c_int;
    Ok(())
}

pub unsafe fn unpack(
    inbuf: *const c_void,
    insize: c_int,
    position: *mut c_int,
    outbuf: *mut c_void,
    outcount: c_int,
    datatype: MPI_Datatype,
    comm: MPI_Comm,
) -> Answer {
    comm::get(comm)?;
    let count = checks::count("outcount", outcount)?;
    let found = datatype::committed(datatype)?;
    let bytes = count * found.size;
    checks::buffer("inbuf", inbuf, bytes, false)?;
    checks::buffer("outbuf", outbuf, bytes, found.basic.is_none())?;
    let at = step(("insize", insize), position, bytes, "less was packed than is unpacked")?;
    found.unpack(outbuf, count, 0..bytes, inbuf.cast::<u8>().add(at));
    *position = (at + bytes) as c_int;
    Ok(())
}

/// Where in the packed buffer it goes on, if `bytes` more fit in.
unsafe fn step(
    (name, room): (&str, c_int),
    position: *mut c_int,
    bytes: usize,
    what_to_do: &str,
) -> Answer<usize> {
    checks::place("position", position)?;
    let at = checks::count("position", *position)?;
    if at + bytes > checks::count(name, room)? {
        let text = format!(
            "{bytes} bytes at position {at} do not fit into {name} ({room} bytes); {what_to_do}"
        );
        return Err(fail(MPI_ERR_TRUNCATE, text));
    }
    Ok(at)
}
