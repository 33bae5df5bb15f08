//! What reductions do with one element: numbers of C and Fortran, complex ones, long double.

pub trait Number: Copy {
    const ONE: Self;
    const ZERO: Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// False where the two have no order (not a number).
    fn is_less(self, other: Self) -> bool;
    fn is_zero(self) -> bool;
}

macro_rules! integers {
    ($($kind:ty)*) => { $(
        impl Number for $kind {
            const ONE: Self = 1;
            const ZERO: Self = 0;
            // As the machine does it: an overflow wraps.
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            fn is_less(self, other: Self) -> bool { self < other }
            fn is_zero(self) -> bool { self == 0 }
        }
    )* };
}

integers!(i8 i16 i32 i64 i128 u8 u16 u32 u64 u128);

macro_rules! floats {
    ($($kind:ty)*) => { $(
        impl Number for $kind {
            const ONE: Self = 1.0;
            const ZERO: Self = 0.0;
            fn plus(self, other: Self) -> Self { self + other }
            fn minus(self, other: Self) -> Self { self - other }
            fn times(self, other: Self) -> Self { self * other }
            fn is_less(self, other: Self) -> bool { self < other }
            fn is_zero(self) -> bool { self == 0.0 }
        }
    )* };
}

floats!(f32 f64);

/// Real and imaginary part, as C and Fortran lay them out. It has no order.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Complex<T>(pub T, pub T);

impl<T: Number> Complex<T> {
    pub fn plus(self, other: Self) -> Self {
        Complex(self.0.plus(other.0), self.1.plus(other.1))
    }

    pub fn times(self, other: Self) -> Self {
        let real = self.0.times(other.0).minus(self.1.times(other.1));
        Complex(real, self.0.times(other.1).plus(self.1.times(other.0)))
    }
}

/// `long double` of x86: 80 bits in 16 bytes. Rust has no such type; the machine does.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct LongDouble([u8; 16]);

#[cfg(target_arch = "x86_64")]
macro_rules! x87 {
    ($instruction:literal, $left:expr, $right:expr) => {{
        let mut result = LongDouble::ZERO;
        // SAFETY: reads and writes ten bytes of three values of sixteen; the stack of the x87,
        // all of which is named, is left as it was.
        unsafe {
            std::arch::asm!(
                "fld tbyte ptr [{left}]",
                "fld tbyte ptr [{right}]",
                $instruction,
                "fstp tbyte ptr [{result}]",
                left = in(reg) &$left,
                right = in(reg) &$right,
                result = in(reg) &mut result,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        result
    }};
}

#[cfg(target_arch = "x86_64")]
impl Number for LongDouble {
    // The leading bit of the mantissa is written out, and the exponent is biased by 0x3fff.
    const ONE: Self = LongDouble([0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f, 0, 0, 0, 0, 0, 0]);
    const ZERO: Self = LongDouble([0; 16]);

    fn plus(self, other: Self) -> Self {
        x87!("faddp st(1), st", self, other)
    }

    fn minus(self, other: Self) -> Self {
        x87!("fsubp st(1), st", self, other)
    }

    fn times(self, other: Self) -> Self {
        x87!("fmulp st(1), st", self, other)
    }

    fn is_less(self, other: Self) -> bool {
        let above: u8;
        // SAFETY: as above; it compares `other`, which is on top, with `self`.
        unsafe {
            std::arch::asm!(
                "fld tbyte ptr [{left}]",
                "fld tbyte ptr [{right}]",
                "fcomip st, st(1)",
                "fstp st(0)",
                "seta {above}",
                left = in(reg) &self,
                right = in(reg) &other,
                above = out(reg_byte) above,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        above != 0
    }

    fn is_zero(self) -> bool {
        !self.is_less(Self::ZERO) && !Self::ZERO.is_less(self)
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn long_double_computes_with_80_bits() {
        let (one, two) = (LongDouble::ONE, LongDouble::ONE.plus(LongDouble::ONE));
        assert!(one.is_less(two) && !two.is_less(one) && !one.is_less(one));
        assert!(two.minus(one).minus(one).is_zero() && !one.is_zero());
        assert!(two.times(two).minus(two).minus(two).is_zero());
        let mut large = one;
        (0..63).for_each(|_| large = large.plus(large));
        assert!(!large.plus(one).minus(large).is_zero(), "2^63 + 1 needs 64 bits of mantissa");
    }
}
