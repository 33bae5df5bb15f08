//! Access modes: the valid combinations, and their meaning for the system.

use crate::errors::{fail, Answer};
use crate::handles::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amode(pub c_int);

const ONE_OF: c_int = MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR;

impl Amode {
    /// The modes of a call, if the combination is valid.
    pub fn of(modes: c_int) -> Answer<Amode> {
        let amode = Amode(modes);
        let wrong = if (modes & ONE_OF).count_ones() != 1 {
            "must have exactly one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR"
        } else if amode.has(MPI_MODE_RDONLY) && amode.has(MPI_MODE_CREATE) {
            "has MPI_MODE_CREATE with MPI_MODE_RDONLY; creating a file needs write access"
        } else if amode.has(MPI_MODE_RDONLY) && amode.has(MPI_MODE_EXCL) {
            "has MPI_MODE_EXCL with MPI_MODE_RDONLY; creating a file needs write access"
        } else if amode.has(MPI_MODE_RDWR) && amode.has(MPI_MODE_SEQUENTIAL) {
            "has MPI_MODE_SEQUENTIAL with MPI_MODE_RDWR; a sequential file is either read or \
            written"
        } else {
            return Ok(amode);
        };
        Err(fail(MPI_ERR_AMODE, format!("argument amode ({modes}) {wrong}")))
    }

    pub fn has(self, mode: c_int) -> bool {
        self.0 & mode != 0
    }

    /// The flags for open(2). `is_first`: for the process that creates the file.
    pub fn flags(self, is_first: bool) -> c_int {
        let mut flags = match self.0 & ONE_OF {
            MPI_MODE_RDONLY => libc::O_RDONLY,
            MPI_MODE_WRONLY => libc::O_WRONLY,
            _ => libc::O_RDWR,
        };
        for (mode, flag) in [(MPI_MODE_CREATE, libc::O_CREAT), (MPI_MODE_EXCL, libc::O_EXCL)] {
            if is_first && self.has(mode) {
                flags |= flag;
            }
        }
        flags | libc::O_CLOEXEC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_contradict_each_other_are_refused() {
        let read_and_make = MPI_MODE_RDONLY | MPI_MODE_CREATE;
        let both = MPI_MODE_RDONLY | MPI_MODE_WRONLY;
        for modes in [0, MPI_MODE_CREATE, both, read_and_make, MPI_MODE_RDONLY | MPI_MODE_EXCL] {
            assert_eq!(Amode::of(modes).unwrap_err().code, MPI_ERR_AMODE);
        }
        assert!(Amode::of(MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL).is_err());
        assert!(Amode::of(MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL).is_ok());
    }

    #[test]
    fn only_the_first_process_makes_the_file() {
        let amode = Amode::of(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL).unwrap();
        let made = libc::O_CREAT | libc::O_EXCL;
        assert_eq!(amode.flags(true), libc::O_RDWR | libc::O_CLOEXEC | made);
        assert_eq!(amode.flags(false), libc::O_RDWR | libc::O_CLOEXEC);
    }
}
