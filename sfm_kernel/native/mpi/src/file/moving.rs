//! Moving the data of one access between memory and the file, as it is or converted.

use std::io;

use sfm_native::core::Payload;

use super::access::Way;
use super::representation::{from_external, Conversion, Registered, Representation};
use super::view::View;
use super::{transfer, File};
use crate::data::Data;
use crate::datatype::Held;
use crate::errors::{Answer, Failure};
use crate::handles::*;

/// Data is moved in pieces of about so many bytes where it has to be gathered or converted.
const PIECE: usize = 4 << 20;

/// What an access has moved.
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

/// The program's memory.
pub struct Buffer {
    pub at: *mut c_void,
    pub count: usize,
    pub datatype: Held,
    pub handle: MPI_Datatype,
    pub data: Data,
}

/// From or to place `at` of the view's data.
pub struct Moving<'a> {
    pub file: &'a File,
    pub view: &'a View,
    pub way: Way,
    pub at: usize,
    pub buffer: &'a Buffer,
    /// As much of the view's data.
    pub bytes: usize,
}

impl Moving<'_> {
    fn failure(&self, error: io::Error) -> Failure {
        let doing = if self.way == Way::Read { "read from" } else { "write to" };
        self.file.failure(doing, &error)
    }

    /// Move bytes between `row` and place `at` of the view's data.
    unsafe fn row(&self, at: usize, row: *mut u8, bytes: usize) -> Answer<usize> {
        use std::slice::{from_raw_parts, from_raw_parts_mut};
        let (file, view) = (&self.file.descriptor, self.view);
        let moved = match self.way {
            Way::Read => transfer::read(file, view, at, from_raw_parts_mut(row, bytes)),
            Way::Write => transfer::write(file, view, at, from_raw_parts(row, bytes)),
        };
        moved.map_err(|error| self.failure(error))
    }

    /// Do it.
    ///
    /// # Safety
    /// The buffer is there, and nobody else uses it.
    pub unsafe fn whole(&self) -> Answer<Moved> {
        if self.bytes == 0 {
            return Ok(Moved::default());
        }
        match &self.view.representation {
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
        let data = &self.buffer.data;
        let mut moved = Moved::default();
        if let Some(memory) = data.contiguous() {
            let done = self.row(self.at, memory, data.len())?;
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
            let done = self.row(self.at + from, row.as_mut_ptr(), row.len())?;
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
        let count = self.buffer.count;
        let each = self.bytes / count;
        let at_once = (PIECE / each).max(1);
        let mut moved = Moved::default();
        for first in (0..count).step_by(at_once) {
            let items = at_once.min(count - first);
            let mut row = vec![0; items * each];
            let mut in_memory = 0;
            if self.way == Way::Write {
                in_memory = convert(first, items, &mut row, items * each)?;
            }
            let done = self.row(self.at + first * each, row.as_mut_ptr(), row.len())?;
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
        let Buffer { datatype, data, .. } = &self.buffer;
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
        let Buffer { at, datatype, handle, .. } = &self.buffer;
        self.items(|first, items, row, _| {
            if items > 0 {
                of.convert(conversion, *at, *handle, items, row.as_mut_ptr(), first)?;
            }
            Ok(items * datatype.size)
        })
    }
}
