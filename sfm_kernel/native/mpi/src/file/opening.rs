//! Opening, closing and deleting: each process learns whether it succeeded at all of them.

use std::fs::OpenOptions;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use super::pointer::{Pointer, PointerPath};
use super::view::View;
use super::{agreeing, failures, hints, Amode, File, WITHOUT_FILE};
use crate::comm::Comm;
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::info::Info;
use crate::making;

/// The result of opening the file at the first process.
#[derive(Clone, Copy, Default)]
struct First {
    /// The system's error, or 0.
    errno: c_int,
    /// An error that is not the system's, or MPI_SUCCESS.
    code: c_int,
    /// The context number of the file's communicator.
    number: u64,
    /// The initial value of all file pointers.
    position: usize,
    pointer: PointerPath,
}

/// Open a file with all processes of `comm`. `arguments`: this process's arguments, or the error in
/// them.
pub fn open(
    comm: &Comm,
    amode: c_int,
    arguments: Answer<(PathBuf, Amode, Info)>,
) -> Answer<MPI_File> {
    let code = arguments.as_ref().map_or_else(|failure| failure.code, |_| MPI_SUCCESS);
    let name_here = arguments.as_ref().map_or(0, |(name, ..)| hash_of(name));
    let all = agreeing::all(comm, (code, name_here))?;
    let codes: Vec<_> = all.iter().map(|(code, _)| *code).collect();
    let other = all.iter().position(|(_, name)| *name != name_here);
    let (name, amode, info) = match (arguments, codes.iter().position(|code| *code != MPI_SUCCESS))
    {
        (Ok(arguments), None) => {
            agreeing::same(comm, "amode", amode.into())?;
            arguments
        }
        (Err(failure), _) => return Err(failure),
        (_, Some(rank)) => return Err(failed_at(rank, codes[rank])),
    };
    let named = |mut failure: Failure| {
        if let Some(rank) = other {
            failure.text += &format!("; process {rank} gives another name than {name:?}");
        }
        failure
    };
    let mut opened = None;
    let first = agreeing::from_first(comm, || {
        let (found, result) = open_first(comm, &name, amode, &info);
        opened = Some(found);
        result
    })?;
    let opened = opened.unwrap_or_else(|| open_next(&name, amode, &first));
    let code = opened.as_ref().map_or_else(|failure| failure.code, |_| MPI_SUCCESS);
    let codes = agreeing::all(comm, code)?;
    if comm.rank == 0 && comm.size() > 1 {
        first.pointer.forget();
    }
    let (descriptor, shared) = opened.map_err(named)?;
    if let Some(rank) = codes.iter().position(|code| *code != MPI_SUCCESS) {
        return Err(named(failed_at(rank, codes[rank])));
    }
    let file_comm = making::child(comm, first.number, comm.group.clone(), comm.rank as usize);
    let file = File {
        comm: file_comm,
        name,
        amode,
        descriptor,
        errhandler: WITHOUT_FILE.copy(),
        hints: Mutex::new(hints::known(&info)),
        is_atomic: false.into(),
        alone: Mutex::default(),
        view: RwLock::new(Arc::new(View::bytes())),
        position: Mutex::new(first.position),
        shared,
        split: Mutex::default(),
        tally: Mutex::default(),
    };
    file.take_hints(&info);
    Ok(super::open(file))
}

fn hash_of(name: &Path) -> u64 {
    let mut hasher = DefaultHasher::new(); // gives the same hash in every process
    name.hash(&mut hasher);
    hasher.finish()
}

fn failed_at(rank: usize, code: c_int) -> Failure {
    let class = crate::classes::text(code).unwrap_or_default();
    let text = format!(
        "the file could not be opened at process {rank} of the communicator, and therefore at \
        none ({class}); the error of that process says why"
    );
    fail(code, text)
}

type Opened = (std::fs::File, Pointer);

