//! Files: what the processes of a communicator read and write together (MPI 4.1, chapter 14).
//!
//! Each process has a descriptor of its own, and reads and writes there by position; what they
//! share beyond the file is its shared pointer. A call that moves data is done when it returns, also
//! a non-blocking one and the beginning of a split one, which the standard allows: a local file's
//! data goes from and to the system's memory, and no thread is needed for it.
//!
//! - `amode`, `failures`, `hints`: what a file is opened with, and why that fails
//! - `agreeing`, `opening`: what its processes do together
//! - `view`, `representation`, `sizes`: which bytes of the file its data is, and how they look
//! - `access`, `split`, `pointer`, `locking`: one access, where it begins, who else is at it
//! - `moving`, `transfer`: its data, between memory and a row of bytes, between that and the file

pub mod access;
pub mod agreeing;
mod amode;
pub mod failures;
pub mod hints;
mod locking;
mod moving;
pub mod opening;
mod pointer;
pub mod representation;
mod sizes;
pub mod split;
#[cfg(test)]
mod tests;
mod transfer;
pub mod view;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

pub use amode::Amode;

use crate::comm::Comm;
use crate::errhandlers::Attached;
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::info::Info;
use crate::table::Table;
use pointer::Pointer;
use split::Split;
use view::View;

pub struct File {
    /// A duplicate of what the file was opened on: its processes, with messages of their own.
    pub comm: Comm,
    /// As it was given to MPI_File_open.
    pub name: PathBuf,
    pub amode: Amode,
    pub descriptor: std::fs::File,
    pub errhandler: Attached,
    pub hints: Mutex<Info>,
    /// Every thread's accesses to one file are one whole each: the standard's atomic mode.
    pub is_atomic: AtomicBool,
    alone: Mutex<()>,
    view: RwLock<Arc<View>>,
    /// The individual file pointer: bytes of the view's data before it.
    position: Mutex<usize>,
    shared: Pointer,
    split: Mutex<Option<Split>>,
}

/// The number of a handle, which C sees as a pointer and nobody looks behind: the conversions to
/// and from Fortran's handles leave it as it is.
static FILES: Table<File> = Table::new(0x1000_0000);
/// The handler of MPI_FILE_NULL: of errors without a file, and the first one of each new file.
static WITHOUT_FILE: Attached = Attached::with(MPI_ERRORS_RETURN);

/// A handle for an opened file.
fn open(file: File) -> MPI_File {
    FILES.insert(Arc::new(file)) as MPI_File
}

fn number(file: MPI_File) -> Option<Handle> {
    u32::try_from(file as usize).ok().map(handle)
}

/// The file of a handle; the error says what is wrong with it.
pub fn get(handle: MPI_File) -> Answer<Arc<File>> {
    number(handle).and_then(|number| FILES.get(number)).ok_or_else(|| wrong(handle))
}

/// Take the handle out of use.
fn release(handle: MPI_File) -> Answer<Arc<File>> {
    number(handle).and_then(|number| FILES.release(number)).ok_or_else(|| wrong(handle))
}

#[cold]
fn wrong(handle: MPI_File) -> Failure {
    let text = match handle {
        MPI_FILE_NULL => "the file is MPI_FILE_NULL: MPI_File_open has failed, was not called, or \
                          MPI_File_close was called before"
            .into(),
        _ => format!("{handle:?} is no file, or one that was closed"),
    };
    fail(MPI_ERR_FILE, text)
}

/// Read or set the error handler of a file, or of MPI_FILE_NULL.
pub fn with_errhandler<T>(handle: MPI_File, use_: impl FnOnce(&Attached) -> T) -> Answer<T> {
    if handle == MPI_FILE_NULL {
        return Ok(use_(&WITHOUT_FILE));
    }
    Ok(use_(&get(handle)?.errhandler))
}

/// Who hears of an error of this file; of one that is not open, whoever hears of MPI_FILE_NULL's.
pub fn current_errhandler(handle: usize) -> MPI_Errhandler {
    let file = get(handle as MPI_File);
    file.map_or_else(|_| WITHOUT_FILE.current(), |file| file.errhandler.current())
}

impl File {
    pub fn view(&self) -> Arc<View> {
        self.view.read().expect("no panic under the lock").clone()
    }

    pub fn is_atomic(&self) -> bool {
        self.is_atomic.load(Relaxed)
    }

    /// All begins anew, at its first etype. The shared pointer is moved by one process for all.
    pub fn take_view(&self, view: View) {
        *self.view.write().expect("no panic under the lock") = Arc::new(view);
        *self.position() = 0;
    }

    /// The individual pointer, and no other access with it meanwhile.
    pub fn position(&self) -> MutexGuard<'_, usize> {
        self.position.lock().expect("no panic under the lock")
    }

    /// Where the shared pointer is.
    pub fn shared_position(&self) -> usize {
        self.shared.get()
    }

    pub fn move_shared(&self, position: usize) {
        self.shared.set(position);
    }

    /// Refuse what needs other positions than the shared pointer's in a file that was opened with
    /// MPI_MODE_SEQUENTIAL.
    pub fn must_have_positions(&self) -> Answer {
        if !self.amode.has(MPI_MODE_SEQUENTIAL) {
            return Ok(());
        }
        let text = format!(
            "{:?} was opened with MPI_MODE_SEQUENTIAL, where only the functions with _shared and \
             _ordered in their names read and write; open it without that mode",
            self.name
        );
        Err(fail(MPI_ERR_UNSUPPORTED_OPERATION, text))
    }

    pub fn must_be_writable(&self) -> Answer {
        if !self.amode.has(MPI_MODE_RDONLY) {
            return Ok(());
        }
        let text = format!(
            "{:?} was opened with MPI_MODE_RDONLY, and cannot be changed; open it with \
             MPI_MODE_WRONLY or MPI_MODE_RDWR",
            self.name
        );
        Err(fail(MPI_ERR_READ_ONLY, text))
    }

    fn must_be_readable(&self) -> Answer {
        if !self.amode.has(MPI_MODE_WRONLY) {
            return Ok(());
        }
        let text = format!(
            "{:?} was opened with MPI_MODE_WRONLY, and cannot be read; open it with \
             MPI_MODE_RDONLY or MPI_MODE_RDWR",
            self.name
        );
        Err(fail(MPI_ERR_ACCESS, text))
    }

    /// What the system says when something with this file fails.
    pub fn failure(&self, doing: &str, error: &std::io::Error) -> Failure {
        failures::of(doing, &self.name, error)
    }

    /// The file's size now, in bytes.
    pub fn size(&self) -> Answer<u64> {
        let found = self.descriptor.metadata().map_err(|error| self.failure("look at", &error))?;
        Ok(found.len())
    }
}
