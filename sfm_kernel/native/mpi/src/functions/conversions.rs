//! Files as numbers. All other handles are numbers already, the same in C and in Fortran.

use crate::file_numbers;
use crate::handles::*;

pub unsafe fn file_c2f(file: MPI_File) -> MPI_Fint {
    file_numbers::number(file)
}

pub unsafe fn file_f2c(file: MPI_Fint) -> MPI_File {
    file_numbers::file(file)
}

pub unsafe fn file_toint(file: MPI_File) -> c_int {
    file_numbers::number(file)
}

pub unsafe fn file_fromint(file: c_int) -> MPI_File {
    file_numbers::file(file)
}
