//! Error handlers, classes, codes and strings.

use crate::checks::{put, put_text, text};
use crate::errhandlers::{self, Handler};
use crate::errors::{Answer, On};
use crate::handles::*;
use crate::{classes, comm, file, raising};

pub unsafe fn comm_create_errhandler(
    function: MPI_Comm_errhandler_function,
    errhandler: *mut MPI_Errhandler,
) -> Answer {
    put("errhandler", errhandler, errhandlers::create(Handler::Comm(function)))
}

pub unsafe fn win_create_errhandler(
    function: MPI_Win_errhandler_function,
    errhandler: *mut MPI_Errhandler,
) -> Answer {
    put("errhandler", errhandler, errhandlers::create(Handler::Win(function)))
}

pub unsafe fn file_create_errhandler(
    function: MPI_File_errhandler_function,
    errhandler: *mut MPI_Errhandler,
) -> Answer {
    put("errhandler", errhandler, errhandlers::create(Handler::File(function)))
}

pub unsafe fn session_create_errhandler(
    function: MPI_Session_errhandler_function,
    errhandler: *mut MPI_Errhandler,
) -> Answer {
    put("errhandler", errhandler, errhandlers::create(Handler::Session(function)))
}

pub unsafe fn comm_set_errhandler(comm: MPI_Comm, errhandler: MPI_Errhandler) -> Answer {
    comm::get(comm)?.errhandler.set(errhandler)
}

pub unsafe fn comm_get_errhandler(comm: MPI_Comm, errhandler: *mut MPI_Errhandler) -> Answer {
    put("errhandler", errhandler, comm::get(comm)?.errhandler.get())
}

pub unsafe fn comm_call_errhandler(comm: MPI_Comm, errorcode: c_int) -> Answer {
    comm::get(comm)?;
    raising::call("MPI_Comm_call_errhandler", errorcode, On::Comm(comm));
    Ok(())
}

pub unsafe fn file_set_errhandler(file: MPI_File, errhandler: MPI_Errhandler) -> Answer {
    file::with_errhandler(file, |attached| attached.set(errhandler))?
}

pub unsafe fn file_get_errhandler(file: MPI_File, errhandler: *mut MPI_Errhandler) -> Answer {
    put("errhandler", errhandler, file::with_errhandler(file, |attached| attached.get())?)
}

pub unsafe fn file_call_errhandler(fh: MPI_File, errorcode: c_int) -> Answer {
    file::with_errhandler(fh, |_| ())?;
    raising::call("MPI_File_call_errhandler", errorcode, On::File(fh as usize));
    Ok(())
}

pub unsafe fn errhandler_free(errhandler: *mut MPI_Errhandler) -> Answer {
    errhandlers::free(*errhandler)?;
    *errhandler = MPI_ERRHANDLER_NULL;
    Ok(())
}

pub unsafe fn error_class(errorcode: c_int, errorclass: *mut c_int) -> Answer {
    put("errorclass", errorclass, classes::class(errorcode)?)
}

pub unsafe fn error_string(errorcode: c_int, string: *mut c_char, len: *mut c_int) -> Answer {
    put_text("string", string, MPI_MAX_ERROR_STRING, &raising::string(errorcode)?, len)
}

pub unsafe fn add_error_class(errorclass: *mut c_int) -> Answer {
    put("errorclass", errorclass, classes::add(None)?)
}

pub unsafe fn add_error_code(errorclass: c_int, errorcode: *mut c_int) -> Answer {
    put("errorcode", errorcode, classes::add(Some(errorclass))?)
}

pub unsafe fn add_error_string(errorcode: c_int, string: *const c_char) -> Answer {
    classes::set_text(errorcode, text("string", string)?)
}

pub unsafe fn remove_error_class(errorclass: c_int) -> Answer {
    classes::remove(errorclass, true)
}

pub unsafe fn remove_error_code(errorcode: c_int) -> Answer {
    classes::remove(errorcode, false)
}

pub unsafe fn remove_error_string(errorcode: c_int) -> Answer {
    classes::set_text(errorcode, String::new())
}
