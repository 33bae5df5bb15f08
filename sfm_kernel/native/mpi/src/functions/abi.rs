//! What a compiled program may ask about the ABI that it was compiled for.

use crate::checks::{place, put};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::info::{self, Info};

/// By which mpi4py, for one, tells the standard's ABI from MPICH's, which has no version.
pub unsafe fn abi_get_version(abi_major: *mut c_int, abi_minor: *mut c_int) -> Answer {
    let (major, minor) = if cfg!(abi) { (1, 0) } else { (-1, -1) };
    put("abi_major", abi_major, major)?;
    put("abi_minor", abi_minor, minor)
}

/// An info object of these sizes, which the caller frees.
unsafe fn sizes(at: *mut MPI_Info, sizes: &[(&str, usize)]) -> Answer<Info> {
    place("info", at)?;
    let mut about = Info::default();
    for (name, size) in sizes {
        about.set(format!("mpi_{name}_size"), size.to_string());
    }
    Ok(about)
}

pub unsafe fn abi_get_info(info: *mut MPI_Info) -> Answer {
    let own = [
        ("aint", size_of::<MPI_Aint>()),
        ("count", size_of::<MPI_Count>()),
        ("offset", size_of::<MPI_Offset>()),
    ];
    put("info", info, info::open(sizes(info, &own)?))
}

/// Fortran's types have the sizes that its compilers give them by default, and all of them are there.
pub unsafe fn abi_get_fortran_info(info: *mut MPI_Info) -> Answer {
    let own = [("logical", 4), ("integer", 4), ("real", 4), ("double_precision", 8)];
    let mut about = sizes(info, &own)?;
    let optional: [(&str, &[u32]); 4] = [
        ("logical", &[1, 2, 4, 8, 16]),
        ("integer", &[1, 2, 4, 8, 16]),
        ("real", &[2, 4, 8, 16]),
        ("complex", &[4, 8, 16, 32]),
    ];
    for (name, sizes) in optional {
        for size in sizes {
            about.set(format!("mpi_{name}{size}_supported"), "true".into());
        }
    }
    about.set("mpi_double_complex_supported".into(), "true".into());
    put("info", info, info::open(about))
}

/// So do its truth values: 1 and 0.
pub unsafe fn abi_get_fortran_booleans(
    logical_size: c_int,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
    is_set: *mut c_int,
) -> Answer {
    for (value, at) in [(1_u128, logical_true), (0, logical_false)] {
        place("logical_true or logical_false", at)?;
        match logical_size {
            1 => at.cast::<u8>().write(value as u8),
            2 => at.cast::<u16>().write_unaligned(value as u16),
            4 => at.cast::<u32>().write_unaligned(value as u32),
            8 => at.cast::<u64>().write_unaligned(value as u64),
            16 => at.cast::<u128>().write_unaligned(value),
            _ => {
                let text =
                    format!("argument logical_size is {logical_size}; it is 1, 2, 4, 8 or 16");
                return Err(fail(MPI_ERR_ARG, text));
            }
        }
    }
    put("is_set", is_set, 1)
}

fn is_settled() -> Failure {
    let text = "what this library takes Fortran's types for is settled: MPI_Abi_get_fortran_info \
                and MPI_Abi_get_fortran_booleans say it";
    fail(MPI_ERR_ABI, text)
}

pub unsafe fn abi_set_fortran_info(_info: MPI_Info) -> Answer {
    Err(is_settled())
}

pub unsafe fn abi_set_fortran_booleans(
    _logical_size: c_int,
    _logical_true: *mut c_void,
    _logical_false: *mut c_void,
) -> Answer {
    Err(is_settled())
}
