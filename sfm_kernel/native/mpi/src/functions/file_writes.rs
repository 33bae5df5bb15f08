//! Writing to files: the counterpart of reading.

use crate::data::UserBuffer;
use crate::errors::Answer;
use crate::file::access::{Access, Direction::Write, Start};
use crate::file::split::{self, Kind};
use crate::handles::*;

fn access(fh: MPI_File, start: Start, buffer: UserBuffer) -> Access {
    Access { fh, direction: Write, start, buffer }
}

pub unsafe fn file_write_at(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: UserBuffer,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::At(offset), buf).block(status)
}

pub unsafe fn file_write_at_all(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: UserBuffer,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::At(offset), buf).block(status)
}

pub unsafe fn file_iwrite_at(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: UserBuffer,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::At(offset), buf).begin(request)
}

pub unsafe fn file_iwrite_at_all(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: UserBuffer,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::At(offset), buf).begin(request)
}

pub unsafe fn file_write_at_all_begin(fh: MPI_File, offset: MPI_Offset, buf: UserBuffer) -> Answer {
    split::begin(Kind::AtAll, access(fh, Start::At(offset), buf))
}

pub unsafe fn file_write_at_all_end(
    fh: MPI_File,
    buf: *const c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (Write, Kind::AtAll), buf, status)
}

pub unsafe fn file_write(fh: MPI_File, buf: UserBuffer, status: *mut MPI_Status) -> Answer {
    access(fh, Start::Individual, buf).block(status)
}

pub unsafe fn file_write_all(fh: MPI_File, buf: UserBuffer, status: *mut MPI_Status) -> Answer {
    access(fh, Start::Individual, buf).block(status)
}

pub unsafe fn file_iwrite(fh: MPI_File, buf: UserBuffer, request: *mut MPI_Request) -> Answer {
    access(fh, Start::Individual, buf).begin(request)
}

pub unsafe fn file_iwrite_all(fh: MPI_File, buf: UserBuffer, request: *mut MPI_Request) -> Answer {
    access(fh, Start::Individual, buf).begin(request)
}

pub unsafe fn file_write_all_begin(fh: MPI_File, buf: UserBuffer) -> Answer {
    split::begin(Kind::All, access(fh, Start::Individual, buf))
}

pub unsafe fn file_write_all_end(
    fh: MPI_File,
    buf: *const c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (Write, Kind::All), buf, status)
}

pub unsafe fn file_write_shared(fh: MPI_File, buf: UserBuffer, status: *mut MPI_Status) -> Answer {
    access(fh, Start::Shared, buf).block(status)
}

pub unsafe fn file_iwrite_shared(
    fh: MPI_File,
    buf: UserBuffer,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::Shared, buf).begin(request)
}

pub unsafe fn file_write_ordered(fh: MPI_File, buf: UserBuffer, status: *mut MPI_Status) -> Answer {
    access(fh, Start::Ordered, buf).block(status)
}

pub unsafe fn file_write_ordered_begin(fh: MPI_File, buf: UserBuffer) -> Answer {
    split::begin(Kind::Ordered, access(fh, Start::Ordered, buf))
}

pub unsafe fn file_write_ordered_end(
    fh: MPI_File,
    buf: *const c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (Write, Kind::Ordered), buf, status)
}
