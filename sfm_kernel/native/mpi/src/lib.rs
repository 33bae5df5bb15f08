//! MPI over the inboxes of sfm-kernel, for programs in C, C++ and any language that calls C: in
//! MPICH's ABI, so that a program compiled and linked against MPICH runs on it unchanged; and,
//! compiled once more with `cfg(abi)` (../mpi-abi), in the ABI of MPI 5.0.
//!
//! The modules, of which each uses only those above it:
//!
//! ```text
//! handles, table, latest      the ABI: C types, constants, the status; objects by handle
//! errors, classes,
//! errhandlers, checks         failures, their classes, their handlers; checks of arguments
//! sockets, pmi, process       this process's place in the program; another MPI's launcher
//! attributes, info, group, cart, graph, topology, datatype, op   objects as data
//! data, message, counting     the data of messages; those that a probe has taken; counters
//! membership, engine          of a world; moves messages
//! starting, launcher          messages with the launcher
//! host, endpoint              the kinds of programs, and of worlds
//! buffer, comm                buffers of buffered sends; communicators as data
//! object_reductions, ends     a call's arguments in the engine's terms; objects that mpi4py pickles
//! collective, making          the algorithms of collectives; new communicators
//! generalized, objects, request, unfinished   operations that the program has begun, or not ended
//! window, file                memory and files that processes access together
//! world                       the program's beginning and end
//! session, spawning, ports, names   sessions; processes that are started, or met, later
//! raising                     the end of a failed call
//! tool                        the tool information interface
//! functions                   one for each of the standard's; build.rs generates their entries
//! ```

mod attributes;
mod buffer;
mod cart;
mod checks;
mod classes;
mod collective;
mod comm;
mod counting;
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
pub mod host;
mod info;
mod latest;
mod launcher;
mod making;
pub mod membership;
mod message;
mod names;
mod object_reductions;
mod objects;
mod op;
mod pmi;
mod ports;
mod process;
mod raising;
mod request;
mod session;
mod sockets;
mod spawning;
mod starting;
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
    use crate::world;
    use crate::{
        checks, collective, data, datatype, errors, file, functions, raising, tool, window,
    };
    use sfm_endpoint::entry;
    include!(concat!(env!("OUT_DIR"), "/entries.rs"));
}

pub use process::{uid_of, Engines};
pub use world::refresh;

sfm_endpoint::at_load!();

/// Addresses with a meaning such as "no weights". In MPICH's ABI programs refer to them by name, as
/// data; in the standard's they are numbers in its header.
#[allow(non_upper_case_globals)]
mod symbols {
    use std::ffi::c_int;
    use std::sync::atomic::AtomicPtr;

    use crate::handles::{UNWEIGHTED, WEIGHTS_EMPTY};

    // Atomic only because a static must be Sync: C sees a pointer.
    type Pointer = AtomicPtr<c_int>;

    const fn at(address: usize) -> Pointer {
        AtomicPtr::new(std::ptr::without_provenance_mut(address))
    }

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
