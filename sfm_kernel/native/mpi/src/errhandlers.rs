//! Error handlers: MPI_ERRORS_ARE_FATAL until the program wants another.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use crate::comm;
use crate::errors::{fail, fatal, Answer, On};
use crate::handles::*;
use crate::table::Table;

/// What the program gave to one of the MPI_X_create_errhandler.
#[derive(Clone, Copy)]
pub enum Handler {
    Comm(MPI_Comm_errhandler_function),
    Win(MPI_Win_errhandler_function),
    File(MPI_File_errhandler_function),
    Session(MPI_Session_errhandler_function),
}

static HANDLERS: Table<Handler> = Table::new(0x9400_0000);

/// The handler of one object. It holds a reference to the handle.
pub struct Attached(AtomicHandle);

impl Attached {
    pub const fn new() -> Attached {
        Attached::with(MPI_ERRORS_ARE_FATAL)
    }

    /// With one of the predefined ones.
    pub const fn with(handle: MPI_Errhandler) -> Attached {
        Attached(AtomicHandle::new(handle))
    }

    /// A new communicator inherits.
    pub fn copy(&self) -> Attached {
        let handle = self.0.load(Relaxed);
        HANDLERS.retain(handle);
        Attached(AtomicHandle::new(handle))
    }

    /// The handle, as one more reference for the program, which may free it.
    pub fn get(&self) -> MPI_Errhandler {
        let handle = self.0.load(Relaxed);
        HANDLERS.retain(handle);
        handle
    }

    pub fn set(&self, handle: MPI_Errhandler) -> Answer {
        known(handle)?;
        HANDLERS.retain(handle);
        HANDLERS.release(self.0.swap(handle, Relaxed));
        Ok(())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        HANDLERS.release(*self.0.get_mut());
    }
}

pub fn create(handler: Handler) -> MPI_Errhandler {
    HANDLERS.insert(Arc::new(handler))
}

pub fn free(handle: MPI_Errhandler) -> Answer {
    known(handle)?;
    HANDLERS.release(handle);
    Ok(())
}

fn is_predefined(handle: MPI_Errhandler) -> bool {
    [MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN, MPI_ERRORS_ABORT].contains(&handle)
}

fn known(handle: MPI_Errhandler) -> Answer {
    if is_predefined(handle) || HANDLERS.get(handle).is_some() {
        return Ok(());
    }
    Err(fail(
        MPI_ERR_ERRHANDLER,
        "the error handler is MPI_ERRHANDLER_NULL or was freed; give MPI_ERRORS_ARE_FATAL, \
         MPI_ERRORS_RETURN, or one of MPI_Comm_create_errhandler",
    ))
}

/// Call the handler of the object, or the one for errors that belong to none.
pub fn handle(code: c_int, text: &str, on: Option<On>) {
    let comm = match on {
        Some(On::Comm(handle)) => comm::get(handle).ok().map(|comm| (handle, comm)),
        // These have handlers of their own as soon as they are there.
        Some(On::Win(_) | On::File(_) | On::Session(_)) | None => None,
    };
    let handler = match &comm {
        Some((_, comm)) => comm.errhandler.0.load(Relaxed),
        None => without_object(),
    };
    let on = comm.map(|(handle, _)| handle);
    if handler == MPI_ERRORS_RETURN {
        return;
    }
    match HANDLERS.get(handler).as_deref() {
        Some(Handler::Comm(Some(function))) => {
            let (mut comm, mut code) = (on.unwrap_or(MPI_COMM_SELF), code);
            // SAFETY: the program gave this function for this use; both arguments are ints, and the
            // null ends what it may read beyond them.
            unsafe { function(&mut comm, &mut code, std::ptr::null_mut::<c_void>()) }
        }
        _ => fatal(code, text, on),
    }
}

/// Where errors go that belong to no object. Before version 4 of the standard that was
/// MPI_COMM_WORLD's handler; from then on it is MPI_COMM_SELF's, which wins here once it was set.
fn without_object() -> MPI_Errhandler {
    let of = |comm| comm::get(comm).map_or(MPI_ERRORS_ARE_FATAL, |c| c.errhandler.0.load(Relaxed));
    match of(MPI_COMM_SELF) {
        MPI_ERRORS_ARE_FATAL => of(MPI_COMM_WORLD),
        of_self => of_self,
    }
}
