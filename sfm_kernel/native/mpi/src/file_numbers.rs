//! Numbers for files, whose handles are pointers: a file gets one when it is first asked for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::handles::*;

/// The number of a file is its place here; 0 is MPI_FILE_NULL, and free places are 0, too.
static FILES: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn files() -> MutexGuard<'static, Vec<usize>> {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if files.is_empty() {
        files.push(0);
    }
    files
}

/// The file's number, which it keeps until it is closed.
pub fn number(file: MPI_File) -> c_int {
    let (mut files, file) = (files(), file as usize);
    if let Some(place) = files.iter().position(|one| *one == file) {
        return place as c_int;
    }
    let free = files.iter().skip(1).position(|one| *one == 0);
    let place = free.map_or(files.len(), |at| at + 1);
    if place == files.len() {
        files.push(file);
    }
    files[place] = file;
    place as c_int
}

/// The file of a number; MPI_FILE_NULL where there is none.
pub fn file(number: c_int) -> MPI_File {
    let found = usize::try_from(number).ok().and_then(|place| files().get(place).copied());
    found.unwrap_or(MPI_FILE_NULL as usize) as MPI_File
}

/// The file is closed.
#[allow(dead_code)] // MPI_File_close
pub fn forget(file: MPI_File) {
    if file == MPI_FILE_NULL {
        return;
    }
    for one in files().iter_mut().filter(|one| **one == file as usize) {
        *one = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_number_until_it_is_closed() {
        let [first, second, third] = [0x1000_usize, 0x2000, 0x3000].map(|one| one as MPI_File);
        assert_eq!((number(MPI_FILE_NULL), file(0)), (0, MPI_FILE_NULL));
        let (one, two) = (number(first), number(second));
        assert!(one != two && number(first) == one && file(one) == first && file(two) == second);
        forget(first);
        assert_eq!((file(one), file(-1), file(99)), (MPI_FILE_NULL, MPI_FILE_NULL, MPI_FILE_NULL));
        assert_eq!((number(third), file(two)), (one, second));
    }
}
