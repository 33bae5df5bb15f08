//! Files that the processes of a communicator read and write together (MPI 4.1, chapter 14).
//!
//! Each process has a descriptor of its own, and reads and writes at explicit positions; beyond the
//! file itself the processes share only its shared file pointer. A call that moves data is complete
//! when it returns, even a non-blocking call or the beginning of a split collective, which the
//! standard allows: a local file's data goes to and from the system's memory, which needs no
//! thread.
//!
//! - `amode`, `failures`, `hints`: the arguments of opening a file, and why opening fails
//! - `agreeing`, `opening`, `tally`: the collective calls
//! - `view`, `representation`, `sizes`: the bytes of the file that are its data, and their format
//! - `access`, `split`, `pointer`, `locking`: one access, its start, and the exclusion of others
//! - `moving`, `transfer`: its data, between memory and contiguous bytes, and between those and the
//!   file

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
pub mod tally;
#[cfg(test)]
mod tests;
mod transfer;
pub mod view;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

pub use amode::Amode;

use sfm_native::sync::lock;

use crate::comm::Comm;
use crate::errhandlers::Attached;
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::info::Info;
use crate::table::Table;
use pointer::Pointer;
use split::Split;
use tally::Tally;
use view::View;

pub struct File {
    /// A duplicate of the communicator that opened the file, with a context of its own.
    pub comm: Comm,
    /// As given to MPI_File_open.
    pub name: PathBuf,
    pub amode: Amode,
    pub descriptor: std::fs::File,
    pub errhandler: Attached,
    pub hints: Mutex<Info>,
    /// The standard's atomic mode: each access is a unit, also for other threads.
    pub is_atomic: AtomicBool,
    alone: Mutex<()>,
    view: RwLock<Arc<View>>,
    /// The individual file pointer, in bytes of the view's data.
    position: Mutex<usize>,
    shared: Pointer,
    split: Mutex<Option<Split>>,
    tally: Mutex<Tally>,
}

/// A handle is a number, which C sees as a pointer and nothing dereferences: the conversions to and
/// from Fortran's handles do not change it.
static FILES: Table<File> = Table::new(0x1000_0000);
/// The error handler of MPI_FILE_NULL: it gets errors without a file, and is the initial one of
/// each file.
static WITHOUT_FILE: Attached = Attached::with(MPI_ERRORS_RETURN);

/// The handle of an opened file.
fn open(file: File) -> MPI_File {
    FILES.insert(Arc::new(file)) as MPI_File
}

fn number(file: MPI_File) -> Option<Handle> {
    u32::try_from(file as usize).ok().map(handle)
}

/// The file of a handle, or an error that says what is wrong with the handle.
pub fn get(handle: MPI_File) -> Answer<Arc<File>> {
    number(handle).and_then(|number| FILES.get(number)).ok_or_else(|| wrong(handle))
}

fn release(handle: MPI_File) -> Answer<Arc<File>> {
    number(handle).and_then(|number| FILES.release(number)).ok_or_else(|| wrong(handle))
}

#[cold]
fn wrong(handle: MPI_File) -> Failure {
    let text = match handle {
        MPI_FILE_NULL => "the file is MPI_FILE_NULL: MPI_File_open has failed or was not called, \
            or the file was closed"
            .into(),
        _ => format!("{handle:?} is not a file, or was closed"),
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

/// The error handler of this file; that of MPI_FILE_NULL if the file is not open.
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

    /// Set the view. The individual pointer returns to 0; one process resets the shared pointer for
    /// all.
    pub fn take_view(&self, view: View) {
        *self.view.write().expect("no panic under the lock") = Arc::new(view);
        *self.position() = 0;
    }

    /// The individual file pointer, locked against other accesses with it.
    pub fn position(&self) -> MutexGuard<'_, usize> {
        lock(&self.position)
    }

    /// The value of the shared file pointer.
    pub fn shared_position(&self) -> usize {
        self.shared.get()
    }

    pub fn move_shared(&self, position: usize) {
        self.shared.set(position);
    }

    /// Refuse an access at any position but the shared file pointer, if the file was opened with
    /// MPI_MODE_SEQUENTIAL.
    pub fn must_have_positions(&self) -> Answer {
        let rule = "MPI_MODE_SEQUENTIAL, where only the functions with _shared and _ordered in \
            their names read and write; open it without that mode";
        self.must_not_be(MPI_MODE_SEQUENTIAL, MPI_ERR_UNSUPPORTED_OPERATION, rule)
    }

    pub fn must_be_writable(&self) -> Answer {
        let rule = "MPI_MODE_RDONLY, and cannot be changed; open it with MPI_MODE_WRONLY or \
            MPI_MODE_RDWR";
        self.must_not_be(MPI_MODE_RDONLY, MPI_ERR_READ_ONLY, rule)
    }

    fn must_be_readable(&self) -> Answer {
        let rule = "MPI_MODE_WRONLY, and cannot be read; open it with MPI_MODE_RDONLY or \
            MPI_MODE_RDWR";
        self.must_not_be(MPI_MODE_WRONLY, MPI_ERR_ACCESS, rule)
    }

    fn must_not_be(&self, mode: c_int, code: c_int, rule: &str) -> Answer {
        match self.amode.has(mode) {
            false => Ok(()),
            true => Err(fail(code, format!("{:?} was opened with {rule}", self.name))),
        }
    }

    /// A system error on this file as an MPI error.
    pub fn failure(&self, action: &str, error: &std::io::Error) -> Failure {
        failures::of(action, &self.name, error)
    }

    /// The file's current size in bytes.
    pub fn size(&self) -> Answer<u64> {
        let found = self.descriptor.metadata().map_err(|error| self.failure("look at", &error))?;
        Ok(found.len())
    }
}
