//! A send and a receive in one call.

use std::sync::Arc;

use super::receiving::{begin, nothing, whole};
use super::sending::gone;
use crate::checks::put;
use crate::comm::{self, Comm};
use crate::data::Data;
use crate::ends;
use crate::engine::{engine, told, About, From, Mode, Outcome, To, Wanted};
use crate::errors::Answer;
use crate::handles::*;
use crate::request::{self, finish, Partner, Work};

/// Where the one goes and where the other comes from.
struct Ends {
    comm: Arc<Comm>,
    to: Option<To>,
    wanted: Option<Wanted>,
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
        let wanted = ends::wanted(&comm, source, recvtag)?;
        Ok(Ends { comm, to, wanted })
    }

    /// The data of both.
    #[allow(clippy::too_many_arguments)] // as many as the call itself has
    fn data(
        &self,
        sendbuf: *const c_void,
        sendcount: MPI_Count,
        sendtype: MPI_Datatype,
        recvbuf: *mut c_void,
        recvcount: MPI_Count,
        recvtype: MPI_Datatype,
    ) -> Answer<(Data, Data)> {
        let (to, from) = (self.to.is_none(), self.wanted.is_none());
        let out = Data::unless_nobody("sendbuf", sendbuf, sendcount, sendtype, to)?;
        Ok((out, Data::unless_nobody("recvbuf", recvbuf, recvcount, recvtype, from)?))
    }

    /// The data that is sent and then replaced.
    fn one(&self, buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype) -> Answer<Data> {
        let nobody = self.to.is_none() && self.wanted.is_none();
        Data::unless_nobody("buf", buf, count, datatype, nobody)
    }

    unsafe fn whole(
        &self,
        out: &Data,
        into: Data,
        comm: MPI_Comm,
        status: *mut MPI_Status,
    ) -> Answer {
        let receiving = self.wanted.as_ref().map(|wanted| engine().receive(wanted, into));
        let sending = self.to.and_then(|to| engine().send(to, Mode::Standard, out));
        if let Some(sending) = sending {
            if let Err(failure) = gone(&sending, From::One(sending.dest)) {
                // Nothing may come any more into memory that is given back.
                if let Some(receiving) = receiving {
                    engine().take_back(&receiving, Outcome::cancelled());
                }
                return Err(failure);
            }
        }
        match (&receiving, &self.wanted) {
            (Some(receiving), Some(wanted)) => {
                let call = || told::receive(&self.comm, wanted);
                let about = About::receiving(ends::from(&self.comm, wanted), &call);
                whole(receiving, about, comm, status)
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
    ends.whole(&out, into, comm, status)
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
    let into = ends.one(buf, count, datatype)?;
    let mut copy = into.pack();
    let out = Data::bytes(copy.as_mut_ptr(), copy.len());
    ends.whole(&out, into, comm, status)
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
    let receiving = begin(ends.wanted.as_ref(), into);
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
    let into = ends.one(buf, count, datatype)?;
    // The copy first: what is received may come at once, into the same memory.
    let sending = ends.to.and_then(|to| engine().send_copy(to, Mode::Standard, &into));
    let receiving = begin(ends.wanted.as_ref(), into);
    put("request", request, request::open(comm, Partner::Others, Work::after(sending, receiving)))
}
