//! Making and freeing windows, and queries about their memory.

use std::sync::Arc;

use crate::checks::{self, put, Results};
use crate::comm::{self, Comm};
use crate::engine::Collective;
use crate::errors::{fail, Answer, On};
use crate::handles::*;
use crate::info::{self, Hints};
use crate::latest::Used;
use crate::window::making::{make, Arguments};
use crate::window::route::Route;
use crate::window::served::service;
use crate::window::{self, Window};

/// The communicator of a call that makes a window.
fn within(comm: MPI_Comm) -> Answer<Used<Comm>> {
    let comm = comm::get(comm)?;
    match comm.remote {
        None => Ok(comm),
        Some(_) => {
            let text = "argument comm is an intercommunicator; a window needs one group \
                (MPI_Intercomm_merge merges the two)";
            Err(fail(MPI_ERR_COMM, text))
        }
    }
}

unsafe fn made(
    flavor: c_int,
    base: *mut c_void,
    (size, disp_unit): (MPI_Aint, MPI_Aint),
    info: MPI_Info,
    comm: MPI_Comm,
    win: *mut MPI_Win,
) -> Answer<Arc<Window>> {
    let comm = within(comm)?;
    put("win", win, MPI_WIN_NULL)?;
    let Ok(bytes) = usize::try_from(size) else {
        return Err(fail(MPI_ERR_SIZE, format!("argument size is {size}, less than zero")));
    };
    if disp_unit <= 0 || disp_unit > c_int::MAX as MPI_Aint {
        let text =
            format!("argument disp_unit is {disp_unit}; give the bytes of an element, 1 or more");
        return Err(fail(MPI_ERR_DISP, text));
    }
    if flavor == MPI_WIN_FLAVOR_CREATE && base.is_null() && bytes > 0 {
        let text = format!("argument base is a null pointer, but the call needs {bytes} bytes");
        return Err(fail(MPI_ERR_BASE, text));
    }
    let hints = Hints::of(window::HINTS, &info::copy_or_empty(info)?);
    let arguments = Arguments { flavor, base: base as usize, size: bytes, disp_unit, hints };
    let window = make(&comm, arguments)?;
    put("win", win, window::open(window.clone()))?;
    window::start(&window)?;
    Ok(window)
}

pub unsafe fn win_create(
    base: *mut c_void,
    size: MPI_Aint,
    disp_unit: MPI_Aint,
    info: MPI_Info,
    comm: MPI_Comm,
    win: *mut MPI_Win,
) -> Answer {
    made(MPI_WIN_FLAVOR_CREATE, base, (size, disp_unit), info, comm, win).map(|_| ())
}

pub unsafe fn win_allocate(
    size: MPI_Aint,
    disp_unit: MPI_Aint,
    info: MPI_Info,
    comm: MPI_Comm,
    baseptr: *mut c_void,
    win: *mut MPI_Win,
) -> Answer {
    allocated(MPI_WIN_FLAVOR_ALLOCATE, (size, disp_unit), info, comm, baseptr, win)
}

pub unsafe fn win_allocate_shared(
    size: MPI_Aint,
    disp_unit: MPI_Aint,
    info: MPI_Info,
    comm: MPI_Comm,
    baseptr: *mut c_void,
    win: *mut MPI_Win,
) -> Answer {
    allocated(MPI_WIN_FLAVOR_SHARED, (size, disp_unit), info, comm, baseptr, win)
}

unsafe fn allocated(
    flavor: c_int,
    size_and_unit: (MPI_Aint, MPI_Aint),
    info: MPI_Info,
    comm: MPI_Comm,
    baseptr: *mut c_void,
    win: *mut MPI_Win,
) -> Answer {
    checks::not_null("baseptr", baseptr)?;
    let window = made(flavor, std::ptr::null_mut(), size_and_unit, info, comm, win)?;
    put("baseptr", baseptr.cast(), window.local.base)
}

pub unsafe fn win_create_dynamic(info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win) -> Answer {
    let nothing = std::ptr::null_mut();
    made(MPI_WIN_FLAVOR_DYNAMIC, nothing, (0, 1), info, comm, win).map(|_| ())
}

/// Called by all processes of the window, which must have ended their epochs.
pub unsafe fn win_free(win: *mut MPI_Win) -> Answer {
    let (handle, window) = (*win, window::get(*win)?);
    let ended = match window.epochs().open() {
        Some(open) => {
            Err(fail(MPI_ERR_RMA_SYNC, format!("{} is still in use: {open}", window.label())))
        }
        None => Ok(()),
    };
    ended
        .and_then(|()| window.attributes.clear(handle))
        .and_then(|()| window.fence(Collective::WinFree))
        .map_err(|failure| failure.on(On::Win(handle)))?;
    service::stop(Some(&window));
    window::release(handle);
    put("win", win, MPI_WIN_NULL)
}

fn dynamic(win: MPI_Win) -> Answer<Used<Window>> {
    let window = window::get(win)?;
    if window.is_dynamic() {
        return Ok(window);
    }
    let text = format!(
        "{} has its memory already; MPI_Win_create_dynamic makes windows to which memory can be \
        attached",
        window.label()
    );
    Err(fail(MPI_ERR_RMA_FLAVOR, text))
}

pub unsafe fn win_attach(win: MPI_Win, base: *mut c_void, size: MPI_Aint) -> Answer {
    let window = dynamic(win)?;
    let Ok(size) = usize::try_from(size) else {
        return Err(fail(MPI_ERR_SIZE, format!("argument size is {size}, less than zero")));
    };
    if base.is_null() && size > 0 {
        let text = format!("argument base is a null pointer, but the call needs {size} bytes");
        return Err(fail(MPI_ERR_BASE, text));
    }
    window.attach(base as usize, size)
}

pub unsafe fn win_detach(win: MPI_Win, base: *const c_void) -> Answer {
    dynamic(win)?.detach(base as usize)
}

/// The address of another process's memory in this one: null, with a size of 0, unless that memory
/// is shared. For MPI_PROC_NULL, the memory of the first process that has any.
pub unsafe fn win_shared_query(
    win: MPI_Win,
    rank: c_int,
    size: *mut MPI_Aint,
    disp_unit: Results,
    baseptr: *mut c_void,
) -> Answer {
    let window = window::get(win)?;
    if window.is_dynamic() {
        let text = format!("{} is dynamic: its memory is not shared", window.label());
        return Err(fail(MPI_ERR_RMA_FLAVOR, text));
    }
    let first = || window.members.iter().position(|member| member.size > 0);
    let rank = match rank {
        MPI_PROC_NULL => first().unwrap_or(0),
        rank => window.checked("rank", rank)?,
    };
    let member = &window.members[rank];
    let (bytes, base) = match window.route(rank) {
        Route::Here(base) => (member.size, base),
        Route::Kernel(_) | Route::Served => (0, 0),
    };
    put("size", size, bytes as MPI_Aint)?;
    disp_unit.put("disp_unit", member.disp_unit as MPI_Count)?;
    put("baseptr", baseptr.cast(), base)
}
