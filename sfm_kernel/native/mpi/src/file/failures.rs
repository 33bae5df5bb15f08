//! The system's errors on files, as MPI errors.

use std::io;
use std::path::Path;

use crate::errors::{fail, Failure};
use crate::handles::*;

/// `action`: the failed action, as in "cannot open".
pub fn of(action: &str, name: &Path, error: &io::Error) -> Failure {
    let (class, why) = match error.raw_os_error().unwrap_or(0) {
        libc::ENOENT if action == "open" => (
            MPI_ERR_NO_SUCH_FILE,
            "there is no such file, or its folder does not exist; MPI_MODE_CREATE creates files, \
            but not folders",
        ),
        libc::ENOENT => (MPI_ERR_NO_SUCH_FILE, "there is no such file"),
        libc::EACCES | libc::EPERM => (
            MPI_ERR_ACCESS,
            "this user lacks the permission; check the file's owner and mode \
                (ls -l)",
        ),
        libc::EROFS => (
            MPI_ERR_READ_ONLY,
            "its file system is read-only; open it with MPI_MODE_RDONLY, or write to another one",
        ),
        libc::EISDIR => (MPI_ERR_BAD_FILE, "it is a folder; give the name of a file"),
        libc::ENOTDIR => (MPI_ERR_BAD_FILE, "a component of its path is a file, not a folder"),
        libc::ENAMETOOLONG => (MPI_ERR_BAD_FILE, "the name is too long"),
        libc::ELOOP => (MPI_ERR_BAD_FILE, "its symbolic links form a loop"),
        libc::EEXIST => (
            MPI_ERR_FILE_EXISTS,
            "it exists already; delete it, or omit MPI_MODE_EXCL to open the existing file",
        ),
        libc::ETXTBSY | libc::EBUSY => {
            (MPI_ERR_FILE_IN_USE, "another program uses it; wait until that has ended")
        }
        libc::ENOSPC => (
            MPI_ERR_NO_SPACE,
            "its file system is full; delete something there, or write to another one",
        ),
        libc::EDQUOT => (
            MPI_ERR_QUOTA,
            "this user's quota on its file system is exhausted; delete something there, or ask \
            for a larger quota",
        ),
        libc::EFBIG => (
            MPI_ERR_NO_SPACE,
            "it would exceed the limit for files (of the file system, or ulimit -f)",
        ),
        libc::ESPIPE => (
            MPI_ERR_UNSUPPORTED_OPERATION,
            "it cannot be accessed at positions: it is a pipe, a socket or a terminal",
        ),
        libc::EMFILE | libc::ENFILE => {
            (MPI_ERR_IO, "too many files are open; close some, or raise the limit (ulimit -n)")
        }
        _ => return fail(MPI_ERR_IO, format!("cannot {action} {name:?}: {error}")),
    };
    fail(class, format!("cannot {action} {name:?}: {why}"))
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
