//! Reading from files. Collective reads do the same as the others: each process reads its own data.

use crate::data::UserBuffer;
use crate::errors::Answer;
use crate::file::access::{Access, Direction::Read, Start};
use crate::file::split::{self, Kind};
use crate::handles::*;

fn access(fh: MPI_File, start: Start, buffer: UserBuffer) -> Access {
    Access { fh, direction: Read, start, buffer }
}

pub unsafe fn file_read_at(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: UserBuffer,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::At(offset), buf).block(status)
}

pub unsafe fn file_read_at_all(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: UserBuffer,
    status: *mut MPI_Status,
) -> Answer {
    access(fh, Start::At(offset), buf).block(status)
}

pub unsafe fn file_iread_at(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: UserBuffer,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::At(offset), buf).begin(request)
}

pub unsafe fn file_iread_at_all(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: UserBuffer,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::At(offset), buf).begin(request)
}

pub unsafe fn file_read_at_all_begin(fh: MPI_File, offset: MPI_Offset, buf: UserBuffer) -> Answer {
    split::begin(Kind::AtAll, access(fh, Start::At(offset), buf))
}

pub unsafe fn file_read_at_all_end(
    fh: MPI_File,
    buf: *mut c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (Read, Kind::AtAll), buf, status)
}

pub unsafe fn file_read(fh: MPI_File, buf: UserBuffer, status: *mut MPI_Status) -> Answer {
    access(fh, Start::Individual, buf).block(status)
}

pub unsafe fn file_read_all(fh: MPI_File, buf: UserBuffer, status: *mut MPI_Status) -> Answer {
    access(fh, Start::Individual, buf).block(status)
}

pub unsafe fn file_iread(fh: MPI_File, buf: UserBuffer, request: *mut MPI_Request) -> Answer {
    access(fh, Start::Individual, buf).begin(request)
}

pub unsafe fn file_iread_all(fh: MPI_File, buf: UserBuffer, request: *mut MPI_Request) -> Answer {
    access(fh, Start::Individual, buf).begin(request)
}

pub unsafe fn file_read_all_begin(fh: MPI_File, buf: UserBuffer) -> Answer {
    split::begin(Kind::All, access(fh, Start::Individual, buf))
}

pub unsafe fn file_read_all_end(fh: MPI_File, buf: *mut c_void, status: *mut MPI_Status) -> Answer {
    split::end(fh, (Read, Kind::All), buf, status)
}

pub unsafe fn file_read_shared(fh: MPI_File, buf: UserBuffer, status: *mut MPI_Status) -> Answer {
    access(fh, Start::Shared, buf).block(status)
}

pub unsafe fn file_iread_shared(
    fh: MPI_File,
    buf: UserBuffer,
    request: *mut MPI_Request,
) -> Answer {
    access(fh, Start::Shared, buf).begin(request)
}

pub unsafe fn file_read_ordered(fh: MPI_File, buf: UserBuffer, status: *mut MPI_Status) -> Answer {
    access(fh, Start::Ordered, buf).block(status)
}

pub unsafe fn file_read_ordered_begin(fh: MPI_File, buf: UserBuffer) -> Answer {
    split::begin(Kind::Ordered, access(fh, Start::Ordered, buf))
}

pub unsafe fn file_read_ordered_end(
    fh: MPI_File,
    buf: *mut c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (Read, Kind::Ordered), buf, status)
}