/// Open it at the first process; returns its file, and the result to broadcast.
fn open_first(comm: &Comm, name: &Path, amode: Amode, info: &Info) -> (Answer<Opened>, First) {
    let mut first = First { number: making::next(), ..First::default() };
    let opened = descriptor(name, amode, true, hints::permissions(info));
    let (descriptor, size) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            first.errno = error.raw_os_error().unwrap_or(libc::EIO);
            return (Err(of_first(name, &first)), first);
        }
    };
    if amode.has(MPI_MODE_APPEND) {
        first.position = size as usize;
    }
    let pointer = match comm.size() {
        1 => Ok(Pointer::private()),
        _ => Pointer::make(first.number).map(|(pointer, path)| {
            first.pointer = path;
            pointer
        }),
    };
    let opened = pointer.map(|pointer| {
        pointer.set(first.position);
        (descriptor, pointer)
    });
    first.code = opened.as_ref().map_or_else(|failure| failure.code, |_| MPI_SUCCESS);
    (opened, first)
}

/// Open it at another process, after the first one.
fn open_next(name: &Path, amode: Amode, first: &First) -> Answer<Opened> {
    if first.errno != 0 || first.code != MPI_SUCCESS {
        return Err(of_first(name, first));
    }
    let opened = descriptor(name, amode, false, 0);
    let (descriptor, _) = opened.map_err(|error| failures::of("open", name, &error))?;
    Ok((descriptor, Pointer::find(&first.pointer)?))
}

/// The error of the first process, which all processes report.
fn of_first(name: &Path, first: &First) -> Failure {
    match first.errno {
        0 => failed_at(0, first.code),
        errno => failures::of("open", name, &io::Error::from_raw_os_error(errno)),
    }
}

/// A descriptor, and the file's size.
fn descriptor(
    name: &Path,
    amode: Amode,
    is_first: bool,
    permissions: libc::mode_t,
) -> io::Result<(std::fs::File, u64)> {
    let mut options = OpenOptions::new();
    // The standard library turns these two into the same flags as `flags`.
    options.read(!amode.has(MPI_MODE_WRONLY)).write(!amode.has(MPI_MODE_RDONLY));
    let flags = amode.flags(is_first);
    let file = options.mode(permissions).custom_flags(flags).open(name)?;
    let about = file.metadata()?;
    match about.is_dir() {
        true => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        false => Ok((file, about.len())),
    }
}

/// Close it with all processes that have opened it.
pub fn close(handle: MPI_File) -> Answer {
    let file = super::get(handle)?;
    file.compare_calls()?;
    file.note_open_split();
    drop(file);
    let file = super::release(handle)?;
    let deleted = match file.amode.has(MPI_MODE_DELETE_ON_CLOSE) {
        false => Ok(()),
        true => by_first(&file, "delete", || delete(&file.name)),
    };
    // Another thread may be in a call with it, which is erroneous; then that thread closes the
    // descriptor.
    if let Ok(File { descriptor, name, .. }) = Arc::try_unwrap(file) {
        // SAFETY: the descriptor is ours, and not used afterwards.
        if unsafe { libc::close(descriptor.into_raw_fd()) } != 0 {
            return Err(failures::of("close", &name, &io::Error::last_os_error()));
        }
    }
    deleted
}

/// Run `act` at the first process, and report its result at all.
pub fn by_first(file: &File, action: &str, act: impl FnOnce() -> io::Result<()>) -> Answer {
    let errno = agreeing::from_first(&file.comm, || errno(act()))?;
    match errno {
        0 => Ok(()),
        _ => Err(file.failure(action, &io::Error::from_raw_os_error(errno))),
    }
}

fn errno(done: io::Result<()>) -> c_int {
    done.map_or_else(|error| error.raw_os_error().unwrap_or(libc::EIO), |()| 0)
}

/// Delete a file, but no folder.
pub fn delete(name: &Path) -> io::Result<()> {
    if name.is_dir() && !name.is_symlink() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    std::fs::remove_file(name)
}
