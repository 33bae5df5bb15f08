//! A send and a receive in one call.

use super::receiving::{begin, complete, nothing};
use super::sending::gone;
use crate::checks::put;
use crate::comm::{self, Comm};
use crate::data::{Data, UserBuffer};
use crate::ends;
use crate::engine::{engine, About, From, Mode, Pattern, To};
use crate::errors::Answer;
use crate::handles::*;
use crate::latest::Used;
use crate::request::{self, finish, Partner, Work};

/// The destination and the source.
struct Ends {
    comm: Used<Comm>,
    to: Option<To>,
    pattern: Option<Pattern>,
}

impl Ends {
    fn of(
        comm: MPI_Comm,
        dest: c_int,
        sendtag: c_int,
        source: c_int,
        recvtag: c_int,
    ) -> Answer<Ends> {
        let comm = comm::get(comm)?;
        let to = ends::to(&comm, dest, sendtag)?;
        let pattern = ends::pattern(&comm, source, recvtag)?;
        Ok(Ends { comm, to, pattern })
    }

    fn data(&self, sendbuf: &UserBuffer, recvbuf: &UserBuffer) -> Answer<(Data, Data)> {
        let out = sendbuf.data_unless_no_process(self.to.is_none())?;
        Ok((out, recvbuf.data_unless_no_process(self.pattern.is_none())?))
    }

    /// The data that is sent and then replaced.
    fn replaced_data(&self, buf: &UserBuffer) -> Answer<Data> {
        buf.data_unless_no_process(self.to.is_none() && self.pattern.is_none())
    }

    unsafe fn complete(
        &self,
        out: &Data,
        into: Data,
        comm: MPI_Comm,
        status: *mut MPI_Status,
    ) -> Answer {
        let receiving = self.pattern.as_ref().map(|pattern| engine().receive(pattern, into));
        let sending = self.to.and_then(|to| engine().send(to, Mode::Standard, out));
        if let Some(sending) = sending {
            if let Err(failure) = gone(&sending, From::One(sending.dest)) {
                // Nothing may arrive any more in memory that is released.
                if let Some(receiving) = receiving {
                    engine().release(&receiving);
                }
                return Err(failure);
            }
        }
        match (&receiving, &self.pattern) {
            (Some(receiving), Some(pattern)) => {
                let call = || comm::shown::receive(&self.comm, pattern);
                let about = About::receiving(ends::from(&self.comm, pattern), &call);
                complete(receiving, about, comm, status)
            }
            _ => finish(&nothing(), comm, status),
        }
    }
}

pub unsafe fn sendrecv(
    sendbuf: UserBuffer,
    dest: c_int,
    sendtag: c_int,
    recvbuf: UserBuffer,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Answer {
    let ends = Ends::of(comm, dest, sendtag, source, recvtag)?;
    let (out, into) = ends.data(&sendbuf, &recvbuf)?;
    ends.complete(&out, into, comm, status)
}

pub unsafe fn sendrecv_replace(
    buf: UserBuffer,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Answer {
    let ends = Ends::of(comm, dest, sendtag, source, recvtag)?;
    let into = ends.replaced_data(&buf)?;
    let mut copy = into.pack();
    let out = Data::bytes(copy.as_mut_ptr(), copy.len());
    ends.complete(&out, into, comm, status)
}

pub unsafe fn isendrecv(
    sendbuf: UserBuffer,
    dest: c_int,
    sendtag: c_int,
    recvbuf: UserBuffer,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let ends = Ends::of(comm, dest, sendtag, source, recvtag)?;
    let (out, into) = ends.data(&sendbuf, &recvbuf)?;
    let receiving = begin(ends.pattern.as_ref(), into);
    let sending = ends.to.and_then(|to| engine().send(to, Mode::Standard, &out));
    put("request", request, request::open(comm, Partner::Others, Work::after(sending, receiving)))
}

pub unsafe fn isendrecv_replace(
    buf: UserBuffer,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let ends = Ends::of(comm, dest, sendtag, source, recvtag)?;
    let into = ends.replaced_data(&buf)?;
    // The copy first, because the received message may overwrite the same memory at once.
    let sending = ends.to.and_then(|to| engine().send_copy(to, Mode::Standard, &into));
    let receiving = begin(ends.pattern.as_ref(), into);
    put("request", request, request::open(comm, Partner::Others, Work::after(sending, receiving)))
}
