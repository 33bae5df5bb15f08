//! What the system says when something with a file fails, as an error of MPI.

use std::io;
use std::path::Path;

use crate::errors::{fail, Failure};
use crate::handles::*;

/// `doing`: what failed, as in "cannot open".
pub fn of(doing: &str, name: &Path, error: &io::Error) -> Failure {
    let (class, why) = match error.raw_os_error().unwrap_or(0) {
        libc::ENOENT if doing == "open" => (
            MPI_ERR_NO_SUCH_FILE,
            "there is no such file, or the folder that it is to be in does not exist; \
             MPI_MODE_CREATE makes a file, but no folder",
        ),
        libc::ENOENT => (MPI_ERR_NO_SUCH_FILE, "there is no such file"),
        libc::EACCES | libc::EPERM => {
            (MPI_ERR_ACCESS, "this user may not do that; look at its owner and mode (ls -l)")
        }
        libc::EROFS => (
            MPI_ERR_READ_ONLY,
            "its file system can only be read; open it with MPI_MODE_RDONLY, or write elsewhere",
        ),
        libc::EISDIR => (MPI_ERR_BAD_FILE, "it is a folder; give the name of a file"),
        libc::ENOTDIR => (MPI_ERR_BAD_FILE, "what stands for a folder in its name is a file"),
        libc::ENAMETOOLONG => (MPI_ERR_BAD_FILE, "the name is too long"),
        libc::ELOOP => (MPI_ERR_BAD_FILE, "its symbolic links lead in a circle"),
        libc::EEXIST => (
            MPI_ERR_FILE_EXISTS,
            "it exists already; delete it before, or leave MPI_MODE_EXCL out to open it as it is",
        ),
        libc::ETXTBSY | libc::EBUSY => {
            (MPI_ERR_FILE_IN_USE, "somebody uses it; wait until they are done")
        }
        libc::ENOSPC => (
            MPI_ERR_NO_SPACE,
            "its file system is full; delete something there, or write elsewhere",
        ),
        libc::EDQUOT => (
            MPI_ERR_QUOTA,
            "this user's share of its file system is used up; delete something there, or have the \
             share made larger",
        ),
        libc::EFBIG => (
            MPI_ERR_NO_SPACE,
            "it would be larger than files may be here (the file system's limit, or ulimit -f)",
        ),
        libc::ESPIPE => (
            MPI_ERR_UNSUPPORTED_OPERATION,
            "it has no positions to read or write at: it is a pipe, a socket or a terminal",
        ),
        libc::EMFILE | libc::ENFILE => (
            MPI_ERR_IO,
            "too many files are open; close some, or have the limit raised (ulimit -n)",
        ),
        _ => return fail(MPI_ERR_IO, format!("cannot {doing} {name:?}: {error}")),
    };
    fail(class, format!("cannot {doing} {name:?}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_is_the_standards_and_the_text_names_the_file() {
        for (errno, class) in [
            (libc::ENOENT, MPI_ERR_NO_SUCH_FILE),
            (libc::EACCES, MPI_ERR_ACCESS),
            (libc::ENOSPC, MPI_ERR_NO_SPACE),
            (libc::EDQUOT, MPI_ERR_QUOTA),
            (libc::EIO, MPI_ERR_IO),
        ] {
            let failure = of("write to", Path::new("a/b"), &io::Error::from_raw_os_error(errno));
            assert_eq!(failure.code, class);
            assert!(failure.text.starts_with("cannot write to \"a/b\": "), "{}", failure.text);
        }
    }
}
