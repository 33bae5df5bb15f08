//! Writing to files: the counterpart of reading.

use crate::errors::Answer;
use crate::file::access::{Access, Direction::Write, Start};
use crate::file::split::{self, Kind};
use crate::handles::*;

fn access(
    fh: MPI_File,
    start: Start,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Access {
    Access { fh, direction: Write, start, buf: buf.cast_mut(), count, datatype }
}

pub unsafe fn file_write_at(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::At(offset), buf, count, datatype).block(status)
}

pub unsafe fn file_write_at_all(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::At(offset), buf, count, datatype).block(status)
}

pub unsafe fn file_iwrite_at(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::At(offset), buf, count, datatype).begin(request)
}

pub unsafe fn file_iwrite_at_all(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::At(offset), buf, count, datatype).begin(request)
}

pub unsafe fn file_write_at_all_begin(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Answer {
    split::begin(Kind::AtAll, access(fh, Start::At(offset), buf, count, datatype))
}

pub unsafe fn file_write_at_all_end(
    fh: MPI_File,
    buf: *const c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (Write, Kind::AtAll), buf, status)
}

pub unsafe fn file_write(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::Individual, buf, count, datatype).block(status)
}

pub unsafe fn file_write_all(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::Individual, buf, count, datatype).block(status)
}

pub unsafe fn file_iwrite(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::Individual, buf, count, datatype).begin(request)
}

pub unsafe fn file_iwrite_all(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::Individual, buf, count, datatype).begin(request)
}

pub unsafe fn file_write_all_begin(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Answer {
    split::begin(Kind::All, access(fh, Start::Individual, buf, count, datatype))
}

pub unsafe fn file_write_all_end(
    fh: MPI_File,
    buf: *const c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (Write, Kind::All), buf, status)
}

pub unsafe fn file_write_shared(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::Shared, buf, count, datatype).block(status)
}

pub unsafe fn file_iwrite_shared(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::Shared, buf, count, datatype).begin(request)
}

pub unsafe fn file_write_ordered(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::Ordered, buf, count, datatype).block(status)
}

pub unsafe fn file_write_ordered_begin(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Answer {
    split::begin(Kind::Ordered, access(fh, Start::Ordered, buf, count, datatype))
}

pub unsafe fn file_write_ordered_end(
    fh: MPI_File,
    buf: *const c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (Write, Kind::Ordered), buf, status)
}
