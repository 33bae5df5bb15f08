//! Moving bytes between a row in memory and the pieces of a file that a view names.
//!
//! Pieces that touch are one. Small pieces that lie near each other are read together with what is
//! between them, and picked out (R. Thakur, W. Gropp, E. Lusk, Data sieving and collective I/O in
//! ROMIO, Frontiers '99). They are not written so: that would write back what others have changed
//! meanwhile.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::view::View;
use crate::datatype::layout::Visitor;

/// Read the view's data from place `at` on into `row`. Returns how many bytes of it are there:
/// fewer than it has room for where the file ends before.
pub fn read(file: &File, view: &View, at: usize, row: &mut [u8]) -> io::Result<usize> {
    let range = at..at + row.len();
    let mut reading = Pieces::new(Reading { file, row, done: 0, window: Window::default() });
    view.visit(range, &mut reading);
    reading.finish().map(|reading| reading.done)
}

/// Write `row` to the view's data from place `at` on. Returns how many bytes went there: fewer only
/// where the view has no room for any.
pub fn write(file: &File, view: &View, at: usize, row: &[u8]) -> io::Result<usize> {
    let mut writing = Pieces::new(Writing { file, row, done: 0 });
    view.visit(at..at + row.len(), &mut writing);
    writing.finish().map(|writing| writing.done)
}

/// What is done with each piece of the file. True: it was done whole, and the next one may follow.
trait Mover {
    fn piece(&mut self, at: u64, bytes: usize) -> io::Result<bool>;
}

/// Makes one piece of those that touch.
struct Pieces<M> {
    mover: M,
    at: isize,
    bytes: usize,
    goes_on: io::Result<bool>,
}

impl<M: Mover> Pieces<M> {
    fn new(mover: M) -> Pieces<M> {
        Pieces { mover, at: 0, bytes: 0, goes_on: Ok(true) }
    }

    fn flush(&mut self) {
        if self.bytes > 0 && matches!(self.goes_on, Ok(true)) {
            self.goes_on = self.mover.piece(self.at as u64, self.bytes);
        }
    }

    fn finish(mut self) -> io::Result<M> {
        self.flush();
        self.goes_on.map(|_| self.mover)
    }
}

impl<M: Mover> Visitor for Pieces<M> {
    fn run(&mut self, at: isize, bytes: usize) {
        if self.at + self.bytes as isize == at {
            self.bytes += bytes;
            return;
        }
        self.flush();
        (self.at, self.bytes) = (at, bytes);
    }
}

/// Pieces of at least so many bytes are read by themselves: a call of the system costs less than
/// copying that much twice.
const LARGE: usize = 4096;
/// The same of what lies between two.
const NEAR: u64 = 4096;
const WINDOW: usize = 64 << 10;

struct Reading<'a> {
    file: &'a File,
    row: &'a mut [u8],
    done: usize,
    window: Window,
}

/// A part of the file that was read as one.
#[derive(Default)]
struct Window {
    at: u64,
    bytes: Vec<u8>,
    /// The end of the last piece.
    last: u64,
}

impl Mover for Reading<'_> {
    fn piece(&mut self, at: u64, bytes: usize) -> io::Result<bool> {
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
    /// Fill `to` with what is at `at`. Returns how much is there.
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

/// All of `to`, or what the file has.
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
    fn piece(&mut self, at: u64, bytes: usize) -> io::Result<bool> {
        self.file.write_all_at(&self.row[self.done..self.done + bytes], at)?;
        self.done += bytes;
        Ok(true)
    }
}
