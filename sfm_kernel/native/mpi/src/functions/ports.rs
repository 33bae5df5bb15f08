//! Ports and their names; communicators with the processes that meet there.

use crate::checks::{self, put, put_text, text};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::{comm, ends};
use crate::{names, ports};

pub unsafe fn open_port(_info: MPI_Info, port_name: *mut c_char) -> Answer {
    checks::not_null("port_name", port_name)?;
    put_text("port_name", port_name, MPI_MAX_PORT_NAME, &ports::open()?, std::ptr::null_mut())
}

pub unsafe fn close_port(port_name: *const c_char) -> Answer {
    ports::close(&text("port_name", port_name)?)
}

pub unsafe fn comm_accept(
    port_name: *const c_char,
    _info: MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
) -> Answer {
    meet(port_name, root, comm, newcomm, ports::accept)
}

pub unsafe fn comm_connect(
    port_name: *const c_char,
    _info: MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
) -> Answer {
    meet(port_name, root, comm, newcomm, ports::connect)
}

/// Only the root's port name counts.
unsafe fn meet(
    port_name: *const c_char,
    root: c_int,
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
    socket: impl Fn(&str) -> Answer<std::os::fd::OwnedFd>,
) -> Answer {
    let local = comm::intra(comm)?;
    ends::root(&local, root)?;
    put("newcomm", newcomm, MPI_COMM_NULL)?;
    let (port, socket) = match local.rank == root {
        false => (String::new(), Ok(None)),
        true => match text("port_name", port_name) {
            Ok(port) => (port.clone(), socket(&port).map(Some)),
            Err(failure) => (String::new(), Err(failure)),
        },
    };
    let made = ports::meet(&local, root as usize, &port, socket)?;
    put("newcomm", newcomm, comm::open(made))
}

pub unsafe fn comm_join(fd: c_int, intercomm: *mut MPI_Comm) -> Answer {
    put("intercomm", intercomm, MPI_COMM_NULL)?;
    if fd < 0 {
        return Err(fail(MPI_ERR_ARG, format!("argument fd is {fd}, which is not a socket")));
    }
    match ports::join(&*comm::get(MPI_COMM_SELF)?, fd)? {
        Some(made) => put("intercomm", intercomm, comm::open(made)),
        None => Ok(()),
    }
}

pub unsafe fn publish_name(
    service_name: *const c_char,
    _info: MPI_Info,
    port_name: *const c_char,
) -> Answer {
    names::publish(&text("service_name", service_name)?, &text("port_name", port_name)?)
}

pub unsafe fn unpublish_name(
    service_name: *const c_char,
    _info: MPI_Info,
    port_name: *const c_char,
) -> Answer {
    names::unpublish(&text("service_name", service_name)?, &text("port_name", port_name)?)
}

pub unsafe fn lookup_name(
    service_name: *const c_char,
    _info: MPI_Info,
    port_name: *mut c_char,
) -> Answer {
    let port = names::lookup(&text("service_name", service_name)?)?;
    put_text("port_name", port_name, MPI_MAX_PORT_NAME, &port, std::ptr::null_mut())
}
