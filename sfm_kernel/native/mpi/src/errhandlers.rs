//! Error handlers: MPI_ERRORS_ARE_FATAL until the program sets another.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::table::Table;

/// The function that the program gave to an MPI_X_create_errhandler.
#[derive(Clone, Copy)]
pub enum Handler {
    Comm(MPI_Comm_errhandler_function),
    Win(MPI_Win_errhandler_function),
    File(MPI_File_errhandler_function),
    Session(MPI_Session_errhandler_function),
}

static HANDLERS: Table<Handler> = Table::new(0x9400_0000);

/// The error handler of one object. It holds a reference to the handle.
pub struct Attached(AtomicHandle);

impl Attached {
    pub const fn new() -> Attached {
        Attached::with(MPI_ERRORS_ARE_FATAL)
    }

    /// A predefined handler.
    pub const fn with(handle: MPI_Errhandler) -> Attached {
        Attached(AtomicHandle::new(handle))
    }

    /// The handler that a new communicator inherits.
    pub fn copy(&self) -> Attached {
        let handle = self.0.load(Relaxed);
        HANDLERS.retain(handle);
        Attached(AtomicHandle::new(handle))
    }

    /// The handle, without a reference.
    pub fn current(&self) -> MPI_Errhandler {
        self.0.load(Relaxed)
    }

    /// The handle with one more reference for the program, which may free it.
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

/// The function that the program gave; None for a predefined handler.
pub fn function(handle: MPI_Errhandler) -> Option<Handler> {
    HANDLERS.get(handle).map(|handler| *handler)
}

pub fn known(handle: MPI_Errhandler) -> Answer {
    if is_predefined(handle) || HANDLERS.get(handle).is_some() {
        return Ok(());
    }
    let text = "the error handler is MPI_ERRHANDLER_NULL or was freed; give MPI_ERRORS_ARE_FATAL, \
        MPI_ERRORS_RETURN, or one of MPI_Comm_create_errhandler";
    Err(fail(MPI_ERR_ERRHANDLER, text))
}
