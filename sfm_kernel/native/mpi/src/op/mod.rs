//! Reduction operations: predefined and user-defined.

mod kernels;
mod number;
#[cfg(target_arch = "x86_64")]
mod wide;

pub use kernels::Kernel;

use std::sync::Arc;

use sfm_endpoint::callers::kept;

use crate::datatype::{named, Basic, Datatype};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::table::Table;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predefined {
    Max,
    Min,
    Sum,
    Prod,
    Land,
    Band,
    Lor,
    Bor,
    Lxor,
    Bxor,
    Minloc,
    Maxloc,
}

const PREDEFINED: [(MPI_Op, Predefined, &str); 12] = [
    (MPI_MAX, Predefined::Max, "MPI_MAX"),
    (MPI_MIN, Predefined::Min, "MPI_MIN"),
    (MPI_SUM, Predefined::Sum, "MPI_SUM"),
    (MPI_PROD, Predefined::Prod, "MPI_PROD"),
    (MPI_LAND, Predefined::Land, "MPI_LAND"),
    (MPI_BAND, Predefined::Band, "MPI_BAND"),
    (MPI_LOR, Predefined::Lor, "MPI_LOR"),
    (MPI_BOR, Predefined::Bor, "MPI_BOR"),
    (MPI_LXOR, Predefined::Lxor, "MPI_LXOR"),
    (MPI_BXOR, Predefined::Bxor, "MPI_BXOR"),
    (MPI_MINLOC, Predefined::Minloc, "MPI_MINLOC"),
    (MPI_MAXLOC, Predefined::Maxloc, "MPI_MAXLOC"),
];

/// The user's function, from MPI_Op_create or MPI_Op_create_c.
#[derive(Clone, Copy)]
pub enum Function {
    Small(MPI_User_function),
    Large(MPI_User_function_c),
}

#[derive(Clone, Copy)]
pub struct Made {
    function: Function,
    commutes: bool,
}

/// An operation in use.
#[derive(Clone)]
pub enum Op {
    Predefined(Predefined, &'static str),
    Made(Arc<Made>),
}

static MADE: Table<Made> = Table::new(0x9800_0000);

impl Op {
    /// True if the operands' order does not matter; otherwise they are combined in rank order.
    pub fn commutes(&self) -> bool {
        match self {
            Op::Predefined(..) => true,
            Op::Made(made) => made.commutes,
        }
    }

    /// A number from 1 to 15 for a predefined operation; 0 for any other.
    pub fn number(&self) -> u32 {
        let nth = |known| PREDEFINED.iter().position(|(_, op, _)| op == known);
        match self {
            Op::Predefined(op, _) => nth(op).map_or(0, |nth| nth as u32 + 1),
            Op::Made(_) => 0,
        }
    }

    /// Refuse a datatype for which this operation is not defined.
    pub fn check(&self, datatype: &Datatype) -> Answer {
        self.kernel(datatype).map(|_| ())
    }

    /// The predefined loop for this datatype; None for a user-defined operation.
    pub fn kernel(&self, datatype: &Datatype) -> Answer<Option<Kernel>> {
        let Op::Predefined(op, name) = self else { return Ok(None) };
        match datatype.basic.and_then(|basic| kernels::find(*op, basic)) {
            Some(kernel) => Ok(Some(kernel)),
            None => {
                let text = format!(
                    "{name} is not defined for {}; use another datatype, or define an operation \
                    (MPI_Op_create)",
                    datatype.label()
                );
                Err(fail(MPI_ERR_OP, text))
            }
        }
    }

    /// `into[i] = from[i] op into[i]` for `count` items. A user-defined operation gets `handle`.
    ///
    /// # Safety
    /// Both have `count` items and do not overlap.
    pub unsafe fn combine(
        &self,
        from: *const c_void,
        into: *mut c_void,
        count: usize,
        datatype: &Datatype,
        handle: MPI_Datatype,
    ) -> Answer {
        if count == 0 {
            return Ok(());
        }
        if let Some(kernel) = self.kernel(datatype)? {
            kernel(from.cast(), into.cast(), count);
            return Ok(());
        }
        let Op::Made(made) = self else { unreachable!("a predefined operation has a loop") };
        made.function.call(from, into, count, datatype, handle);
        Ok(())
    }
}

impl Function {
    /// # Safety
    /// As for `combine`.
    unsafe fn call(
        self,
        from: *const c_void,
        into: *mut c_void,
        count: usize,
        datatype: &Datatype,
        mut handle: MPI_Datatype,
    ) {
        let from = from.cast_mut();
        match self {
            Function::Small(function) => {
                // Its count is an int; a block of a collective may be longer.
                const MOST: usize = c_int::MAX as usize;
                let function = function.expect("checked when it was given");
                for first in (0..count).step_by(MOST) {
                    let (mut length, mut handle) = ((count - first).min(MOST) as c_int, handle);
                    let at = first as isize * datatype.extent;
                    let (from, into) =
                        (from.wrapping_byte_offset(at), into.wrapping_byte_offset(at));
                    kept(|| function(from, into, &mut length, &mut handle));
                }
            }
            Function::Large(function) => {
                let function = function.expect("checked when it was given");
                let mut length = count as MPI_Count;
                kept(|| function(from, into, &mut length, &mut handle));
            }
        }
    }

