//! The version of the binary interface, and the properties of Fortran's types.

use std::sync::Mutex;

use sfm_native::sync::lock;

use crate::checks::{array, array_mut, put, put_new};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::info::{self, Info};

/// With it programs such as mpi4py distinguish the standard's ABI from MPICH's, which has no
/// version.
pub unsafe fn abi_get_version(abi_major: *mut c_int, abi_minor: *mut c_int) -> Answer {
    let (major, minor) = if cfg!(abi) { (1, 0) } else { (-1, -1) };
    put("abi_major", abi_major, major)?;
    put("abi_minor", abi_minor, minor)
}

pub unsafe fn abi_get_info(info: *mut MPI_Info) -> Answer {
    let size = |name: &str, bytes: usize| (format!("mpi_{name}_size"), bytes.to_string());
    let entries = vec![
        size("aint", size_of::<MPI_Aint>()),
        size("count", size_of::<MPI_Count>()),
        size("offset", size_of::<MPI_Offset>()),
    ];
    put_new("info", info, || info::open(Info { entries }))
}

/// The properties of a Fortran compiler's types, which a library of Fortran functions sets once.
#[derive(Default)]
struct Fortran {
    info: Option<Info>,
    /// True and false.
    booleans: Option<[Vec<u8>; 2]>,
}

static FORTRAN: Mutex<Fortran> = Mutex::new(Fortran { info: None, booleans: None });

fn with<T>(use_: impl FnOnce(&mut Fortran) -> T) -> T {
    use_(&mut lock(&FORTRAN))
}

/// MPI_INFO_NULL until it is set.
pub unsafe fn abi_get_fortran_info(info: *mut MPI_Info) -> Answer {
    let set = with(|fortran| fortran.info.clone());
    put_new("info", info, || set.map_or(MPI_INFO_NULL, info::open))
}

pub unsafe fn abi_set_fortran_info(info: MPI_Info) -> Answer {
    let set = info::with(info, |info| info.clone())?;
    with(|fortran| once(&mut fortran.info, set, "MPI_Abi_set_fortran_info"))
}

pub unsafe fn abi_get_fortran_booleans(
    logical_size: c_int,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
    is_set: *mut c_int,
) -> Answer {
    let bytes = size(logical_size)?;
    let Some(booleans) = with(|fortran| fortran.booleans.clone()) else {
        return put("is_set", is_set, 0);
    };
    if booleans[0].len() != bytes {
        let text = format!(
            "argument logical_size is {bytes}, but Fortran's LOGICAL was set with {} bytes",
            booleans[0].len()
        );
        return Err(fail(MPI_ERR_ABI, text));
    }
    array_mut("logical_true", logical_true.cast(), bytes)?.copy_from_slice(&booleans[0]);
    array_mut("logical_false", logical_false.cast(), bytes)?.copy_from_slice(&booleans[1]);
    put("is_set", is_set, 1)
}

pub unsafe fn abi_set_fortran_booleans(
    logical_size: c_int,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
) -> Answer {
    let bytes = size(logical_size)?;
    let given = [
        array::<u8>("logical_true", logical_true.cast(), bytes)?.to_vec(),
        array::<u8>("logical_false", logical_false.cast(), bytes)?.to_vec(),
    ];
    with(|fortran| once(&mut fortran.booleans, given, "MPI_Abi_set_fortran_booleans"))
}

fn size(logical_size: c_int) -> Answer<usize> {
    match logical_size {
        1 | 2 | 4 | 8 | 16 => Ok(logical_size as usize),
        _ => {
            let text = format!(
                "argument logical_size is {logical_size}; a LOGICAL has 1, 2, 4, 8 or 16 bytes"
            );
            Err(fail(MPI_ERR_ARG, text))
        }
    }
}

fn once<T>(stored: &mut Option<T>, value: T, function: &str) -> Answer {
    if stored.is_some() {
        let text = format!("{function} was called before, and may be called once only");
        return Err(fail(MPI_ERR_ABI, text));
    }
    *stored = Some(value);
    Ok(())
}
