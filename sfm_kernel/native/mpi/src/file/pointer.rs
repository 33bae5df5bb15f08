//! The shared file pointer: one position for all processes that have opened a file together.
//!
//! It is in shared memory, and single atomic instructions change it, so that no process waits for
//! another. The memory's file is unlinked as soon as all processes have mapped it, so that nothing
//! remains however the processes end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use sfm_native::shm::{Mapping, ShmError};

use crate::engine::engine;
use crate::errors::{fail, Answer};
use crate::handles::*;

/// In bytes of the view's data, like the individual pointer.
pub enum Pointer {
    /// For a file that one process has opened.
    Private(AtomicUsize),
    Shared(Mapping<AtomicUsize>),
}

/// The path of the shared memory, in the form in which the first process broadcasts it.
#[derive(Clone, Copy)]
pub struct PointerPath([u8; 256]);

impl Default for PointerPath {
    fn default() -> PointerPath {
        PointerPath([0; 256])
    }
}

impl PointerPath {
    /// A path in the folder of this process's world: if the process dies right now, the pointer is
    /// removed together with the process's other files.
    fn new(number: u64) -> Option<PointerPath> {
        let (engine, uid) = (engine(), engine().core.shared().uid());
        let name = format!("{uid:032x}.pointer{number}");
        let path = engine.endpoint.folder().join(name).into_os_string().into_encoded_bytes();
        let mut location = PointerPath::default();
        location.0.get_mut(..path.len())?.copy_from_slice(&path);
        Some(location)
    }

    fn path(&self) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        Path::new(std::ffi::OsStr::from_bytes(&self.0[..end])).to_path_buf()
    }

    /// Unlink it, after all have mapped it.
    pub fn forget(&self) {
        let _ = std::fs::remove_file(self.path());
    }
}

impl Pointer {
    /// The pointer of a file that only this process opens.
    pub fn private() -> Pointer {
        Pointer::Private(AtomicUsize::new(0))
    }

    /// Make the pointer of several processes; `number` is unique to the file.
    pub fn make(number: u64) -> Answer<(Pointer, PointerPath)> {
        let full = |error: ShmError| {
            let text = format!("no shared file pointer can be made: {error:?}");
            fail(MPI_ERR_NO_MEM, text)
        };
        let location = PointerPath::new(number).ok_or_else(|| {
            fail(
                MPI_ERR_OTHER,
                "the name of the world's folder is too long; set SFM_DIR to another",
            )
        })?;
        let path = location.path();
        let fresh = path.with_extension(format!("fresh{number}"));
        let length = std::mem::size_of::<AtomicUsize>();
        let made = Mapping::create_or_open(&path, &fresh, length, |_| ());
        Ok((Pointer::Shared(made.map_err(full)?), location))
    }

    /// Map the pointer that the first process has made.
    pub fn find(location: &PointerPath) -> Answer<Pointer> {
        let missing = |error: ShmError| {
            let text = format!("the shared file pointer cannot be reached: {error:?}");
            fail(MPI_ERR_OTHER, text)
        };
        Mapping::open(&location.path(), 0).map(Pointer::Shared).map_err(missing)
    }

    fn at(&self) -> &AtomicUsize {
        match self {
            Pointer::Private(at) => at,
            Pointer::Shared(at) => at,
        }
    }

    pub fn get(&self) -> usize {
        self.at().load(SeqCst)
    }

    pub fn set(&self, position: usize) {
        self.at().store(position, SeqCst);
    }

    /// Advance it; return the previous position.
    pub fn add(&self, bytes: usize) -> usize {
        self.at().fetch_add(bytes, SeqCst)
    }
}
