//! Reading from files and writing to them: `file_access_x` implements `MPI_File_read_x` and
//! `MPI_File_write_x`, for which build.rs gives the direction.

use crate::data::UserBuffer;
use crate::errors::Answer;
use crate::file::access::{Access, Direction, Start};
use crate::file::split::{self, SplitKind};
use crate::handles::*;

pub unsafe fn file_access_at(
    direction: Direction,
    fh: MPI_File,
    offset: MPI_Offset,
    buffer: UserBuffer,
    status: *mut MPI_Status,
) -> Answer {
    Access { fh, direction, start: Start::At(offset), buffer }.block(status)
}

pub unsafe fn file_iaccess_at(
    direction: Direction,
    fh: MPI_File,
    offset: MPI_Offset,
    buffer: UserBuffer,
    request: *mut MPI_Request,
) -> Answer {
    Access { fh, direction, start: Start::At(offset), buffer }.begin(request)
}

pub unsafe fn file_access_at_all_begin(
    direction: Direction,
    fh: MPI_File,
    offset: MPI_Offset,
    buffer: UserBuffer,
) -> Answer {
    split::begin(SplitKind::AtAll, Access { fh, direction, start: Start::At(offset), buffer })
}

pub unsafe fn file_access_at_all_end(
    direction: Direction,
    fh: MPI_File,
    buf: *const c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (direction, SplitKind::AtAll), buf, status)
}

pub unsafe fn file_access(
    direction: Direction,
    fh: MPI_File,
    buffer: UserBuffer,
    status: *mut MPI_Status,
) -> Answer {
    Access { fh, direction, start: Start::Individual, buffer }.block(status)
}

pub unsafe fn file_iaccess(
    direction: Direction,
    fh: MPI_File,
    buffer: UserBuffer,
    request: *mut MPI_Request,
) -> Answer {
    Access { fh, direction, start: Start::Individual, buffer }.begin(request)
}

pub unsafe fn file_access_all_begin(
    direction: Direction,
    fh: MPI_File,
    buffer: UserBuffer,
) -> Answer {
    split::begin(SplitKind::All, Access { fh, direction, start: Start::Individual, buffer })
}

pub unsafe fn file_access_all_end(
    direction: Direction,
    fh: MPI_File,
    buf: *const c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (direction, SplitKind::All), buf, status)
}

pub unsafe fn file_access_shared(
    direction: Direction,
    fh: MPI_File,
    buffer: UserBuffer,
    status: *mut MPI_Status,
) -> Answer {
    Access { fh, direction, start: Start::Shared, buffer }.block(status)
}

pub unsafe fn file_iaccess_shared(
    direction: Direction,
    fh: MPI_File,
    buffer: UserBuffer,
    request: *mut MPI_Request,
) -> Answer {
    Access { fh, direction, start: Start::Shared, buffer }.begin(request)
}

pub unsafe fn file_access_ordered(
    direction: Direction,
    fh: MPI_File,
    buffer: UserBuffer,
    status: *mut MPI_Status,
) -> Answer {
    Access { fh, direction, start: Start::Ordered, buffer }.block(status)
}

pub unsafe fn file_access_ordered_begin(
    direction: Direction,
    fh: MPI_File,
    buffer: UserBuffer,
) -> Answer {
    split::begin(SplitKind::Ordered, Access { fh, direction, start: Start::Ordered, buffer })
}

pub unsafe fn file_access_ordered_end(
    direction: Direction,
    fh: MPI_File,
    buf: *const c_void,
    status: *mut MPI_Status,
) -> Answer {
    split::end(fh, (direction, SplitKind::Ordered), buf, status)
}
