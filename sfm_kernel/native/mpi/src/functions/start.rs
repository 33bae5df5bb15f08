//! Initialization and finalization.

use crate::checks::put;
use crate::comm::{self, Comm};
use crate::errors::{fail, Answer};
use crate::group::Group;
use crate::handles::*;
use crate::{process, spawning, window, world};

pub unsafe fn init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> Answer {
    start(MPI_THREAD_SINGLE)
}

/// Provides exactly the required level, like MPICH, because some programs end themselves if the two
/// differ.
pub unsafe fn init_thread(
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> Answer {
    start(required.clamp(MPI_THREAD_SINGLE, MPI_THREAD_MULTIPLE))?;
    put("provided", provided, world::thread_level())
}

fn start(thread_level: c_int) -> Answer {
    if world::was_initialized() {
        let text = match world::is_finalized() {
            true => "MPI_Finalize was called before, and MPI cannot be initialized again",
            false => "MPI was initialized before; call MPI_Init once, at the beginning of main",
        };
        return Err(fail(MPI_ERR_OTHER, text));
    }
    world::start()?;
    world::note_main(thread_level);
    let (this, alone) = (process::this(), Group::new(vec![process::this().number()]));
    let everybody = Comm::new(this.generation(), Group::of_world(), this.rank as c_int);
    comm::start(everybody, Comm::new(1, alone, 0));
    spawning::meet_parent();
    Ok(())
}

pub unsafe fn finalize() -> Answer {
    comm::get(MPI_COMM_SELF)?.attributes.clear(MPI_COMM_SELF)?;
    comm::get(MPI_COMM_WORLD)?.attributes.clear(MPI_COMM_WORLD)?;
    window::finish();
    world::finish()?;
    world::leave_if_done();
    Ok(())
}
