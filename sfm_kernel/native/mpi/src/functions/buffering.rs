//! The buffer of buffered sends.

use crate::checks::{count, put, Results};
use crate::engine::Outcome;
use crate::errors::Answer;
use crate::handles::*;
use crate::own_buffer;
use crate::request::{self, Work};

pub unsafe fn buffer_attach(buffer: *mut c_void, size: MPI_Count) -> Answer {
    count("size", size)?;
    own_buffer::attach(buffer, size)
}

pub unsafe fn buffer_detach(buffer_addr: *mut c_void, size: Results) -> Answer {
    let (at, bytes) = own_buffer::detach()?;
    put("buffer_addr", buffer_addr.cast(), at)?;
    size.put("size", bytes)
}

pub unsafe fn buffer_flush() -> Answer {
    own_buffer::flush()
}

/// A request that ends when all have gone that were sent before it.
pub unsafe fn buffer_iflush(request: *mut MPI_Request) -> Answer {
    let work = Work::after(own_buffer::under_way(), Work::Ended(Outcome::of_send()));
    put("request", request, request::open(MPI_COMM_WORLD, work))
}
