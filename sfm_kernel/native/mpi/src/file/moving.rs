//! Moving the data of one access between memory and the file, unchanged or converted.

use std::io;

use sfm_native::core::Payload;

use super::access::Direction;
use super::representation::{from_external, Conversion, Registered, Representation};
use super::view::View;
use super::{transfer, File};
use crate::data::Data;
use crate::datatype::Held;
use crate::errors::{Answer, Failure};
use crate::handles::*;

/// Data that has to be packed or converted is moved in chunks of about this many bytes.
const CHUNK: usize = 4 << 20;

/// The bytes that an access has moved.
#[derive(Clone, Copy, Default)]
pub struct Moved {
    pub in_file: usize,
    pub in_memory: usize,
}

impl Moved {
    fn add(&mut self, in_file: usize, in_memory: usize) {
        self.in_file += in_file;
        self.in_memory += in_memory;
    }
}

/// The program's buffer.
pub struct Buffer {
    pub at: *mut c_void,
    pub count: usize,
    pub datatype: Held,
    pub handle: MPI_Datatype,
    pub data: Data,
}

/// The move of data between the buffer and offset `at` of the view's data.
pub struct Moving<'a> {
    pub file: &'a File,
    pub view: &'a View,
    pub direction: Direction,
    pub at: usize,
    pub buffer: &'a Buffer,
    /// The bytes of the view's data.
    pub bytes: usize,
}

impl Moving<'_> {
    fn failure(&self, error: io::Error) -> Failure {
        let action = if self.direction == Direction::Read { "read from" } else { "write to" };
        self.file.failure(action, &error)
    }

    /// Move `bytes` contiguous bytes between `row` and offset `at` of the view's data.
    unsafe fn row(&self, at: usize, row: *mut u8, bytes: usize) -> Answer<usize> {
        use std::slice::{from_raw_parts, from_raw_parts_mut};
        let (file, view) = (&self.file.descriptor, self.view);
        let moved = match self.direction {
            Direction::Read => transfer::read(file, view, at, from_raw_parts_mut(row, bytes)),
            Direction::Write => transfer::write(file, view, at, from_raw_parts(row, bytes)),
        };
        moved.map_err(|error| self.failure(error))
    }

    /// # Safety
    /// The buffer is valid, and only this call uses it.
    pub unsafe fn perform(&self) -> Answer<Moved> {
        if self.bytes == 0 {
            return Ok(Moved::default());
        }
        match &self.view.representation {
            Representation::Native | Representation::Internal => self.plain(),
            Representation::External32 => self.external(),
            Representation::User(registered) => {
                let conversion = match self.direction {
                    Direction::Read => registered.read,
                    Direction::Write => registered.write,
                };
                match conversion.is_null() {
                    true => self.plain(),
                    false => self.converted(registered, conversion),
                }
            }
        }
    }

    /// Move data without conversion.
    unsafe fn plain(&self) -> Answer<Moved> {
        let data = &self.buffer.data;
        let mut moved = Moved::default();
        if let Some(memory) = data.contiguous() {
            let done = self.row(self.at, memory, data.len())?;
            moved.add(done, done);
            return Ok(moved);
        }
        while moved.in_file < data.len() {
            let from = moved.in_file;
            let chunk = data.slice(from..data.len().min(from + CHUNK));
            let mut row = match self.direction {
                Direction::Read => vec![0; chunk.len()],
                Direction::Write => chunk.pack(),
            };
            let done = self.row(self.at + from, row.as_mut_ptr(), row.len())?;
            if self.direction == Direction::Read {
                chunk.fill(Payload(&row[..done], &[]));
            }
            moved.add(done, done);
            if done < chunk.len() {
                break;
            }
        }
        Ok(moved)
    }

    /// Move complete items, each converted, in chunks. `convert` gets the index of the chunk's
    /// first item, the number of items, the chunk's bytes as they are in the file, and how many of
    /// those bytes are valid; it returns the number of bytes in memory.
    unsafe fn items(
        &self,
        mut convert: impl FnMut(usize, usize, &mut Vec<u8>, usize) -> Answer<usize>,
    ) -> Answer<Moved> {
        let count = self.buffer.count;
        let each = self.bytes / count;
        let at_once = (CHUNK / each).max(1);
        let mut moved = Moved::default();
        for first in (0..count).step_by(at_once) {
            let items = at_once.min(count - first);
            let mut row = vec![0; items * each];
            let mut in_memory = 0;
            if self.direction == Direction::Write {
                in_memory = convert(first, items, &mut row, items * each)?;
            }
            let done = self.row(self.at + first * each, row.as_mut_ptr(), row.len())?;
            if self.direction == Direction::Read {
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
        let Buffer { datatype, data, .. } = &self.buffer;
        let signature = &datatype.signature;
        self.items(|first, items, row, there| {
            let from = first * datatype.size;
            if self.direction == Direction::Read {
                let here = from_external(signature, &row[..there]);
                data.slice(from..data.len()).fill(Payload(&here, &[]));
                return Ok(here.len());
            }
            let here = data.slice(from..from + items * datatype.size).pack();
            row.clear();
            let mut rest = &here[..];
            (0..items).try_for_each(|_| signature.write_external(&mut rest, row))?;
            Ok(here.len())
        })
    }

    /// Convert by a function of the program, which knows only complete items.
    unsafe fn converted(&self, of: &Registered, conversion: Conversion) -> Answer<Moved> {
        let Buffer { at, datatype, handle, .. } = &self.buffer;
        self.items(|first, items, row, _| {
            if items > 0 {
                of.convert(conversion, *at, *handle, items, row.as_mut_ptr(), first)?;
            }
            Ok(items * datatype.size)
        })
    }
}