    fn is_null(self) -> bool {
        match self {
            Function::Small(function) => function.is_none(),
            Function::Large(function) => function.is_none(),
        }
    }
}

/// The name of the predefined operation with this number.
pub fn name_of(number: u32) -> Option<&'static str> {
    PREDEFINED.get((number as usize).checked_sub(1)?).map(|(_, _, name)| *name)
}

/// The predefined operation of this name.
pub fn predefined(name: &str) -> Option<Op> {
    let found = PREDEFINED.iter().find(|(_, _, known)| *known == name);
    found.map(|(_, op, name)| Op::Predefined(*op, name))
}

pub fn get(handle: MPI_Op) -> Answer<Op> {
    if let Some((_, op, name)) = PREDEFINED.iter().find(|(known, _, _)| *known == handle) {
        return Ok(Op::Predefined(*op, name));
    }
    MADE.get(handle).map(Op::Made).ok_or_else(|| wrong(handle))
}

#[cold]
fn wrong(handle: MPI_Op) -> crate::errors::Failure {
    let text = match handle {
        MPI_OP_NULL => "argument op is MPI_OP_NULL".into(),
        MPI_REPLACE | MPI_NO_OP => {
            "argument op is MPI_REPLACE or MPI_NO_OP, which are for windows only".into()
        }
        _ => format!("argument op ({handle:#010x}) is not an operation, or was freed"),
    };
    fail(MPI_ERR_OP, text)
}

/// The loop of a predefined operation on such elements, for accumulate operations on windows.
pub fn kernel(handle: MPI_Op, element: Basic) -> Answer<Kernel> {
    let op = get(handle)?;
    let found = match op {
        Op::Predefined(op, _) => kernels::find(op, element),
        Op::Made(_) => {
            let text = "argument op was made with MPI_Op_create; windows accept predefined \
                operations only";
            return Err(fail(MPI_ERR_OP, text));
        }
    };
    found.ok_or_else(|| op.check(named::like(element)).expect_err("there is no such loop"))
}

pub fn create(function: Function, commutes: bool) -> Answer<MPI_Op> {
    if function.is_null() {
        return Err(fail(MPI_ERR_ARG, "argument user_fn is a null pointer; give a function"));
    }
    Ok(MADE.insert(Arc::new(Made { function, commutes })))
}

