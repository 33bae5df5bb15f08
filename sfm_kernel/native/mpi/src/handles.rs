//! The C types and constants of the ABI, by their names in C.
//!
//! In MPICH's ABI a handle is an `int`: two bits tell if the object is predefined (01) or made by
//! the program (10), four bits give its kind, and the rest is an index in a table. In the
//! standard's ABI it is a pointer: predefined handles are small numbers, and the lower half of the
//! others is as above.

#![allow(non_camel_case_types)]

pub use std::ffi::{c_char, c_int, c_void};

mod status;

pub use status::{is_requested, MPI_Status};

#[cfg(not(abi))]
pub type Handle = c_int;
#[cfg(not(abi))]
pub type AtomicHandle = std::sync::atomic::AtomicI32;
#[cfg(abi)]
pub type Handle = isize;
#[cfg(abi)]
pub type AtomicHandle = std::sync::atomic::AtomicIsize;

/// The handle of a number (table.rs).
pub const fn handle(number: u32) -> Handle {
    number as Handle
}

/// The number of a handle; None if no handle can be valid with this value.
pub fn number(handle: Handle) -> Option<u32> {
    match cfg!(abi) {
        true => u32::try_from(handle).ok(),
        false => Some(handle as u32),
    }
}

pub type MPI_Comm = Handle;
pub type MPI_Datatype = Handle;
pub type MPI_Errhandler = Handle;
pub type MPI_Group = Handle;
pub type MPI_Info = Handle;
pub type MPI_Message = Handle;
pub type MPI_Op = Handle;
pub type MPI_Request = Handle;
pub type MPI_Session = Handle;
pub type MPI_Win = Handle;
pub type MPI_File = *mut c_void;

pub type MPI_Aint = isize;
pub type MPI_Count = i64;
pub type MPI_Offset = i64;
pub type MPI_Fint = c_int;
pub type MPI_F08_status = MPI_Status;

pub type MPI_User_function =
    Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut MPI_Datatype)>;
pub type MPI_User_function_c =
    Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut MPI_Count, *mut MPI_Datatype)>;

pub type MPI_Comm_errhandler_function =
    Option<unsafe extern "C" fn(*mut MPI_Comm, *mut c_int, ...)>;
pub type MPI_File_errhandler_function =
    Option<unsafe extern "C" fn(*mut MPI_File, *mut c_int, ...)>;
pub type MPI_Win_errhandler_function = MPI_Comm_errhandler_function;
pub type MPI_Session_errhandler_function = MPI_Comm_errhandler_function;
pub type MPI_Handler_function = MPI_Comm_errhandler_function;

/// Communicators, datatypes and windows are all handles, so one type serves for their callbacks.
pub type MPI_Copy_function = Option<
    unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int,
>;
pub type MPI_Comm_copy_attr_function = MPI_Copy_function;
pub type MPI_Type_copy_attr_function = MPI_Copy_function;
pub type MPI_Win_copy_attr_function = MPI_Copy_function;
pub type MPI_Delete_function =
    Option<unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int>;
pub type MPI_Comm_delete_attr_function = MPI_Delete_function;
pub type MPI_Type_delete_attr_function = MPI_Delete_function;
pub type MPI_Win_delete_attr_function = MPI_Delete_function;

pub type MPI_Grequest_query_function =
    Option<unsafe extern "C" fn(*mut c_void, *mut MPI_Status) -> c_int>;
pub type MPI_Grequest_free_function = Option<unsafe extern "C" fn(*mut c_void) -> c_int>;
pub type MPI_Grequest_cancel_function = Option<unsafe extern "C" fn(*mut c_void, c_int) -> c_int>;

/// The parameters: user's buffer, datatype, count, file's buffer, position, extra state.
pub type MPI_Datarep_conversion_function = Option<
    unsafe extern "C" fn(
        *mut c_void,
        MPI_Datatype,
        c_int,
        *mut c_void,
        MPI_Offset,
        *mut c_void,
    ) -> c_int,
>;
pub type MPI_Datarep_conversion_function_c = Option<
    unsafe extern "C" fn(
        *mut c_void,
        MPI_Datatype,
        MPI_Count,
        *mut c_void,
        MPI_Offset,
        *mut c_void,
    ) -> c_int,
>;
pub type MPI_Datarep_extent_function =
    Option<unsafe extern "C" fn(MPI_Datatype, *mut MPI_Aint, *mut c_void) -> c_int>;

// Opaque pointers.
pub type MPI_T_enum = *mut c_void;
pub type MPI_T_cvar_handle = *mut c_void;
pub type MPI_T_pvar_handle = *mut c_void;
pub type MPI_T_pvar_session = *mut c_void;
pub type MPI_T_event_registration = *mut c_void;
pub type MPI_T_event_instance = *mut c_void;
pub type MPI_T_event_cb_function = Option<
    unsafe extern "C" fn(
        MPI_T_event_instance,
        MPI_T_event_registration,
        MPI_T_cb_safety,
        *mut c_void,
    ),
>;
pub type MPI_T_event_dropped_cb_function = Option<
    unsafe extern "C" fn(MPI_Count, MPI_T_event_registration, c_int, MPI_T_cb_safety, *mut c_void),
>;
pub type MPI_T_event_free_cb_function =
    Option<unsafe extern "C" fn(MPI_T_event_registration, MPI_T_cb_safety, *mut c_void)>;
pub type MPI_T_cb_safety = c_int;
pub type MPI_T_source_order = c_int;

pub use constants::*;

#[allow(dead_code)] // the complete table, because tests compare the header with MPICH's
mod constants {
    use super::*;
    include!(concat!(env!("OUT_DIR"), "/constants.rs"));
}

/// The version of the standard: MPI 4.1, or 5.0 with its own ABI.
pub const VERSION: (c_int, c_int) = if cfg!(abi) { (5, 0) } else { (4, 1) };

/// Addresses that stand for a graph without weights, and for no weights (lib.rs exports them).
pub const UNWEIGHTED: usize = if cfg!(abi) { 10 } else { 2 };
pub const WEIGHTS_EMPTY: usize = UNWEIGHTED + 1;

/// The library's name and version.
pub fn library_version() -> String {
    let (major, minor) = VERSION;
    let abi = if cfg!(abi) { "its own" } else { "MPICH's" };
    format!("sfm-kernel, a part of MPI {major}.{minor} in {abi} ABI")
}
