//! The buffers of buffered sends: of the process, of a communicator, of a session.

use crate::buffer::{Buffer, PROCESS};
use crate::checks::{count, put, Results};
use crate::comm::{self, Comm};
use crate::data::Data;
use crate::engine::{engine, Outcome, To};
use crate::errors::Answer;
use crate::handles::*;
use crate::request::{self, Partner, Work};
use crate::session;

fn attach(to: &Buffer, buffer: *mut c_void, size: MPI_Count) -> Answer {
    count("size", size)?;
    to.attach(buffer, size)
}

unsafe fn detach(from: &Buffer, buffer_addr: *mut c_void, size: Results) -> Answer {
    let (at, bytes) = from.detach()?;
    put("buffer_addr", buffer_addr.cast(), at)?;
    size.put("size", bytes)
}

/// A request that ends when all earlier buffered messages are sent.
unsafe fn iflush(buffer: &Buffer, comm: MPI_Comm, request: *mut MPI_Request) -> Answer {
    put("request", request, {
        let after = Work::after(buffer.under_way(), Work::Ended(Outcome::of_send()));
        request::open(comm, Partner::Others, after)
    })
}

pub unsafe fn buffer_attach(buffer: *mut c_void, size: MPI_Count) -> Answer {
    attach(&PROCESS, buffer, size)
}

pub unsafe fn buffer_detach(buffer_addr: *mut c_void, size: Results) -> Answer {
    detach(&PROCESS, buffer_addr, size)
}

pub unsafe fn buffer_flush() -> Answer {
    PROCESS.flush()
}

pub unsafe fn buffer_iflush(request: *mut MPI_Request) -> Answer {
    iflush(&PROCESS, MPI_COMM_WORLD, request)
}

pub unsafe fn comm_attach_buffer(comm: MPI_Comm, buffer: *mut c_void, size: MPI_Count) -> Answer {
    attach(&comm::get(comm)?.buffer, buffer, size)
}

pub unsafe fn comm_detach_buffer(
    comm: MPI_Comm,
    buffer_addr: *mut c_void,
    size: Results,
) -> Answer {
    detach(&comm::get(comm)?.buffer, buffer_addr, size)
}

pub unsafe fn comm_flush_buffer(comm: MPI_Comm) -> Answer {
    comm::get(comm)?.buffer.flush()
}

pub unsafe fn comm_iflush_buffer(comm: MPI_Comm, request: *mut MPI_Request) -> Answer {
    iflush(&comm::get(comm)?.buffer, comm, request)
}

pub unsafe fn session_attach_buffer(
    session: MPI_Session,
    buffer: *mut c_void,
    size: MPI_Count,
) -> Answer {
    attach(&session::get(session)?.buffer, buffer, size)
}

pub unsafe fn session_detach_buffer(
    session: MPI_Session,
    buffer_addr: *mut c_void,
    size: Results,
) -> Answer {
    detach(&session::get(session)?.buffer, buffer_addr, size)
}

pub unsafe fn session_flush_buffer(session: MPI_Session) -> Answer {
    session::get(session)?.buffer.flush()
}

pub unsafe fn session_iflush_buffer(session: MPI_Session, request: *mut MPI_Request) -> Answer {
    iflush(&session::get(session)?.buffer, MPI_COMM_SELF, request)
}

/// Send a copy of the data through the communicator's buffer, its session's, or the process's.
///
/// # Safety
/// The data is valid.
pub(super) unsafe fn send(comm: &Comm, to: To, data: &Data) -> Answer {
    engine().advance();
    if comm.buffer.is_attached() {
        return comm.buffer.send(to, data);
    }
    match session::find(comm.session) {
        Some(session) if session.buffer.is_attached() => session.buffer.send(to, data),
        _ => PROCESS.send(to, data),
    }
}
