//! Error handlers: MPI_ERRORS_ARE_FATAL until the program sets another.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use crate::errors::{fail, fatal, Answer, On};
use crate::file;
use crate::handles::*;
use crate::table::Table;
use crate::{classes, comm, session, window};

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

fn known(handle: MPI_Errhandler) -> Answer {
    if is_predefined(handle) || HANDLERS.get(handle).is_some() {
        return Ok(());
    }
    let text = "the error handler is MPI_ERRHANDLER_NULL or was freed; give MPI_ERRORS_ARE_FATAL, \
        MPI_ERRORS_RETURN, or one of MPI_Comm_create_errhandler";
    Err(fail(MPI_ERR_ERRHANDLER, text))
}

/// Call the handler on behalf of a function such as MPI_Comm_call_errhandler.
pub fn call(function: &str, code: c_int, on: On) {
    let class = classes::text(code).unwrap_or_else(|_| format!("error code {code}"));
    handle(code, &format!("{function}: {class}"), Some(on));
}

/// The handler of an object, if the object exists.
fn of(on: On) -> Option<MPI_Errhandler> {
    match on {
        On::Comm(handle) => comm::get(handle).ok().map(|comm| comm.errhandler.current()),
        On::Session(handle) => session::find(handle).map(|session| session.errhandler.current()),
        On::File(handle) => Some(file::current_errhandler(handle)),
        On::Handler(handler) => known(handler).ok().map(|()| handler),
        On::Win(handle) => window::get(handle).ok().map(|window| window.errhandler.current()),
    }
}

/// Call the handler of the object, or the one for errors without an object. Returns the code that
/// the failed call returns: the handler may change it.
pub fn handle(mut code: c_int, text: &str, on: Option<On>) -> c_int {
    let found = on.and_then(of);
    let handler = found.unwrap_or_else(without_object);
    if handler == MPI_ERRORS_RETURN {
        return code;
    }
    let comm = on.filter(|_| found.is_some()).and_then(On::comm);
    let end = std::ptr::null_mut::<c_void>();
    // SAFETY, of each: the program gave this function for this use; it gets a handle and the code,
    // and the null ends the variable arguments.
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
    code
}

/// The handler of errors without an object. Before version 4 of the standard it was
/// MPI_COMM_WORLD's; since then it is MPI_COMM_SELF's, which takes precedence here once it is set.
fn without_object() -> MPI_Errhandler {
    let of = |comm| comm::get(comm).map_or(MPI_ERRORS_ARE_FATAL, |c| c.errhandler.0.load(Relaxed));
    match of(MPI_COMM_SELF) {
        MPI_ERRORS_ARE_FATAL => of(MPI_COMM_WORLD),
        of_self => of_self,
    }
}
