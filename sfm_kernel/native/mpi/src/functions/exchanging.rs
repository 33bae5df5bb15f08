//! A send and a receive in one call.

use std::sync::Arc;

use super::receiving::{begin, complete, nothing};
use super::sending::gone;
use crate::checks::put;
use crate::comm::{self, Comm};
use crate::data::Data;
use crate::ends;
use crate::engine::{engine, report, About, From, Mode, Outcome, Pattern, To};
use crate::errors::Answer;
use crate::handles::*;
use crate::request::{self, finish, Partner, Work};

/// The destination and the source.
struct Ends {
    comm: Arc<Comm>,
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

    /// The data of both.
    #[allow(clippy::too_many_arguments)] // as many as the call has
    fn data(
        &self,
        sendbuf: *const c_void,
        sendcount: MPI_Count,
        sendtype: MPI_Datatype,
        recvbuf: *mut c_void,
        recvcount: MPI_Count,
        recvtype: MPI_Datatype,
    ) -> Answer<(Data, Data)> {
        let (to, from) = (self.to.is_none(), self.pattern.is_none());
        let out = Data::unless_no_process("sendbuf", sendbuf, sendcount, sendtype, to)?;
        Ok((out, Data::unless_no_process("recvbuf", recvbuf, recvcount, recvtype, from)?))
    }

    /// The data that is sent and then replaced.
    fn replaced_data(
        &self,
        buf: *mut c_void,
        count: MPI_Count,
        datatype: MPI_Datatype,
    ) -> Answer<Data> {
        let no_process = self.to.is_none() && self.pattern.is_none();
        Data::unless_no_process("buf", buf, count, datatype, no_process)
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
                    engine().cancel_receive(&receiving, Outcome::cancelled());
                }
                return Err(failure);
            }
        }
        match (&receiving, &self.pattern) {
            (Some(receiving), Some(pattern)) => {
                let call = || report::receive(&self.comm, pattern);
                let about = About::receiving(ends::from(&self.comm, pattern), &call);
                complete(receiving, about, comm, status)
            }
            _ => finish(&nothing(), comm, status),
        }
    }
}

pub unsafe fn sendrecv(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Answer {
    let ends = Ends::of(comm, dest, sendtag, source, recvtag)?;
    let (out, into) = ends.data(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)?;
    ends.complete(&out, into, comm, status)
}

pub unsafe fn sendrecv_replace(
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Answer {
    let ends = Ends::of(comm, dest, sendtag, source, recvtag)?;
    let into = ends.replaced_data(buf, count, datatype)?;
    let mut copy = into.pack();
    let out = Data::bytes(copy.as_mut_ptr(), copy.len());
    ends.complete(&out, into, comm, status)
}

pub unsafe fn isendrecv(
    sendbuf: *const c_void,
    sendcount: MPI_Count,
    sendtype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: MPI_Count,
    recvtype: MPI_Datatype,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let ends = Ends::of(comm, dest, sendtag, source, recvtag)?;
    let (out, into) = ends.data(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)?;
    let receiving = begin(ends.pattern.as_ref(), into);
    let sending = ends.to.and_then(|to| engine().send(to, Mode::Standard, &out));
    put("request", request, request::open(comm, Partner::Others, Work::after(sending, receiving)))
}

pub unsafe fn isendrecv_replace(
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let ends = Ends::of(comm, dest, sendtag, source, recvtag)?;
    let into = ends.replaced_data(buf, count, datatype)?;
    // The copy first, because the received message may overwrite the same memory at once.
    let sending = ends.to.and_then(|to| engine().send_copy(to, Mode::Standard, &into));
    let receiving = begin(ends.pattern.as_ref(), into);
    put("request", request, request::open(comm, Partner::Others, Work::after(sending, receiving)))
}
