//! Fortran's datatypes by precision and range: predefined types, each with a description of its
//! own.

use std::sync::Mutex;

use sfm_native::sync::lock;

use crate::checks::put;
use crate::datatype::{self, making};
use crate::errors::{fail, Answer};
use crate::handles::*;

/// The types returned so far: the same arguments get the same handle.
static ASKED: Mutex<Vec<([c_int; 3], MPI_Datatype)>> = Mutex::new(Vec::new());

fn described(
    combiner: c_int,
    first: c_int,
    second: c_int,
    as_: MPI_Datatype,
) -> Answer<MPI_Datatype> {
    let question = [combiner, first, second];
    let mut asked = lock(&ASKED);
    if let Some((_, handle)) = asked.iter().find(|(known, _)| *known == question) {
        return Ok(*handle);
    }
    let integers = match combiner {
        MPI_COMBINER_F90_INTEGER => vec![first.into()],
        _ => vec![first.into(), second.into()],
    };
    let made = making::renamed(datatype::get(as_)?, combiner, integers);
    made.commit();
    let handle = datatype::open(made);
    asked.push((question, handle));
    Ok(handle)
}

fn none(text: String) -> crate::errors::Failure {
    fail(MPI_ERR_ARG, text)
}

/// The smallest real type, and the corresponding complex type, with at least these decimal digits
/// and this range of exponents, as compilers on this machine have them.
fn real(p: c_int, r: c_int) -> Answer<[MPI_Datatype; 2]> {
    match (p, r) {
        (MPI_UNDEFINED, MPI_UNDEFINED) => {
            Err(none("arguments p and r are both MPI_UNDEFINED; give one of them".into()))
        }
        _ if p <= 6 && r <= 37 => Ok([MPI_REAL4, MPI_COMPLEX8]),
        _ if p <= 15 && r <= 307 => Ok([MPI_REAL8, MPI_COMPLEX16]),
        _ if p <= 18 && r <= 4931 => Ok([MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX]),
        _ if p <= 33 && r <= 4931 => Ok([MPI_REAL16, MPI_COMPLEX32]),
        _ => Err(none(format!("there is no real of {p} digits and exponents up to {r} here"))),
    }
}

pub unsafe fn type_create_f90_real(p: c_int, r: c_int, newtype: *mut MPI_Datatype) -> Answer {
    let [as_, _] = real(p, r)?;
    put("newtype", newtype, described(MPI_COMBINER_F90_REAL, p, r, as_)?)
}

pub unsafe fn type_create_f90_complex(p: c_int, r: c_int, newtype: *mut MPI_Datatype) -> Answer {
    let [_, as_] = real(p, r)?;
    put("newtype", newtype, described(MPI_COMBINER_F90_COMPLEX, p, r, as_)?)
}

pub unsafe fn type_create_f90_integer(r: c_int, newtype: *mut MPI_Datatype) -> Answer {
    let as_ = match r {
        ..=2 => MPI_INTEGER1,
        3..=4 => MPI_INTEGER2,
        5..=9 => MPI_INTEGER4,
        10..=18 => MPI_INTEGER8,
        19..=38 => MPI_INTEGER16,
        _ => return Err(none(format!("there is no integer of {r} digits here"))),
    };
    put("newtype", newtype, described(MPI_COMBINER_F90_INTEGER, r, 0, as_)?)
}
