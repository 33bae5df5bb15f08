//! Moving bytes between a contiguous row in memory and the runs of a file that a view selects.
//!
//! Adjacent runs are merged. Small runs near each other are read together with the gaps between
//! them, and then picked out (R. Thakur, W. Gropp, E. Lusk, Data sieving and collective I/O in
//! ROMIO, Frontiers '99). They are not written together: that would overwrite the gaps with old
//! bytes, although others may have changed them meanwhile.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::view::View;
use crate::datatype::layout::Visitor;

/// Read the view's data from offset `at` on into `row`. Returns the number of bytes read: fewer
/// than `row` has if the file ends before.
pub fn read(file: &File, view: &View, at: usize, row: &mut [u8]) -> io::Result<usize> {
    let range = at..at + row.len();
    let mut reading = Runs::new(Reading { file, row, done: 0, window: Window::default() });
    view.visit(range, &mut reading);
    reading.finish().map(|reading| reading.done)
}

/// Write `row` to the view's data from offset `at` on. Returns the number of bytes written: fewer
/// only if the view has no data.
pub fn write(file: &File, view: &View, at: usize, row: &[u8]) -> io::Result<usize> {
    let mut writing = Runs::new(Writing { file, row, done: 0 });
    view.visit(at..at + row.len(), &mut writing);
    writing.finish().map(|writing| writing.done)
}

/// Moves each run of the file. True: the run was moved completely, and the next one may follow.
trait Mover {
    fn move_run(&mut self, at: u64, bytes: usize) -> io::Result<bool>;
}

/// Merges adjacent runs.
struct Runs<M> {
    mover: M,
    at: isize,
    bytes: usize,
    goes_on: io::Result<bool>,
}

impl<M: Mover> Runs<M> {
    fn new(mover: M) -> Runs<M> {
        Runs { mover, at: 0, bytes: 0, goes_on: Ok(true) }
    }

    fn flush(&mut self) {
        if self.bytes > 0 && matches!(self.goes_on, Ok(true)) {
            self.goes_on = self.mover.move_run(self.at as u64, self.bytes);
        }
    }

    fn finish(mut self) -> io::Result<M> {
        self.flush();
        self.goes_on.map(|_| self.mover)
    }
}

impl<M: Mover> Visitor for Runs<M> {
    fn run(&mut self, at: isize, bytes: usize) {
        if self.at + self.bytes as isize == at {
            self.bytes += bytes;
            return;
        }
        self.flush();
        (self.at, self.bytes) = (at, bytes);
    }
}

/// Runs of at least this many bytes are read singly: a system call costs less than copying that
/// much twice.
const LARGE: usize = 4096;
/// Runs are read together if the gap between them is smaller than this.
const NEAR: u64 = 4096;
const WINDOW: usize = 64 << 10;

struct Reading<'a> {
    file: &'a File,
    row: &'a mut [u8],
    done: usize,
    window: Window,
}

/// A range of the file that was read by one call.
#[derive(Default)]
struct Window {
    at: u64,
    bytes: Vec<u8>,
    /// The end of the last run.
    last: u64,
}

impl Mover for Reading<'_> {
    fn move_run(&mut self, at: u64, bytes: usize) -> io::Result<bool> {
        let to = &mut self.row[self.done..self.done + bytes];
        let is_near = at.checked_sub(self.window.last).is_some_and(|gap| gap < NEAR);
        let got = match bytes < LARGE && is_near && self.window.last > 0 {
            true => self.window.copy(self.file, at, to)?,
            false => read_at(self.file, at, to)?,
        };
        self.window.last = at + bytes as u64;
        self.done += got;
        Ok(got == bytes)
    }
}

impl Window {
    /// Fill `to` from position `at` of the file. Returns the number of bytes read.
    fn copy(&mut self, file: &File, at: u64, to: &mut [u8]) -> io::Result<usize> {
        let end = self.at + self.bytes.len() as u64;
        if at < self.at || at + to.len() as u64 > end {
            self.bytes.resize(WINDOW, 0);
            let got = read_at(file, at, &mut self.bytes)?;
            self.bytes.truncate(got);
            self.at = at;
        }
        let from = &self.bytes[(at - self.at) as usize..];
        let got = from.len().min(to.len());
        to[..got].copy_from_slice(&from[..got]);
        Ok(got)
    }
}

/// Fill `to`, as far as the file reaches.
fn read_at(file: &File, at: u64, to: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < to.len() {
        match file.read_at(&mut to[got..], at + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

struct Writing<'a> {
    file: &'a File,
    row: &'a [u8],
    done: usize,
}

impl Mover for Writing<'_> {
    fn move_run(&mut self, at: u64, bytes: usize) -> io::Result<bool> {
        self.file.write_all_at(&self.row[self.done..self.done + bytes], at)?;
        self.done += bytes;
        Ok(true)
    }
}
