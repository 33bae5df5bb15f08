//! MPI over the inboxes of sfm-kernel, for programs in C, C++ and any language that calls C: in
//! MPICH's ABI, so that a program compiled and linked against MPICH runs on it unchanged; and,
//! compiled once more with `cfg(abi)` (../mpi-abi), in the ABI of MPI 5.0.
//!
//! - `handles`, `status`, `table`: the ABI: C types, constants, the status, objects by handle
//! - `errors`, `classes`, `errhandlers`, `checks`: failures and their handlers; checks of arguments
//! - `comm`, `group`, `session`, `topology`, `cart`, `graph`, `attributes`, `info`, `datatype`,
//!   `op`: objects as data
//! - `engine`: moves messages; `data`, `ends`: a call's arguments in the engine's terms
//! - `request`, `message`, `generalized`, `partitioned`, `buffer`: operations that the program has
//!   begun; `objects`, `object_reductions`: messages with objects that mpi4py pickles
//! - `collective`: the algorithms of collectives
//! - `file`: files that processes read and write together
//! - `window`: memory that other processes access directly
//! - `world`, `process`, `endpoint`, `launcher`, `pmi`, `starting`, `sockets`: the program of this
//!   process; `home`, `host`: the kinds of worlds and programs
//! - `unfinished`: operations that are unfinished at the program's end
//! - `spawning`, `ports`, `names`: processes that are started, or met, later
//! - `tool`: the tool information interface
//! - `functions`: one function for each of the standard's; build.rs generates the exported entries

mod attributes;
mod buffer;
mod cart;
mod checks;
mod classes;
mod collective;
mod comm;
mod data;
mod datatype;
mod endpoint;
mod ends;
mod engine;
mod errhandlers;
mod errors;
mod file;
mod functions;
mod generalized;
mod graph;
mod group;
mod handles;
pub mod home;
pub mod host;
mod info;
mod inter;
mod latest;
mod launcher;
mod making;
mod message;
mod names;
mod object_reductions;
mod objects;
mod op;
mod partitioned;
mod pmi;
mod ports;
mod process;
mod request;
mod session;
mod sockets;
mod spawning;
mod starting;
mod status;
mod table;
mod tool;
mod topology;
mod unfinished;
mod window;
mod world;

/// `MPI_X` and `PMPI_X` for every X of standard.txt.
#[allow(non_snake_case)]
mod entries {
    use crate::handles::*;
    use crate::{checks, collective, data, datatype, errors, file, functions, tool, window, world};
    use sfm_endpoint::entry;
    include!(concat!(env!("OUT_DIR"), "/entries.rs"));
}

sfm_endpoint::at_load!();

/// Addresses with a meaning such as "no weights". In MPICH's ABI programs refer to them by name, as
/// data; in the standard's they are numbers in its header.
#[allow(non_upper_case_globals)]
mod symbols {
    use std::ffi::c_int;
    use std::sync::atomic::AtomicPtr;

    // Atomic only because a static must be Sync: C sees a pointer.
    type Pointer = AtomicPtr<c_int>;

    const fn at(address: usize) -> Pointer {
        AtomicPtr::new(std::ptr::without_provenance_mut(address))
    }

    pub const UNWEIGHTED: usize = if cfg!(abi) { 10 } else { 2 };
    pub const WEIGHTS_EMPTY: usize = UNWEIGHTED + 1;

    #[no_mangle]
    pub static MPI_UNWEIGHTED: Pointer = at(UNWEIGHTED);
    #[no_mangle]
    pub static MPI_WEIGHTS_EMPTY: Pointer = at(WEIGHTS_EMPTY);
    #[no_mangle]
    pub static MPI_F_STATUS_IGNORE: Pointer = at(1);
    #[no_mangle]
    pub static MPI_F_STATUSES_IGNORE: Pointer = at(1);
    #[no_mangle]
    pub static MPI_T_PVAR_ALL_HANDLES: Pointer = at(crate::tool::sessions::ALL_HANDLES);
}
