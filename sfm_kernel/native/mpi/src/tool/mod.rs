//! The tool information interface, MPI_T: the facts that observers see of this process, as
//! variables of MPI.
//!
//! ```text
//! registry     handles for tools: sessions, and their contents
//! control      control variables: the engine's limits, and constants
//! performance  performance variables: their descriptions, and how each is read
//! sessions     handles of performance variables: start, stop, reset
//! events       callbacks for messages that were sent or received
//! categories, enums, texts
//! ```
//!
//! Tools may start before MPI_Init and remain after MPI_Finalize; then all counters are zero.
//! Errors of this interface are returned, and no error handler is called.

pub mod categories;
pub mod control;
pub mod enums;
pub mod events;
pub mod performance;
pub mod registry;
pub mod sessions;
pub mod texts;

use std::sync::{Arc, Mutex};

use sfm_native::sync::lock;

use crate::comm::{self, Comm};
use crate::counting::Tools;
use crate::errors::{fail, Answer};
use crate::handles::*;

/// Calls of MPI_T_init_thread that MPI_T_finalize has not matched yet.
static USERS: Mutex<u32> = Mutex::new(0);

fn users() -> std::sync::MutexGuard<'static, u32> {
    lock(&USERS)
}

pub fn start() {
    *users() += 1;
}

/// Match one MPI_T_init_thread; the last call removes all sessions and handles.
pub fn finish() {
    let mut users = users();
    *users -= 1;
    if *users == 0 {
        sessions::clear();
        control::clear();
        events::clear();
    }
}

/// Run a function of this interface: check that it was initialized, and return the error code.
pub fn answer(function: &str, call: impl FnOnce() -> Answer) -> c_int {
    let started = function == "MPI_T_init_thread" || *users() > 0;
    let done = match started {
        true => call(),
        false => {
            let text = "MPI_T_init_thread was not called, or MPI_T_finalize has matched each call";
            Err(fail(MPI_T_ERR_NOT_INITIALIZED, text))
        }
    };
    match done {
        Ok(()) => MPI_SUCCESS,
        Err(mut failure) => {
            if !crate::classes::name(failure.code).starts_with("MPI_T_") {
                failure.code = MPI_T_ERR_INVALID; // a check shared with other functions has failed
            }
            failure.note(function);
            failure.code
        }
    }
}

/// The entry with this index, counted from 0.
pub fn nth<'a, T>(all: &'a [T], index: c_int, kind: &str) -> Answer<&'a T> {
    usize::try_from(index).ok().and_then(|index| all.get(index)).ok_or_else(|| {
        let text = format!("there is no {kind} {index}: indices are 0 to {}", all.len() - 1);
        fail(MPI_T_ERR_INVALID_INDEX, text)
    })
}

/// The index of the entry with this name.
pub fn index_of<T>(all: &[T], is_it: impl Fn(&T) -> bool, kind: &str, name: &str) -> Answer<c_int> {
    all.iter()
        .position(is_it)
        .map(|index| index as c_int)
        .ok_or_else(|| fail(MPI_T_ERR_INVALID_NAME, format!("no {kind} is called {name:?}")))
}

/// The communicator of a handle or a registration; None without one.
///
/// # Safety
/// `handle` points to an object of the kind `bind`.
pub unsafe fn bound(bind: c_int, handle: *const c_void) -> Answer<Option<Arc<Comm>>> {
    if bind == MPI_T_BIND_NO_OBJECT {
        return Ok(None);
    }
    if handle.is_null() {
        let text = "argument obj_handle is a null pointer; give the address of a communicator";
        return Err(fail(MPI_T_ERR_INVALID_HANDLE, text));
    }
    match comm::get(handle.cast::<MPI_Comm>().read()) {
        Ok(comm) => Ok(Some(Arc::clone(&comm))),
        Err(failure) => Err(fail(MPI_T_ERR_INVALID_HANDLE, failure.to_string())),
    }
}

static TOOLS: Tools =
    Tools { happened: events::raise, update, update_high_water: sessions::update_high_water };

/// Called by `advance` while a tool needs the counters: update high-water marks, and deliver
/// events.
#[cold]
fn update() {
    sessions::update_high_water();
    events::deliver();
}