pub fn free(handle: MPI_Op) -> Answer {
    if let Op::Predefined(_, name) = get(handle)? {
        return Err(fail(MPI_ERR_OP, format!("{name} is predefined, and cannot be freed")));
    }
    MADE.release(handle);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype;

    /// `from op into` for each pair of elements.
    fn combined<T: Copy>(op: MPI_Op, handle: MPI_Datatype, from: &[T], into: &[T]) -> Vec<T> {
        let datatype = datatype::get(handle).unwrap();
        assert_eq!(datatype.extent as usize, size_of::<T>(), "the test's own mistake");
        let mut result = into.to_vec();
        let (from, to) = (from.as_ptr().cast(), result.as_mut_ptr().cast());
        // SAFETY: both are slices of the same length, with elements of this datatype's size.
        unsafe { get(op).unwrap().combine(from, to, into.len(), &datatype, handle).unwrap() };
        result
    }

    #[test]
    fn integers() {
        let (a, b) = ([1, -5, 7], [4, 2, 7]);
        for (op, expected) in [
            (MPI_MAX, [4, 2, 7]),
            (MPI_MIN, [1, -5, 7]),
            (MPI_SUM, [5, -3, 14]),
            (MPI_PROD, [4, -10, 49]),
            (MPI_LAND, [1, 1, 1]),
            (MPI_LXOR, [0, 0, 0]),
            (MPI_BAND, [0, 2, 7]),
            (MPI_BOR, [5, -5, 7]),
            (MPI_BXOR, [5, -7, 0]),
        ] {
            assert_eq!(combined(op, MPI_INT, &a, &b), expected, "{op:x}");
        }
        assert_eq!(combined(MPI_SUM, MPI_UINT8_T, &[200_u8], &[100]), [44], "wraps");
        assert_eq!(combined(MPI_MAX, MPI_UNSIGNED, &[u32::MAX], &[1]), [u32::MAX], "no sign");
        assert_eq!(combined(MPI_PROD, MPI_INTEGER16, &[1_i128 << 80], &[4]), [1 << 82]);
    }

    #[test]
    fn floats_and_complex() {
        assert_eq!(combined(MPI_SUM, MPI_DOUBLE, &[0.5, 1.0], &[0.25, -1.0]), [0.75, 0.0]);
        assert_eq!(combined(MPI_MIN, MPI_FLOAT, &[0.5_f32], &[-0.25]), [-0.25]);
        let (a, b) = ([[1.0, 2.0]], [[3.0, -1.0]]);
        assert_eq!(combined(MPI_PROD, MPI_C_DOUBLE_COMPLEX, &a, &b), [[5.0, 5.0]]);
        assert_eq!(combined(MPI_SUM, MPI_DOUBLE_COMPLEX, &a, &b), [[4.0, 1.0]]);
        assert_eq!(combined(MPI_LOR, MPI_CXX_BOOL, &[true, false], &[false, false]), [true, false]);
    }

    #[test]
    fn equal_values_keep_the_smaller_index() {
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[repr(C)]
        struct DoubleInt(f64, i32);
        let (a, b) =
            ([DoubleInt(1.0, 7), DoubleInt(2.0, 5)], [DoubleInt(1.0, 3), DoubleInt(1.0, 9)]);
        let expected = [DoubleInt(1.0, 3), DoubleInt(2.0, 5)];
        assert_eq!(combined(MPI_MAXLOC, MPI_DOUBLE_INT, &a, &b), expected);
        assert_eq!(combined(MPI_MAXLOC, MPI_DOUBLE_INT, &b, &a), expected);
        let expected = [DoubleInt(1.0, 3), DoubleInt(1.0, 9)];
        assert_eq!(combined(MPI_MINLOC, MPI_DOUBLE_INT, &a, &b), expected);
        assert_eq!(combined(MPI_MINLOC, MPI_2INT, &[[4, 1]], &[[4, 0]]), [[4, 0]]);
        assert_eq!(combined(MPI_MAXLOC, MPI_SHORT_INT, &[[9, 1]], &[[4, 0]]), [[9, 1]]);
    }

    #[test]
    fn a_datatype_without_the_operation_is_refused_by_name() {
        for (op, datatype, name) in [
            (MPI_SUM, MPI_BYTE, "MPI_BYTE"),
            (MPI_MAX, MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX"),
            (MPI_BAND, MPI_DOUBLE, "MPI_DOUBLE"),
            (MPI_LAND, MPI_FLOAT, "MPI_FLOAT"),
            (MPI_MAXLOC, MPI_INT, "MPI_INT"),
            (MPI_SUM, MPI_DOUBLE_INT, "MPI_DOUBLE_INT"),
            (MPI_SUM, MPI_PACKED, "MPI_PACKED"),
        ] {
            let failure = get(op).unwrap().check(&datatype::get(datatype).unwrap()).unwrap_err();
            assert!(failure.code == MPI_ERR_OP && failure.text.contains(name), "{failure}");
        }
    }

    #[test]
    fn every_predefined_operation_supports_the_standards_datatypes() {
        let integers = [MPI_CHAR, MPI_LONG, MPI_UNSIGNED_SHORT, MPI_INTEGER, MPI_AINT, MPI_COUNT];
        let floats = [MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL8];
        let complex = [MPI_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_FLOAT_COMPLEX];
        let pairs = [MPI_LONG_INT, MPI_LONG_DOUBLE_INT, MPI_2REAL, MPI_2DOUBLE_PRECISION];
        let supports = |op: MPI_Op, handles: &[MPI_Datatype]| {
            for handle in handles {
                get(op).unwrap().check(&datatype::get(*handle).unwrap()).unwrap();
            }
        };
        for op in [MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD] {
            supports(op, &integers);
            supports(op, &floats);
        }
        for op in [MPI_SUM, MPI_PROD] {
            supports(op, &complex);
        }
        for op in [MPI_LAND, MPI_LOR, MPI_LXOR] {
            supports(op, &integers);
            supports(op, &[MPI_LOGICAL, MPI_C_BOOL]);
        }
        for op in [MPI_BAND, MPI_BOR, MPI_BXOR] {
            supports(op, &integers);
            supports(op, &[MPI_BYTE]);
        }
        for op in [MPI_MINLOC, MPI_MAXLOC] {
            supports(op, &pairs);
        }
    }
}
