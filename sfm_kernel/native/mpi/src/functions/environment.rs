//! Versions, names, clocks, memory.

use crate::checks::{put, put_new, put_text};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::info::{self, Info};
use crate::world;

pub unsafe fn get_version(version: *mut c_int, subversion: *mut c_int) -> Answer {
    put("version", version, VERSION.0)?;
    put("subversion", subversion, VERSION.1)
}

pub unsafe fn get_library_version(version: *mut c_char, resultlen: *mut c_int) -> Answer {
    let text = library_version();
    put_text("version", version, MPI_MAX_LIBRARY_VERSION_STRING, &text, resultlen)
}

pub unsafe fn initialized(flag: *mut c_int) -> Answer {
    put("flag", flag, c_int::from(world::was_initialized()))
}

pub unsafe fn finalized(flag: *mut c_int) -> Answer {
    put("flag", flag, c_int::from(world::is_finalized()))
}

pub unsafe fn get_processor_name(name: *mut c_char, resultlen: *mut c_int) -> Answer {
    let mut host = [0_u8; MPI_MAX_PROCESSOR_NAME as usize];
    if libc::gethostname(host.as_mut_ptr().cast(), host.len() - 1) != 0 {
        host[..9].copy_from_slice(b"localhost");
    }
    let end = host.iter().position(|byte| *byte == 0).unwrap_or(host.len());
    let text = String::from_utf8_lossy(&host[..end]);
    put_text("name", name, MPI_MAX_PROCESSOR_NAME, &text, resultlen)
}

/// The kinds of hardware to which a process can be bound: this library knows none.
pub unsafe fn get_hw_resource_info(hw_info: *mut MPI_Info) -> Answer {
    put_new("hw_info", hw_info, || info::open(Info::default()))
}

/// Seconds since some moment in the past, the same for all processes of this machine.
pub unsafe fn wtime() -> f64 {
    seconds(|time| libc::clock_gettime(libc::CLOCK_MONOTONIC, time))
}

pub unsafe fn wtick() -> f64 {
    seconds(|time| libc::clock_getres(libc::CLOCK_MONOTONIC, time))
}

fn seconds(read: impl FnOnce(*mut libc::timespec) -> c_int) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    read(&mut time); // cannot fail: the clock and the variable exist
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

pub unsafe fn alloc_mem(size: MPI_Aint, _info: MPI_Info, baseptr: *mut c_void) -> Answer {
    if size < 0 {
        return Err(fail(MPI_ERR_ARG, format!("argument size is {size}, less than zero")));
    }
    // Aligned for a cache line; at least one byte, so that a null pointer means failure.
    let mut memory = std::ptr::null_mut();
    if libc::posix_memalign(&mut memory, 64, size.max(1) as usize) != 0 {
        let text = format!("{size} bytes cannot be allocated; free something, or request less");
        return Err(fail(MPI_ERR_NO_MEM, text));
    }
    put("baseptr", baseptr.cast(), memory)
}

pub unsafe fn free_mem(base: *mut c_void) -> Answer {
    libc::free(base);
    Ok(())
}

pub unsafe fn get_address(location: *const c_void, address: *mut MPI_Aint) -> Answer {
    put("address", address, location as MPI_Aint)
}

pub unsafe fn aint_add(base: MPI_Aint, disp: MPI_Aint) -> MPI_Aint {
    base.wrapping_add(disp)
}

pub unsafe fn aint_diff(addr1: MPI_Aint, addr2: MPI_Aint) -> MPI_Aint {
    addr1.wrapping_sub(addr2)
}

/// For profilers, of which this library has none.
pub unsafe fn pcontrol(_level: c_int) -> Answer {
    Ok(())
}

pub unsafe fn query_thread(provided: *mut c_int) -> Answer {
    put("provided", provided, world::thread_level())
}

pub unsafe fn is_thread_main(flag: *mut c_int) -> Answer {
    put("flag", flag, c_int::from(world::is_main_thread()))
}

pub unsafe fn abort(_comm: MPI_Comm, errorcode: c_int) -> Answer {
    world::abort(errorcode)
}
