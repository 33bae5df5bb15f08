//! One access: where it begins, what it moves, and how far it moves the pointers.

use std::io;

use sfm_native::core::Payload;

use super::representation::{from_external, Conversion, Registered, Representation};
use super::view::View;
use super::{agreeing, get, transfer, File};
use crate::checks::{self, put};
use crate::data::Data;
use crate::datatype::{self, Held};
use crate::engine::Outcome;
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::request::{self, Work};

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

/// Data is moved in pieces of about so many bytes where it has to be gathered or converted.
const PIECE: usize = 4 << 20;

/// What an access has moved.
#[derive(Clone, Copy, Default)]
struct Moved {
    in_file: usize,
    in_memory: usize,
}

impl Moved {
    fn add(&mut self, in_file: usize, in_memory: usize) {
        self.in_file += in_file;
        self.in_memory += in_memory;
    }
}

/// The program's memory.
struct Buffer {
    at: *mut c_void,
    count: usize,
    datatype: Held,
    handle: MPI_Datatype,
    data: Data,
}

/// An access whose arguments are right.
struct Ready {
    view: std::sync::Arc<View>,
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
                // Who has nothing to move, because its arguments are wrong, does not keep the others.
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
        put("request", request, request::open(MPI_COMM_SELF, Work::Ended(outcome)))
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
                "{count} items of {} are {bytes} bytes, and no whole number of the view's etypes ({}, \
                 {} bytes)",
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
        let all = || Transfer { file, way: self.way, ready, at }.whole();
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

/// From or to place `at` of the view's data.
struct Transfer<'a> {
    file: &'a File,
    way: Way,
    ready: &'a Ready,
    at: usize,
}

impl Transfer<'_> {
    fn failure(&self, error: io::Error) -> Failure {
        let doing = if self.way == Way::Read { "read from" } else { "write to" };
        self.file.failure(doing, &error)
    }

    /// Move bytes between `row` and place `at` of the view's data.
    fn row(&self, at: usize, row: &mut [u8]) -> Answer<usize> {
        let (file, view) = (&self.file.descriptor, &*self.ready.view);
        let moved = match self.way {
            Way::Read => transfer::read(file, view, at, row),
            Way::Write => transfer::write(file, view, at, row),
        };
        moved.map_err(|error| self.failure(error))
    }

    unsafe fn whole(&self) -> Answer<Moved> {
        if self.ready.bytes == 0 {
            return Ok(Moved::default());
        }
        match &self.ready.view.representation {
            Representation::Native | Representation::Internal => self.plain(),
            Representation::External32 => self.external(),
            Representation::User(one) => {
                let conversion = if self.way == Way::Read { one.read } else { one.write };
                match conversion.is_null() {
                    true => self.plain(),
                    false => self.converted(one, conversion),
                }
            }
        }
    }

    /// As it is in memory.
    unsafe fn plain(&self) -> Answer<Moved> {
        let data = &self.ready.buffer.data;
        let mut moved = Moved::default();
        if let Some(memory) = data.contiguous() {
            let memory = std::slice::from_raw_parts_mut(memory, data.len());
            let done = self.row(self.at, memory)?;
            moved.add(done, done);
            return Ok(moved);
        }
        while moved.in_file < data.len() {
            let from = moved.in_file;
            let part = data.part(from..data.len().min(from + PIECE));
            let mut row = match self.way {
                Way::Read => vec![0; part.len()],
                Way::Write => part.pack(),
            };
            let done = self.row(self.at + from, &mut row)?;
            if self.way == Way::Read {
                part.fill(Payload(&row[..done], &[]));
            }
            moved.add(done, done);
            if done < part.len() {
                break;
            }
        }
        Ok(moved)
    }

    /// Whole items at a time, each converted: `convert` has a row for some of them, whose first is
    /// given, and how many bytes of the row are there; it returns how many that is in memory.
    unsafe fn items(
        &self,
        mut convert: impl FnMut(usize, usize, &mut Vec<u8>, usize) -> Answer<usize>,
    ) -> Answer<Moved> {
        let count = self.ready.buffer.count;
        let each = self.ready.bytes / count;
        let at_once = (PIECE / each).max(1);
        let mut moved = Moved::default();
        for first in (0..count).step_by(at_once) {
            let items = at_once.min(count - first);
            let mut row = vec![0; items * each];
            let mut in_memory = 0;
            if self.way == Way::Write {
                in_memory = convert(first, items, &mut row, items * each)?;
            }
            let done = self.row(self.at + first * each, &mut row)?;
            if self.way == Way::Read {
                in_memory = convert(first, done / each, &mut row, done)?;
            }
            moved.add(done, in_memory);
            if done < row.len() {
                break;
            }
        }
        Ok(moved)
    }

    unsafe fn external(&self) -> Answer<Moved> {
        let Buffer { datatype, data, .. } = &self.ready.buffer;
        let signature = &datatype.signature;
        self.items(|first, items, row, there| {
            let from = first * datatype.size;
            if self.way == Way::Read {
                let here = from_external(signature, &row[..there]);
                data.part(from..data.len()).fill(Payload(&here, &[]));
                return Ok(here.len());
            }
            let here = data.part(from..from + items * datatype.size).pack();
            row.clear();
            let mut rest = &here[..];
            (0..items).try_for_each(|_| signature.write_external(&mut rest, row))?;
            Ok(here.len())
        })
    }

    /// By a function of the program's, which knows whole items only.
    unsafe fn converted(&self, of: &Registered, conversion: Conversion) -> Answer<Moved> {
        let Buffer { at, datatype, handle, .. } = &self.ready.buffer;
        self.items(|first, items, row, _| {
            if items > 0 {
                of.convert(conversion, *at, *handle, items, row.as_mut_ptr(), first)?;
            }
            Ok(items * datatype.size)
        })
    }
}
