//! The shared file pointer: one position for all processes that have opened a file together.
//!
//! It stands in memory that they share, and is changed by single instructions, so that nobody waits
//! for anybody. The memory's name is gone as soon as all have found it: nothing is left of it,
//! however the processes end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use sfm_native::shm::{Mapping, ShmError};

use crate::engine::engine;
use crate::errors::{fail, Answer};
use crate::handles::*;

/// In bytes of the view's data, as the individual pointer.
pub enum Pointer {
    /// Of a file that one process has opened.
    Own(AtomicUsize),
    Shared(Mapping<AtomicUsize>),
}

/// Where the processes find it, in the form in which the first one tells the others.
#[derive(Clone, Copy)]
pub struct Place([u8; 256]);

impl Default for Place {
    fn default() -> Place {
        Place([0; 256])
    }
}

impl Place {
    /// In the folder of this process's world, where it is removed with the process's other files if
    /// that dies right now.
    fn new(number: u64) -> Option<Place> {
        let (engine, uid) = (engine(), engine().core.shared().uid());
        let name = format!("{uid:032x}.pointer{number}");
        let path = engine.endpoint.folder().join(name).into_os_string().into_encoded_bytes();
        let mut place = Place::default();
        place.0.get_mut(..path.len())?.copy_from_slice(&path);
        Some(place)
    }

    fn path(&self) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        Path::new(std::ffi::OsStr::from_bytes(&self.0[..end])).to_path_buf()
    }

    /// All have found it.
    pub fn forget(&self) {
        let _ = std::fs::remove_file(self.path());
    }
}

impl Pointer {
    /// For a file that this process alone opens.
    pub fn own() -> Pointer {
        Pointer::Own(AtomicUsize::new(0))
    }

    /// Make one for many processes; `number` is the file's own.
    pub fn make(number: u64) -> Answer<(Pointer, Place)> {
        let full = |error: ShmError| {
            let text = format!("no shared file pointer can be made: {error:?}");
            fail(MPI_ERR_NO_MEM, text)
        };
        let place = Place::new(number).ok_or_else(|| {
            fail(
                MPI_ERR_OTHER,
                "the name of the world's folder is too long; set SFM_DIR to another",
            )
        })?;
        let path = place.path();
        let fresh = path.with_extension(format!("fresh{number}"));
        let length = std::mem::size_of::<AtomicUsize>();
        let made = Mapping::create_or_open(&path, &fresh, length, |_| ());
        Ok((Pointer::Shared(made.map_err(full)?), place))
    }

    /// The one that the first process has made.
    pub fn find(place: &Place) -> Answer<Pointer> {
        let missing = |error: ShmError| {
            let text = format!("the shared file pointer cannot be reached: {error:?}");
            fail(MPI_ERR_OTHER, text)
        };
        Mapping::open(&place.path(), 0).map(Pointer::Shared).map_err(missing)
    }

    fn at(&self) -> &AtomicUsize {
        match self {
            Pointer::Own(at) => at,
            Pointer::Shared(at) => at,
        }
    }

    pub fn get(&self) -> usize {
        self.at().load(SeqCst)
    }

    pub fn set(&self, position: usize) {
        self.at().store(position, SeqCst);
    }

    /// Move it on; returns where it was.
    pub fn add(&self, bytes: usize) -> usize {
        self.at().fetch_add(bytes, SeqCst)
    }
}
