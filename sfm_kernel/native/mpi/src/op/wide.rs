//! Numbers of sixteen bytes on x86: C's `long double`, and the quadruple precision of IEEE 754.

use std::arch::x86_64::__m128i;

use super::number::Number;

/// `long double` of x86: 80 bits in 16 bytes. The processor has it, but Rust has no such type.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct LongDouble([u8; 16]);

macro_rules! x87 {
    ($instruction:literal, $left:expr, $right:expr) => {{
        let mut result = LongDouble::ZERO;
        // SAFETY: reads and writes ten bytes of three values of sixteen; the x87 stack, all of
        // which is declared, is restored.
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

impl Number for LongDouble {
    // The leading bit of the mantissa is explicit, and the exponent is biased by 0x3fff.
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
        // SAFETY: as above; it compares `other`, on top of the stack, with `self`.
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

/// Quadruple precision, computed by functions of the compiler's runtime.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Quad(__m128i);

// Declared without their arguments: Rust has no type that is passed like C's `_Float128`.
extern "C" {
    fn __addtf3();
    fn __subtf3();
    fn __multf3();
    fn __lttf2();
    fn __eqtf2();
}

/// Call a function of two numbers; `$result` receives its result.
macro_rules! call {
    ($function:ident($left:expr, $right:expr), $($result:tt)*) => {
        // SAFETY: a C function of two values of sixteen bytes, passed in xmm0 and xmm1.
        unsafe {
            std::arch::asm!(
                "call {function}",
                function = sym $function,
                in("xmm1") $right.0,
                $($result)*,
                clobber_abi("C"),
            )
        }
    };
}

macro_rules! number {
    ($function:ident, $left:expr, $right:expr) => {{
        let result;
        call!($function($left, $right), inlateout("xmm0") $left.0 => result);
        Quad(result)
    }};
}

/// Less than zero, zero, or more than zero.
macro_rules! comparison {
    ($function:ident, $left:expr, $right:expr) => {{
        let result: i32;
        call!($function($left, $right), inlateout("xmm0") $left.0 => _, lateout("eax") result);
        result
    }};
}

impl Quad {
    const fn of(bits: u128) -> Quad {
        // SAFETY: both are sixteen bytes, for which any value is valid.
        Quad(unsafe { std::mem::transmute::<u128, __m128i>(bits) })
    }
}

impl Number for Quad {
    const ONE: Self = Quad::of(0x3fff << 112);
    const ZERO: Self = Quad::of(0);

    fn plus(self, other: Self) -> Self {
        number!(__addtf3, self, other)
    }

    fn minus(self, other: Self) -> Self {
        number!(__subtf3, self, other)
    }

    fn times(self, other: Self) -> Self {
        number!(__multf3, self, other)
    }

    fn is_less(self, other: Self) -> bool {
        comparison!(__lttf2, self, other) < 0
    }

    fn is_zero(self) -> bool {
        comparison!(__eqtf2, self, Self::ZERO) == 0
    }
}

#[cfg(test)]
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

    #[test]
    fn quadruple_precision_computes_with_113_bits() {
        let (one, two) = (Quad::ONE, Quad::ONE.plus(Quad::ONE));
        assert!(one.is_less(two) && !two.is_less(one) && !one.is_less(one));
        assert!(two.times(two).minus(two).minus(two).is_zero() && !one.is_zero());
        let mut large = one;
        (0..112).for_each(|_| large = large.plus(large));
        assert!(!large.plus(one).minus(large).is_zero(), "2^112 + 1 needs 113 bits of mantissa");
    }
}
