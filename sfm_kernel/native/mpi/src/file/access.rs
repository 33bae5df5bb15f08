//! One access: its start, its data, and its effect on the file pointers.

use std::sync::Arc;

use super::moving::{Buffer, Moved, Moving};
use super::view::View;
use super::{agreeing, get, File};
use crate::checks::put;
use crate::data::UserBuffer;
use crate::datatype;
use crate::engine::Outcome;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::request::{self, Partner, Work};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

#[derive(Clone, Copy)]
pub enum Start {
    /// This many etypes after the view's beginning.
    At(MPI_Offset),
    Individual,
    Shared,
    /// At the shared file pointer, process by process in rank order.
    Ordered,
}

#[derive(Clone, Copy)]
pub struct Access {
    pub fh: MPI_File,
    pub direction: Direction,
    pub start: Start,
    pub buffer: UserBuffer,
}

/// An access whose arguments are valid.
struct Ready {
    view: Arc<View>,
    buffer: Buffer,
    /// Bytes of the view's data.
    bytes: usize,
}

impl Access {
    /// # Safety
    /// The memory is valid, and only this call uses it.
    pub unsafe fn perform(&self) -> Answer<MPI_Status> {
        let file = get(self.fh)?;
        file.count_call();
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
                // A process with invalid arguments takes part with 0 bytes, so that the others do
                // not wait for it.
                let bytes = ready.as_ref().map_or(0, |ready| ready.bytes);
                let all = agreeing::all(&file.comm, bytes)?;
                let first = agreeing::from_first(&file.comm, || file.shared.add(all.iter().sum()))?;
                let before: usize = all[..file.comm.rank as usize].iter().sum();
                self.transfer(&file, &ready?, first + before)?
            }
        };
        let mut status = MPI_Status::empty();
        status.set_bytes(moved.in_memory as u64);
        Ok(status)
    }

    /// The blocking form.
    ///
    /// # Safety
    /// As for `perform`; `status` is MPI_STATUS_IGNORE or may be written to.
    pub unsafe fn block(&self, status: *mut MPI_Status) -> Answer {
        self.perform()?.put(status);
        Ok(())
    }

    /// The non-blocking form.
    ///
    /// # Safety
    /// As for `perform`; `request` is null, which is refused, or may be written to.
    pub unsafe fn begin(&self, request: *mut MPI_Request) -> Answer {
        let outcome = Outcome { status: self.perform()?, ..Outcome::of_send() };
        put("request", request, request::open(MPI_COMM_SELF, Partner::Others, Work::Ended(outcome)))
    }

    fn ready(&self, file: &File) -> Answer<Ready> {
        match self.direction {
            Direction::Read => file.must_be_readable()?,
            Direction::Write => file.must_be_writable()?,
        }
        if matches!(self.start, Start::At(_) | Start::Individual) {
            file.must_have_positions()?;
        }
        let UserBuffer { at, count, datatype: handle, .. } = self.buffer;
        let data = self.buffer.data()?;
        let (datatype, count) = (datatype::get(handle)?, count as usize);
        let buffer = Buffer { at: at.cast_mut(), count, datatype, handle, data };
        let view = file.view();
        let bytes = view.representation.in_file(&buffer.datatype)?.bytes(count)?;
        if bytes % view.unit != 0 {
            let text = format!(
                "{count} items of {} are {bytes} bytes, which is not a multiple of the view's \
                etype ({}, {} bytes)",
                buffer.datatype.label(),
                view.etype.label(),
                view.unit
            );
            return Err(fail(MPI_ERR_IO, text));
        }
        Ok(Ready { view, buffer, bytes })
    }

    unsafe fn transfer(&self, file: &File, ready: &Ready, at: usize) -> Answer<Moved> {
        ready.view.check_reach(at, ready.bytes)?;
        let Ready { view, buffer, bytes } = ready;
        let all = || {
            Moving { file, view, direction: self.direction, at, buffer, bytes: *bytes }.perform()
        };
        if !file.is_atomic() || ready.bytes == 0 {
            return all();
        }
        let start = ready.view.position_of(at);
        let (start, end) = match ready.view.is_dense() {
            true => (start, Some(start + ready.bytes as MPI_Offset)),
            false => (ready.view.displacement, None),
        };
        let answer = file.alone(self.direction == Direction::Write, start, end, all);
        answer.map_err(|error| file.failure("lock", &error))?
    }
}
