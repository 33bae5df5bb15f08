//! The tool information interface, MPI_T: what observers know of this process, as variables of MPI.
//!
//! ```text
//! registry     handles that tools get: sessions, and what is in them
//! control      control variables: the engine's limits, and facts about it
//! performance  performance variables: what each is, and how it is read
//! sessions     handles of performance variables: started, stopped, set back
//! counting     what is counted while a tool looks, and costs nothing else
//! events       messages, told to a tool when they have been sent or received
//! categories, enums, texts
//! ```
//!
//! Tools may come before MPI_Init and stay after MPI_Finalize; then all that is counted is zero.
//! Errors of this interface are returned, and no error handler hears of them.

pub mod categories;
pub mod control;
pub mod counting;
pub mod enums;
pub mod events;
pub mod performance;
pub mod registry;
pub mod sessions;
pub mod texts;

use std::sync::Mutex;

use crate::comm::{self, Comm};
use crate::errors::{fail, Answer};
use crate::handles::*;

/// How often MPI_T_init_thread was called that MPI_T_finalize has not yet answered.
static USERS: Mutex<u32> = Mutex::new(0);

fn users() -> std::sync::MutexGuard<'static, u32> {
    USERS.lock().expect("no panic under the lock")
}

pub fn start() {
    *users() += 1;
}

/// One user less; after the last one all sessions and handles are gone.
pub fn finish() {
    let mut users = users();
    *users -= 1;
    if *users == 0 {
        sessions::clear();
        control::clear();
        events::clear();
    }
}

/// What each function of this interface does: look whether it was initialized, and return the
/// error's code.
pub fn answer(function: &str, call: impl FnOnce() -> Answer) -> c_int {
    let started = function == "MPI_T_init_thread" || *users() > 0;
    let done = match started {
        true => call(),
        false => {
            let text = "MPI_T_init_thread was not called, or as often MPI_T_finalize";
            Err(fail(MPI_T_ERR_NOT_INITIALIZED, text))
        }
    };
    match done {
        Ok(()) => MPI_SUCCESS,
        Err(mut failure) => {
            if !crate::classes::name(failure.code).starts_with("MPI_T_") {
                failure.code = MPI_T_ERR_INVALID; // of a check that other functions share
            }
            failure.note(function);
            failure.code
        }
    }
}

/// One of a kind of things that are counted from 0.
pub fn nth<'a, T>(all: &'a [T], index: c_int, what: &str) -> Answer<&'a T> {
    usize::try_from(index).ok().and_then(|index| all.get(index)).ok_or_else(|| {
        let text =
            format!("there is no {what} {index}: they are counted from 0 to {}", all.len() - 1);
        fail(MPI_T_ERR_INVALID_INDEX, text)
    })
}

/// Where a thing of this name stands.
pub fn index_of<T>(all: &[T], is_it: impl Fn(&T) -> bool, what: &str, name: &str) -> Answer<c_int> {
    all.iter()
        .position(is_it)
        .map(|index| index as c_int)
        .ok_or_else(|| fail(MPI_T_ERR_INVALID_NAME, format!("no {what} is called {name:?}")))
}

/// The communicator that a handle or a registration is for; None where it is for none.
///
/// # Safety
/// `handle` points to what `bind` says.
pub unsafe fn bound(bind: c_int, handle: *const c_void) -> Answer<Option<std::sync::Arc<Comm>>> {
    if bind == MPI_T_BIND_NO_OBJECT {
        return Ok(None);
    }
    if handle.is_null() {
        let text = "argument obj_handle is a null pointer; give the address of a communicator";
        return Err(fail(MPI_T_ERR_INVALID_HANDLE, text));
    }
    match comm::get(handle.cast::<MPI_Comm>().read()) {
        Ok(comm) => Ok(Some(comm)),
        Err(failure) => Err(fail(MPI_T_ERR_INVALID_HANDLE, failure.text)),
    }
}

/// Everything has been moved on, and somebody looks: what a tool is to hear, and how high levels are.
#[cold]
pub fn look() {
    sessions::look();
    events::tell();
}
