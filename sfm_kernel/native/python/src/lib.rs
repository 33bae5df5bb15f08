//! What Python sees of the core: `sfm_kernel._native`, documented in `_native.pyi`.

mod arrays;
mod calls;
mod channel;
mod collectives;
mod combining_tree;
mod decode;
mod detached;
mod encode;
mod errors;
mod fastcall;
mod frames;
mod gateway;
mod here;
mod host;
mod inbox;
mod kept;
mod lab;
mod lines;
mod main_thread;
mod message;
mod mpi;
mod net;
mod observer;
mod search;
mod segment;
mod tcp;
mod template;
mod undisturbed;

use pyo3::prelude::*;

#[pymodule]
#[pyo3(name = "_native")]
mod native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::calls::Calls;
    #[pymodule_export]
    use super::channel::Channel;
    #[pymodule_export]
    use super::collectives::{Collectives, Known, Ledger};
    #[pymodule_export]
    use super::combining_tree::PyCombiningTree;
    #[pymodule_export]
    use super::decode::{decode, Region};
    #[pymodule_export]
    use super::encode::{pack, PyPacket};
    #[pymodule_export]
    use super::gateway::Gateway;
    #[pymodule_export]
    use super::here::set_locator;
    #[pymodule_export]
    use super::host::set_bystanders;
    #[pymodule_export]
    use super::inbox::Inbox;
    #[pymodule_export]
    use super::lab::{open_tun, setns, unshare, LabLink};
    #[pymodule_export]
    use super::lines::resolve;
    #[pymodule_export]
    use super::main_thread::set_main_line;
    #[pymodule_export]
    use super::message::Message;
    #[pymodule_export]
    use super::mpi::{refresh_mpi, set_mpi, set_mpi_buffering, set_mpi_world, RaiseInstead};
    #[pymodule_export]
    use super::net::{abandon_connections, knock, Exchange, Link};
    #[pymodule_export]
    use super::observer::{judge, Observer};
    #[pymodule_export]
    use super::segment::PySegment;
    #[pymodule_export]
    use super::tcp::{congestion, set_congestion, tcp_info};
    #[pymodule_export]
    use super::template::matches;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::detached::install(module)?;
        super::calls::add_calls(&module.py().get_type::<Calls>())
    }
}
