//! One access: where it begins, what it moves, and how far it moves the pointers.

use std::sync::Arc;

use super::moving::{Buffer, Moved, Moving};
use super::view::View;
use super::{agreeing, get, File};
use crate::checks::{self, put};
use crate::data::Data;
use crate::datatype;
use crate::engine::Outcome;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::request::{self, Partner, Work};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Read,
    Write,
}

/// Where an access begins.
#[derive(Clone, Copy)]
pub enum Start {
    /// So many etypes after the view's beginning.
    At(MPI_Offset),
    Individual,
    Shared,
    /// At the shared pointer, process by process in the order of their ranks.
    Ordered,
}

/// What one call moves.
#[derive(Clone, Copy)]
pub struct Access {
    pub fh: MPI_File,
    pub way: Way,
    pub start: Start,
    pub buf: *mut c_void,
    pub count: MPI_Count,
    pub datatype: MPI_Datatype,
}

/// An access whose arguments are right.
struct Ready {
    view: Arc<View>,
    buffer: Buffer,
    /// Of the view's data.
    bytes: usize,
}

impl Access {
    /// Do it.
    ///
    /// # Safety
    /// The memory is there, and nobody else uses it.
    pub unsafe fn perform(&self) -> Answer<MPI_Status> {
        let file = get(self.fh)?;
        let ready = self.ready(&file);
        let moved = match self.start {
            Start::At(offset) => {
                let ready = ready?;
                self.transfer(&file, &ready, ready.view.bytes_to(offset)?)?
            }
            Start::Individual => {
                let ready = ready?;
                let mut position = file.position();
                let moved = self.transfer(&file, &ready, *position)?;
                *position += moved.in_file;
                moved
            }
            Start::Shared => {
                let ready = ready?;
                let at = file.shared.add(ready.bytes);
                self.transfer(&file, &ready, at)?
            }
            Start::Ordered => {
                // Who has nothing to move, because its arguments are wrong, keeps nobody waiting.
                let own = ready.as_ref().map_or(0, |ready| ready.bytes);
                let all = agreeing::all(&file.comm, own)?;
                let first = agreeing::from_first(&file.comm, || file.shared.add(all.iter().sum()))?;
                let before: usize = all[..file.comm.rank as usize].iter().sum();
                self.transfer(&file, &ready?, first + before)?
            }
        };
        let mut status = MPI_Status::empty();
        status.set_bytes(moved.in_memory as u64);
        Ok(status)
    }

    /// For a blocking call.
    ///
    /// # Safety
    /// As of `perform`; `status` is MPI_STATUS_IGNORE or a place for one.
    pub unsafe fn block(&self, status: *mut MPI_Status) -> Answer {
        self.perform()?.put(status);
        Ok(())
    }

    /// For a non-blocking one.
    ///
    /// # Safety
    /// As of `perform`; `request` is null, which is refused, or a place for one.
    pub unsafe fn begin(&self, request: *mut MPI_Request) -> Answer {
        checks::place("request", request)?;
        let outcome = Outcome { status: self.perform()?, ..Outcome::of_send() };
        put("request", request, request::open(MPI_COMM_SELF, Partner::Others, Work::Ended(outcome)))
    }

    fn ready(&self, file: &File) -> Answer<Ready> {
        match self.way {
            Way::Read => file.must_be_readable()?,
            Way::Write => file.must_be_writable()?,
        }
        if matches!(self.start, Start::At(_) | Start::Individual) {
            file.must_have_positions()?;
        }
        let data = Data::of("buf", self.buf, self.count, self.datatype)?;
        let datatype = datatype::get(self.datatype)?;
        let count = self.count as usize;
        let buffer = Buffer { at: self.buf, count, datatype, handle: self.datatype, data };
        let view = file.view();
        let bytes = view.representation.in_file(&buffer.datatype)?.bytes(count)?;
        if bytes % view.unit != 0 {
            let text = format!(
                "{count} items of {} are {bytes} bytes, and no whole number of the view's etypes \
                 ({}, {} bytes)",
                buffer.datatype.told(),
                view.etype.told(),
                view.unit
            );
            return Err(fail(MPI_ERR_IO, text));
        }
        Ok(Ready { view, buffer, bytes })
    }

    unsafe fn transfer(&self, file: &File, ready: &Ready, at: usize) -> Answer<Moved> {
        ready.view.check_reach(at, ready.bytes)?;
        let Ready { view, buffer, bytes } = ready;
        let all = || Moving { file, view, way: self.way, at, buffer, bytes: *bytes }.whole();
        if !file.is_atomic() || ready.bytes == 0 {
            return all();
        }
        let start = ready.view.place(at);
        let (start, end) = match ready.view.is_dense() {
            true => (start, Some(start + ready.bytes as MPI_Offset)),
            false => (ready.view.displacement, None),
        };
        let answer = file.alone(self.way == Way::Write, start, end, all);
        answer.map_err(|error| file.failure("lock", &error))?
    }
}
