//! The loops of the predefined operations: into[i] = from[i] op into[i].

use super::number::{BrainFloat, Complex, Half, Number};
use super::Predefined::{self, *};
use crate::datatype::named::{Basic, Pair};

/// `from`, `into`, and the number of elements of each. They may be unaligned, but do not overlap.
pub type Kernel = unsafe fn(*const u8, *mut u8, usize);

/// # Safety
/// Both have `count` elements, which may be unaligned, and do not overlap.
unsafe fn each<T: Copy>(from: *const u8, into: *mut u8, count: usize, f: impl Fn(T, T) -> T) {
    let (from, into) = (from.cast::<T>(), into.cast::<T>());
    for nth in 0..count {
        let value = f(from.add(nth).read_unaligned(), into.add(nth).read_unaligned());
        into.add(nth).write_unaligned(value);
    }
}

macro_rules! kernel {
    ($kind:ty, $f:expr) => {
        // SAFETY: the caller of a kernel promises what `each` demands.
        Some(|from, into, count| unsafe { each::<$kind>(from, into, count, $f) })
    };
}

fn truth<T: Number>(is: bool) -> T {
    if is {
        T::ONE
    } else {
        T::ZERO
    }
}

fn ordered<T: Number>(op: Predefined) -> Option<Kernel> {
    match op {
        Max => kernel!(T, |a: T, b: T| if b.is_less(a) { a } else { b }),
        Min => kernel!(T, |a: T, b: T| if a.is_less(b) { a } else { b }),
        Sum => kernel!(T, |a: T, b: T| a.plus(b)),
        Prod => kernel!(T, |a: T, b: T| a.times(b)),
        _ => None,
    }
}

fn logical<T: Number>(op: Predefined) -> Option<Kernel> {
    match op {
        Land => kernel!(T, |a: T, b: T| truth(!a.is_zero() && !b.is_zero())),
        Lor => kernel!(T, |a: T, b: T| truth(!a.is_zero() || !b.is_zero())),
        Lxor => kernel!(T, |a: T, b: T| truth(a.is_zero() != b.is_zero())),
        _ => None,
    }
}

macro_rules! integer {
    ($kind:ty, $op:expr) => {
        match $op {
            Band => kernel!($kind, |a, b| a & b),
            Bor => kernel!($kind, |a, b| a | b),
            Bxor => kernel!($kind, |a, b| a ^ b),
            op => ordered::<$kind>(op).or_else(|| logical::<$kind>(op)),
        }
    };
}

fn complex<T: Number>(op: Predefined) -> Option<Kernel> {
    match op {
        Sum => kernel!(Complex<T>, |a: Complex<T>, b: Complex<T>| a.plus(b)),
        Prod => kernel!(Complex<T>, |a: Complex<T>, b: Complex<T>| a.times(b)),
        _ => None,
    }
}

/// Value and index, in C's layout of a struct.
#[derive(Clone, Copy)]
#[repr(C)]
struct Located<V, I>(V, I);

/// The larger or smaller value; of equal ones, the one with the smaller index.
fn located<V: Number, I: Number>(op: Predefined) -> Option<Kernel> {
    type One<V, I> = Located<V, I>;
    fn first<V: Number, I: Number>(a: One<V, I>, b: One<V, I>) -> One<V, I> {
        if a.1.is_less(b.1) {
            a
        } else {
            b
        }
    }
    match op {
        Maxloc => kernel!(One<V, I>, |a: One<V, I>, b: One<V, I>| {
            match (b.0.is_less(a.0), a.0.is_less(b.0)) {
                (true, _) => a,
                (_, true) => b,
                _ => first(a, b),
            }
        }),
        Minloc => kernel!(One<V, I>, |a: One<V, I>, b: One<V, I>| {
            match (a.0.is_less(b.0), b.0.is_less(a.0)) {
                (true, _) => a,
                (_, true) => b,
                _ => first(a, b),
            }
        }),
        _ => None,
    }
}

/// The loop for an operation on elements of this kind, if the operation is defined for them.
pub fn find(op: Predefined, basic: Basic) -> Option<Kernel> {
    match basic {
        Basic::Signed(1) => integer!(i8, op),
        Basic::Signed(2) => integer!(i16, op),
        Basic::Signed(4) => integer!(i32, op),
        Basic::Signed(8) => integer!(i64, op),
        Basic::Signed(16) => integer!(i128, op),
        Basic::Unsigned(1) => integer!(u8, op),
        Basic::Unsigned(2) => integer!(u16, op),
        Basic::Unsigned(4) => integer!(u32, op),
        Basic::Unsigned(8) => integer!(u64, op),
        Basic::Byte if [Band, Bor, Bxor].contains(&op) => integer!(u8, op),
        Basic::Float(2) => ordered::<Half>(op),
        Basic::BrainFloat => ordered::<BrainFloat>(op),
        Basic::Float(4) => ordered::<f32>(op),
        Basic::Float(8) => ordered::<f64>(op),
        Basic::Complex(4) => complex::<Half>(op),
        Basic::Complex(8) => complex::<f32>(op),
        Basic::Complex(16) => complex::<f64>(op),
        Basic::Logical(1) => logical::<u8>(op),
        Basic::Logical(2) => logical::<u16>(op),
        Basic::Logical(4) => logical::<u32>(op),
        Basic::Logical(8) => logical::<u64>(op),
        Basic::Logical(16) => logical::<u128>(op),
        Basic::Pair(Pair::Float) => located::<f32, i32>(op),
        Basic::Pair(Pair::Double) => located::<f64, i32>(op),
        Basic::Pair(Pair::Long) => located::<i64, i32>(op),
        Basic::Pair(Pair::Short) => located::<i16, i32>(op),
        Basic::Pair(Pair::Int) => located::<i32, i32>(op),
        Basic::Pair(Pair::TwoReals) => located::<f32, f32>(op),
        Basic::Pair(Pair::TwoDoubles) => located::<f64, f64>(op),
        other => wide(op, other),
    }
}

/// `long double`, and the quadruple precision of IEEE 754.
#[cfg(target_arch = "x86_64")]
fn wide(op: Predefined, basic: Basic) -> Option<Kernel> {
    use super::wide::{LongDouble, Quad};
    match basic {
        Basic::Float(16) => ordered::<Quad>(op),
        Basic::Complex(32) => complex::<Quad>(op),
        Basic::LongDouble => ordered::<LongDouble>(op),
        Basic::LongDoubleComplex => complex::<LongDouble>(op),
        Basic::Pair(Pair::LongDouble) => located::<LongDouble, i32>(op),
        _ => None,
    }
}

/// On other processors these are other types.
#[cfg(not(target_arch = "x86_64"))]
fn wide(_op: Predefined, _basic: Basic) -> Option<Kernel> {
    None
}
