//! Reading from files. Collective reads do the same as the others: each process reads its own data.

use crate::errors::Answer;
use crate::file::access::{Access, Direction::Read, Start};
use crate::file::split::{self, Kind};
use crate::handles::*;

fn access(
    fh: MPI_File,
    start: Start,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Access {
    Access { fh, direction: Read, start, buf, count, datatype }
}

pub unsafe fn file_read_at(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::At(offset), buf, count, datatype).block(status)
}

pub unsafe fn file_read_at_all(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::At(offset), buf, count, datatype).block(status)
}

pub unsafe fn file_iread_at(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::At(offset), buf, count, datatype).begin(request)
}

pub unsafe fn file_iread_at_all(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::At(offset), buf, count, datatype).begin(request)
}

pub unsafe fn file_read_at_all_begin(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Answer {
    split::begin(Kind::AtAll, access(fh, Start::At(offset), buf, count, datatype))
}

pub unsafe fn file_read_at_all_end(
    fh: MPI_File,
    buf: *mut c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (Read, Kind::AtAll), buf, status)
}

pub unsafe fn file_read(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::Individual, buf, count, datatype).block(status)
}

pub unsafe fn file_read_all(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::Individual, buf, count, datatype).block(status)
}

pub unsafe fn file_iread(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::Individual, buf, count, datatype).begin(request)
}

pub unsafe fn file_iread_all(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::Individual, buf, count, datatype).begin(request)
}

pub unsafe fn file_read_all_begin(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Answer {
    split::begin(Kind::All, access(fh, Start::Individual, buf, count, datatype))
}

pub unsafe fn file_read_all_end(fh: MPI_File, buf: *mut c_void, status: *mut MPI_Status) -> Answer {
    split::end(fh, (Read, Kind::All), buf, status)
}

pub unsafe fn file_read_shared(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::Shared, buf, count, datatype).block(status)
}

pub unsafe fn file_iread_shared(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::Shared, buf, count, datatype).begin(request)
}

pub unsafe fn file_read_ordered(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::Ordered, buf, count, datatype).block(status)
}

pub unsafe fn file_read_ordered_begin(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Answer {
    split::begin(Kind::Ordered, access(fh, Start::Ordered, buf, count, datatype))
}

pub unsafe fn file_read_ordered_end(
    fh: MPI_File,
    buf: *mut c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (Read, Kind::Ordered), buf, status)
}
