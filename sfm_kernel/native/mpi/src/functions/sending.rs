//! Sends in all modes: blocking, non-blocking, and persistent.

use std::sync::Arc;

use crate::checks::put;
use crate::comm::{self, Comm};
use crate::data::{Data, UserBuffer};
use crate::ends;
use crate::engine::{self, engine, limits, About, Collective, From, Mode, Outcome, Sending, To};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::latest::Used;
use crate::process::named;
use crate::request::{self, Partner, Work};

/// The mode of a send. Ready mode is the standard one: the program promises that the receive is
/// posted, which has no advantage in this library.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    Standard,
    Synchronous,
    /// The message is copied into the buffer that the program has attached.
    Buffered,
}

struct Arguments {
    data: Data,
    to: Option<To>,
    /// As the program has given them.
    comm: Used<Comm>,
    dest: c_int,
    count: MPI_Count,
}

unsafe fn arguments(buf: UserBuffer, dest: c_int, tag: c_int, comm: MPI_Comm) -> Answer<Arguments> {
    let comm = comm::get(comm)?;
    let to = ends::to(&comm, dest, tag)?;
    let data = buf.data_unless_no_process(to.is_none())?;
    Ok(Arguments { data, to, comm, dest, count: buf.count })
}

impl Arguments {
    fn partner(&self) -> Partner {
        self.to.map_or(Partner::Others, |to| Partner::To(self.dest, to.tag))
    }

    unsafe fn begin(&self, mode: SendMode) -> Answer<Work> {
        begin(&self.comm, &self.data, self.to, mode)
    }

    unsafe fn complete(&self, mode: SendMode) -> Answer {
        let Work::Sending(sending) = self.begin(mode)? else { return Ok(()) };
        let tag = self.to.map_or(MPI_ANY_TAG, |to| to.tag);
        let call = || comm::shown::send(&self.comm, self.dest, tag, self.count, sending.dest);
        gone(&sending, About::sending(From::One(sending.dest), &call))
    }
}

/// Wait until it is sent.
pub(super) fn gone<'a>(sending: &Sending, about: impl Into<About<'a>>) -> Answer {
    if let Err(failure) = engine().wait(about, || sending.end.is_done()) {
        sending.keep(); // it is still sent, although the memory is the program's again
        return Err(failure);
    }
    match sending.end.get().map_or(MPI_SUCCESS, |outcome| outcome.code) {
        MPI_SUCCESS => Ok(()),
        code => {
            Err(fail(code, format!("{} has ended; its own output says why", named(sending.dest))))
        }
    }
}

pub unsafe fn send(
    mode: SendMode,
    buf: UserBuffer,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Answer {
    arguments(buf, dest, tag, comm)?.complete(mode)
}

pub unsafe fn isend(
    mode: SendMode,
    buf: UserBuffer,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let arguments = arguments(buf, dest, tag, comm)?;
    let (partner, work) = (arguments.partner(), arguments.begin(mode)?);
    let site = arguments.to.map_or_else(engine::site, |to| to.site());
    put("request", request, request::open_at(site, comm, partner, work))
}

pub unsafe fn send_init(
    mode: SendMode,
    buf: UserBuffer,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let arguments = arguments(buf, dest, tag, comm)?;
    let (partner, on) = (arguments.partner(), Arc::clone(&arguments.comm));
    let Arguments { data, to, .. } = arguments;
    // SAFETY: the program promises that the memory is valid whenever it starts the request.
    let start = Box::new(move || unsafe {
        let to = to.map(|to| To { mark: engine::site(), what: Collective::Message, ..to });
        begin(&on, &data, to, mode)
    });
    put("request", request, request::persistent(comm, partner, start))
}

unsafe fn begin(comm: &Comm, data: &Data, to: Option<To>, mode: SendMode) -> Answer<Work> {
    let Some(to) = to else { return Ok(Work::Ended(Outcome::of_send())) };
    let begun = match mode {
        SendMode::Standard if limits::BUFFERING.get() > 0 => {
            engine().send(to, Mode::Standard, data)
        }
        SendMode::Standard | SendMode::Synchronous => engine().send(to, Mode::Synchronous, data),
        SendMode::Buffered => {
            super::buffering::send(comm, to, data)?;
            None
        }
    };
    Ok(begun.map_or(Work::Ended(Outcome::of_send()), Work::Sending))
}
