//! Files: opening, closing, sizes, hints, and queries.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use crate::checks::{not_null, put, put_new};
use crate::comm;
use crate::errors::{fail, Answer, On};
use crate::file::{self, agreeing, failures, opening, Amode};
use crate::handles::*;
use crate::{group, info};

unsafe fn name(filename: *const c_char) -> Answer<PathBuf> {
    not_null("filename", filename.cast_mut())?;
    let name = OsStr::from_bytes(CStr::from_ptr(filename).to_bytes());
    if name.is_empty() {
        return Err(fail(MPI_ERR_BAD_FILE, "argument filename is empty"));
    }
    Ok(name.into())
}

pub unsafe fn file_open(
    comm: MPI_Comm,
    filename: *const c_char,
    amode: c_int,
    info: MPI_Info,
    fh: *mut MPI_File,
) -> Answer {
    let comm = comm::intra(comm)?;
    put("fh", fh, MPI_FILE_NULL)?;
    // All processes learn of an error in one's arguments, so that none waits for one that has
    // returned.
    let arguments =
        name(filename).and_then(|name| Ok((name, Amode::of(amode)?, info::copy_or_empty(info)?)));
    put("fh", fh, opening::open(&comm, amode, arguments)?)
}

/// Written data is in the system's memory, visible to all; MPI_File_sync is for the disk.
pub unsafe fn file_close(fh: *mut MPI_File) -> Answer {
    let handle = *fh;
    opening::close(handle).map_err(|failure| failure.on(On::File(handle as usize)))?;
    *fh = MPI_FILE_NULL;
    Ok(())
}

pub unsafe fn file_delete(filename: *const c_char, _info: MPI_Info) -> Answer {
    let name = name(filename)?;
    opening::delete(&name).map_err(|error| failures::of("delete", &name, &error))
}

pub unsafe fn file_get_size(fh: MPI_File, size: *mut MPI_Offset) -> Answer {
    put("size", size, file::get(fh)?.size()? as MPI_Offset)
}

/// The file, and a valid size that is the same at all of its processes.
fn with_size(fh: MPI_File, size: MPI_Offset) -> Answer<std::sync::Arc<file::File>> {
    let file = file::get(fh)?;
    file.must_have_positions()?;
    file.must_be_writable()?;
    agreeing::same(&file.comm, "size", size)?;
    if size < 0 {
        return Err(fail(MPI_ERR_ARG, format!("argument size is {size}, less than zero")));
    }
    Ok(file)
}

pub unsafe fn file_set_size(fh: MPI_File, size: MPI_Offset) -> Answer {
    let file = with_size(fh, size)?;
    opening::by_first(&file, "set the size of", || file.descriptor.set_len(size as u64))
}

pub unsafe fn file_preallocate(fh: MPI_File, size: MPI_Offset) -> Answer {
    let file = with_size(fh, size)?;
    opening::by_first(&file, "allocate room for", || {
        if size == 0 {
            return Ok(());
        }
        match libc::posix_fallocate(file.descriptor.as_raw_fd(), 0, size) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    })
}

pub unsafe fn file_get_group(fh: MPI_File, group: *mut MPI_Group) -> Answer {
    put("group", group, group::open(file::get(fh)?.comm.group.clone()))
}

pub unsafe fn file_get_amode(fh: MPI_File, amode: *mut c_int) -> Answer {
    put("amode", amode, file::get(fh)?.amode.0)
}

pub unsafe fn file_set_info(fh: MPI_File, info: MPI_Info) -> Answer {
    let file = file::get(fh)?;
    file.count_call();
    file.take_hints(&info::copy_or_empty(info)?);
    Ok(())
}

pub unsafe fn file_get_info(fh: MPI_File, info_used: *mut MPI_Info) -> Answer {
    let file = file::get(fh)?;
    put_new("info_used", info_used, || info::open(file.current_hints()))
}

pub unsafe fn file_set_atomicity(fh: MPI_File, flag: c_int) -> Answer {
    let file = file::get(fh)?;
    let flag = flag != 0;
    agreeing::same(&file.comm, "flag", flag.into())?;
    file.is_atomic.store(flag, Relaxed);
    Ok(())
}

pub unsafe fn file_get_atomicity(fh: MPI_File, flag: *mut c_int) -> Answer {
    put("flag", flag, file::get(fh)?.is_atomic().into())
}

/// Write this process's data to the disk. The data of other processes was visible before: the
/// processes of one machine share the system's memory of the file.
pub unsafe fn file_sync(fh: MPI_File) -> Answer {
    let file = file::get(fh)?;
    file.count_call();
    if file.amode.has(MPI_MODE_RDONLY) {
        return Ok(());
    }
    match file.descriptor.sync_data() {
        // A pipe or device (/dev/null) has no disk.
        Err(error) if error.raw_os_error() != Some(libc::EINVAL) => {
            Err(file.failure("write to the disk", &error))
        }
        _ => Ok(()),
    }
}
