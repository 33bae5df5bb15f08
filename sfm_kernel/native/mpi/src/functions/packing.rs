//! Packing into, and unpacking from, a buffer of the program. The packed format is the data itself.

use sfm_native::core::Payload;

use crate::checks::{self, array, Results};
use crate::comm;
use crate::data::UserBuffer;
use crate::datatype;
use crate::errors::{fail, Answer};
use crate::handles::*;

pub unsafe fn pack_size(
    incount: MPI_Count,
    datatype: MPI_Datatype,
    comm: MPI_Comm,
    size: Results,
) -> Answer {
    comm::get(comm)?;
    let count = checks::count("incount", incount)?;
    let bytes = datatype::committed(datatype)?.bytes(count)?;
    size.put("size", bytes)
}

pub unsafe fn pack(
    inbuf: UserBuffer,
    outbuf: *mut c_void,
    outsize: MPI_Count,
    position: Results,
    comm: MPI_Comm,
) -> Answer {
    comm::get(comm)?;
    let count = checks::count("incount", inbuf.count)?;
    let found = datatype::committed(inbuf.datatype)?;
    let bytes = found.bytes(count)?;
    checks::buffer("inbuf", inbuf.at, bytes, found.basic.is_none())?;
    checks::buffer("outbuf", outbuf, bytes, false)?;
    let at = step(("outsize", outsize), position, bytes, "make the buffer larger: MPI_Pack_size")?;
    found.pack(inbuf.at, count, 0..bytes, outbuf.cast::<u8>().add(at));
    position.put("position", at + bytes)
}

pub unsafe fn unpack(
    inbuf: *const c_void,
    insize: MPI_Count,
    position: Results,
    outbuf: UserBuffer,
    comm: MPI_Comm,
) -> Answer {
    comm::get(comm)?;
    let count = checks::count("outcount", outbuf.count)?;
    let found = datatype::committed(outbuf.datatype)?;
    let bytes = found.bytes(count)?;
    checks::buffer("inbuf", inbuf, bytes, false)?;
    checks::buffer("outbuf", outbuf.at, bytes, found.basic.is_none())?;
    let at = step(("insize", insize), position, bytes, "the packed data has fewer bytes")?;
    found.unpack(outbuf.at.cast_mut(), count, 0..bytes, inbuf.cast::<u8>().add(at));
    position.put("position", at + bytes)
}

/// Refuse any representation but external32.
unsafe fn known(datarep: *const c_char) -> Answer {
    match checks::text("datarep", datarep)?.as_str() {
        "external32" => Ok(()),
        other => {
            Err(fail(MPI_ERR_ARG, format!("argument datarep is {other:?}; give \"external32\"")))
        }
    }
}

pub unsafe fn pack_external_size(
    datarep: *const c_char,
    incount: MPI_Count,
    datatype: MPI_Datatype,
    size: Results,
) -> Answer {
    known(datarep)?;
    let count = checks::count("incount", incount)?;
    let found = datatype::get(datatype)?;
    found.bytes(count)?; // external32 never needs more bytes than the native representation
    let bytes = count * found.signature.external_bytes();
    size.put("size", bytes)
}

pub unsafe fn pack_external(
    datarep: *const c_char,
    inbuf: UserBuffer,
    outbuf: *mut c_void,
    outsize: MPI_Count,
    position: Results,
) -> Answer {
    known(datarep)?;
    let data = inbuf.data()?;
    let signature = datatype::get(inbuf.datatype)?.signature.clone();
    let bytes = inbuf.count as usize * signature.external_bytes();
    checks::buffer("outbuf", outbuf, bytes, false)?;
    let what_to_do = "make the buffer larger: MPI_Pack_external_size";
    let at = step(("outsize", outsize), position, bytes, what_to_do)?;
    let (packed, mut row) = (data.pack(), Vec::with_capacity(bytes));
    let mut rest = &packed[..];
    for _ in 0..inbuf.count {
        signature.write_external(&mut rest, &mut row)?;
    }
    outbuf.cast::<u8>().add(at).copy_from_nonoverlapping(row.as_ptr(), row.len());
    position.put("position", at + bytes)
}

pub unsafe fn unpack_external(
    datarep: *const c_char,
    inbuf: *const c_void,
    insize: MPI_Count,
    position: Results,
    outbuf: UserBuffer,
) -> Answer {
    known(datarep)?;
    let data = outbuf.data()?;
    let signature = datatype::get(outbuf.datatype)?.signature.clone();
    let bytes = outbuf.count as usize * signature.external_bytes();
    checks::buffer("inbuf", inbuf, bytes, false)?;
    let what_to_do = "the packed data has fewer bytes";
    let at = step(("insize", insize), position, bytes, what_to_do)?;
    let mut rest = array("inbuf", inbuf.cast::<u8>().wrapping_add(at), bytes)?;
    let mut row = Vec::with_capacity(data.len());
    for _ in 0..outbuf.count {
        signature.read_external(&mut rest, &mut row);
    }
    data.fill(Payload(&row, &[]));
    position.put("position", at + bytes)
}

/// The current position in the packed buffer, if `bytes` more fit.
unsafe fn step(
    (name, room): (&str, MPI_Count),
    position: Results,
    bytes: usize,
    what_to_do: &str,
) -> Answer<usize> {
    let position = position.get("position")?;
    if position < 0 || room < 0 {
        let text =
            format!("argument position is {position} and {name} {room}; neither is negative");
        return Err(fail(MPI_ERR_ARG, text));
    }
    if position as usize + bytes > room as usize {
        let text = format!(
            "{bytes} bytes at position {position} do not fit into {name} ({room} bytes); \
             {what_to_do}"
        );
        return Err(fail(MPI_ERR_TRUNCATE, text));
    }
    Ok(position as usize)
}
