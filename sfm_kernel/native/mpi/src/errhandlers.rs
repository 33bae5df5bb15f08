//! Error handlers: MPI_ERRORS_ARE_FATAL until the program wants another.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use crate::errors::{fail, fatal, Answer, On};
use crate::file;
use crate::handles::*;
use crate::table::Table;
use crate::{classes, comm, session, window};

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

    /// The handle, without a reference of its own.
    pub fn current(&self) -> MPI_Errhandler {
        self.0.load(Relaxed)
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

/// What the program says with a function such as MPI_Comm_call_errhandler.
pub fn call(function: &str, code: c_int, on: On) {
    let class = classes::text(code).unwrap_or_else(|| format!("error code {code}"));
    handle(code, &format!("{function}: {class}"), Some(on));
}

/// The handler of an object, if that is there.
fn of(on: On) -> Option<MPI_Errhandler> {
    match on {
        On::Comm(handle) => comm::get(handle).ok().map(|comm| comm.errhandler.current()),
        On::Session(handle) => session::find(handle).map(|one| one.errhandler.current()),
        On::File(handle) => Some(file::current_errhandler(handle)),
        On::Handler(handler) => known(handler).ok().map(|()| handler),
        On::Win(handle) => window::get(handle).ok().map(|one| one.errhandler.current()),
    }
}

/// Call the handler of the object, or the one for errors that belong to none.
pub fn handle(code: c_int, text: &str, on: Option<On>) {
    let own = on.and_then(of);
    let handler = own.unwrap_or_else(without_object);
    if handler == MPI_ERRORS_RETURN {
        return;
    }
    let comm = on.filter(|_| own.is_some()).and_then(On::comm);
    let (mut code, end) = (code, std::ptr::null_mut::<c_void>());
    // SAFETY, of each: the program gave this function for this use; it gets a handle and the code,
    // and the null ends what it may read beyond them.
    match (HANDLERS.get(handler).as_deref(), on) {
        (Some(Handler::Comm(Some(function))), _) => unsafe {
            function(&mut comm.unwrap_or(MPI_COMM_SELF), &mut code, end);
        },
        (Some(Handler::Session(Some(function))), Some(On::Session(mut handle))) => unsafe {
            function(&mut handle, &mut code, end);
        },
        (Some(Handler::Session(Some(function))), _) => unsafe {
            function(&mut { MPI_SESSION_NULL }, &mut code, end);
        },
        (Some(Handler::File(Some(function))), Some(On::File(handle))) => unsafe {
            function(&mut (handle as MPI_File), &mut code, end);
        },
        (Some(Handler::Win(Some(function))), Some(On::Win(mut handle))) => unsafe {
            function(&mut handle, &mut code, end);
        },
        _ => fatal(code, text, comm),
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
