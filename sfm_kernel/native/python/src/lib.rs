//! The Python interface of the core: `sfm_kernel._native`, documented in `_native.pyi`.
//!
//! The folders are named as the Python packages that use them. Each uses only those above it:
//!
//! ```text
//! errors                  raises the exceptions of sfm_kernel.errors
//! host/gil                releases the GIL while a call waits, also when the interpreter ends
//! host/python             Python as the host of the core's calls: signals, the GIL, errors
//! host/signals            calls that run signal handlers while they wait without the GIL
//! host/undisturbed        Python code inside a call, and signals that arrive meanwhile
//! host/location           the line of the program that a call comes from
//! host/variables          whether the program's variables change from call to call
//! observe/observer        reads the segments of other processes
//! observe/binaries        file and line of an address in a compiled program
//! observe/stacks          the frames of other threads
//! observe/native_stack    the addresses of a waiting process's frames
//! observe/main_thread     the line of the program that its main thread is in
//! packet/encode, decode   Python values to packets, and back
//! packet/arrays           NumPy arrays to packets and back, without pickle
//! packet/message          Message, a received packet; `decoded` caches its values
//! packet/template         the template of a receive
//! transport/segment       a process's file in shared memory
//! transport/inbox         the receiving half of an endpoint, and its network thread
//! transport/exchange      Exchange and Link, the transport between machines
//! transport/keys          pairs of keys, and the world's key
//! transport/tcp           the kernel's facts about a connection
//! transport/channel       sends to one peer, through a ring, a link or a local inbox
//! directory/client        asks a directory server, and receives its updates
//! directory/records       Member and JoinRequest, the directory's records
//! directory/table         the members of a world, as a directory server keeps them
//! directory/local         the directory of a world on this machine, or of several; its folders
//! endpoint/calls          Calls, the base class of endpoints, and its hooks in Python
//! endpoint/send, receive  the methods of Calls: send; recv, recv_nb, peek
//! endpoint/search         a receive that waits
//! endpoint/fastcall       methods with the interpreter's vectors of arguments
//! collectives/combining_tree  barriers and small reductions in shared memory
//! collectives/calls       Collectives: barrier and allreduce of a group
//! constants               numbers and names of the core that Python uses too
//! mpi/program, engines    Python around the MPI calls of mpi4py: in any program, in an engine
//! mpi/frames              the program's call that a thread without the GIL is in
//! gateway                 forwards between sites
//! lab                     an emulated wide area network on one machine, for experiments
//! ```

mod constants;
mod errors;
mod gateway;
mod lab;
mod host {
    pub mod gil;
    pub mod location;
    pub mod python;
    pub mod signals;
    pub mod undisturbed;
    pub mod variables;
}
mod packet {
    pub mod arrays;
    pub mod decode;
    mod decoded;
    pub mod encode;
    pub mod message;
    pub mod template;
}
mod directory {
    pub mod client;
    pub mod local;
    pub mod records;
    pub mod table;
}
mod transport {
    pub mod channel;
    pub mod exchange;
    pub mod inbox;
    pub mod keys;
    pub mod segment;
    pub mod tcp;
}
mod endpoint {
    pub mod calls;
    mod fastcall;
    mod names;
    mod receive;
    pub mod search;
    mod send;
}
mod collectives {
    pub mod calls;
    pub mod combining_tree;
}
mod observe {
    pub mod binaries;
    pub mod main_thread;
    pub mod native_handlers;
    pub mod native_stack;
    pub mod observer;
    pub mod stacks;
}
mod mpi {
    pub mod engines;
    mod frames;
    mod interrupts;
    pub mod program;
}

use pyo3::prelude::*;

#[pymodule]
#[pyo3(name = "_native")]
mod native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::collectives::calls::{CollectiveHooks, Collectives, Known, Ledger};
    #[pymodule_export]
    use crate::collectives::combining_tree::PyCombiningTree;
    #[pymodule_export]
    use crate::constants::{Operation, Outcome};
    #[pymodule_export]
    use crate::directory::client::ServerClient;
    #[pymodule_export]
    use crate::directory::local::{
        arena_bytes, check_private, check_site, check_world, clean_worlds, is_alive, make_folder,
        make_root, remove_dead, remove_sites, remove_unused, remove_world, requested_site,
        ring_bytes, root, site_of_host, sites_folder, worlds, PyDirectory, PyFolder, PyLocal,
        PyRemote,
    };
    #[pymodule_export]
    use crate::directory::records::{PyJoinRequest, PyMember};
    #[pymodule_export]
    use crate::directory::table::PyTable;
    #[pymodule_export]
    use crate::endpoint::calls::{CallHooks, Calls};
    #[pymodule_export]
    use crate::gateway::{gateway_key, Gateway};
    #[pymodule_export]
    use crate::host::location::{location_words, set_locator};
    #[pymodule_export]
    use crate::host::python::set_bystanders;
    #[pymodule_export]
    use crate::host::variables::set_variables;
    #[pymodule_export]
    use crate::lab::{open_tun, setns, unshare, LabLink};
    #[pymodule_export]
    use crate::mpi::engines::{refresh_mpi, set_mpi_world};
    #[pymodule_export]
    use crate::mpi::program::{set_mpi, set_mpi_buffering};
    #[pymodule_export]
    use crate::observe::binaries::resolve;
    #[pymodule_export]
    use crate::observe::main_thread::{set_main_line, sleeps};
    #[pymodule_export]
    use crate::observe::native_handlers::native_handlers;
    #[pymodule_export]
    use crate::observe::native_stack::native_stack;
    #[pymodule_export]
    use crate::observe::observer::{judge, Observer};
    #[pymodule_export]
    use crate::observe::stacks::{frame_of, stacks};
    #[pymodule_export]
    use crate::packet::decode::{decode, Region};
    #[pymodule_export]
    use crate::packet::encode::{pack, PyPacket};
    #[pymodule_export]
    use crate::packet::message::Message;
    #[pymodule_export]
    use crate::packet::template::matches;
    #[pymodule_export]
    use crate::transport::channel::Channel;
    #[pymodule_export]
    use crate::transport::exchange::{abandon_connections, Exchange, Link};
    #[pymodule_export]
    use crate::transport::inbox::Inbox;
    #[pymodule_export]
    use crate::transport::keys::{check_key, derived_pair, key_pair, stretched};
    #[pymodule_export]
    use crate::transport::segment::PySegment;
    #[pymodule_export]
    use crate::transport::tcp::{congestion, set_congestion, tcp_info};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::host::gil::install(module)?;
        crate::constants::add_constants(module)?;
        crate::endpoint::calls::add_calls(module)
    }
}
