//! Enumerations: variables whose values have names.

use sfm_native::segment::Activity;

use crate::errors::{fail, Answer};
use crate::handles::*;

pub struct Enumeration {
    pub name: &'static str,
    /// Value and name of each item.
    pub items: fn() -> Vec<(c_int, &'static str)>,
}

#[derive(Clone, Copy)]
pub enum Of {
    State,
    ThreadLevel,
}

const ALL: [Enumeration; 2] = [
    Enumeration { name: "state", items: states },
    Enumeration { name: "thread_level", items: thread_levels },
];

fn states() -> Vec<(c_int, &'static str)> {
    (0..).map_while(|code| Activity::name(code).map(|name| (code as c_int, name))).collect()
}

fn thread_levels() -> Vec<(c_int, &'static str)> {
    vec![
        (MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"),
        (MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"),
        (MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"),
        (MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"),
    ]
}

/// The handle of an enumeration: its index, from 1 on.
pub fn handle(of: Option<Of>) -> MPI_T_enum {
    of.map_or(0, |of| of as usize + 1) as MPI_T_enum
}

pub fn get(handle: MPI_T_enum) -> Answer<&'static Enumeration> {
    (handle as usize).checked_sub(1).and_then(|index| ALL.get(index)).ok_or_else(|| {
        let text =
            "argument enumtype is not the enumeration of any variable; MPI_T_ENUM_NULL means \
            that the variable has none";
        fail(MPI_T_ERR_INVALID_HANDLE, text)
    })
}
