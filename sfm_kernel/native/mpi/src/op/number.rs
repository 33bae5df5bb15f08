//! Arithmetic on single elements: the numbers of C and Fortran, and complex ones.

pub trait Number: Copy {
    const ONE: Self;
    const ZERO: Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// False if the two have no order (not a number).
    fn is_less(self, other: Self) -> bool;
    fn is_zero(self) -> bool;
}

macro_rules! integers {
    ($($kind:ty)*) => { $(
        impl Number for $kind {
            const ONE: Self = 1;
            const ZERO: Self = 0;
            // As in the processor: an overflow wraps.
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

/// Real and imaginary part, in the layout of C and Fortran. Complex numbers have no order.
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

/// IEEE 754 half precision: computed as `float`, and rounded to nearest, ties to even.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Half(u16);

impl From<Half> for f32 {
    fn from(half: Half) -> f32 {
        let (exponent, fraction) = (u32::from(half.0 >> 10 & 0x1f), u32::from(half.0 & 0x3ff));
        let size = match exponent {
            0 => fraction as f32 * 2_f32.powi(-24),
            0x1f => f32::from_bits(0x7f80_0000 | fraction << 13),
            _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
        };
        size.copysign(if half.0 >> 15 == 0 { 1.0 } else { -1.0 })
    }
}

impl From<f32> for Half {
    fn from(value: f32) -> Half {
        let (bits, sign) = (value.to_bits() & 0x7fff_ffff, (value.to_bits() >> 16 & 0x8000) as u16);
        let size = if bits > 0x7f80_0000 {
            0x7e00 // not a number
        } else if bits >= 0x477f_f000 {
            0x7c00 // nearer to infinity than to the largest number
        } else if bits < 0x3880_0000 {
            // Without a leading one: the unit of the last digit is 2^-24.
            (value.abs() * 2_f32.powi(24)).round_ties_even() as u16
        } else {
            let down = bits - (112 << 23);
            ((down + 0xfff + (down >> 13 & 1)) >> 13) as u16
        };
        Half(sign | size)
    }
}

/// The upper half of a `float`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct BrainFloat(u16);

impl From<BrainFloat> for f32 {
    fn from(brain: BrainFloat) -> f32 {
        f32::from_bits(u32::from(brain.0) << 16)
    }
}

impl From<f32> for BrainFloat {
    fn from(value: f32) -> BrainFloat {
        let bits = value.to_bits();
        match value.is_nan() {
            true => BrainFloat((bits >> 16) as u16 | 0x40),
            false => BrainFloat(((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16),
        }
    }
}

macro_rules! short_floats {
    ($($kind:ident: $one:literal)*) => { $(
        impl Number for $kind {
            const ONE: Self = $kind($one);
            const ZERO: Self = $kind(0);
            fn plus(self, other: Self) -> Self { (f32::from(self) + f32::from(other)).into() }
            fn minus(self, other: Self) -> Self { (f32::from(self) - f32::from(other)).into() }
            fn times(self, other: Self) -> Self { (f32::from(self) * f32::from(other)).into() }
            fn is_less(self, other: Self) -> bool { f32::from(self) < f32::from(other) }
            fn is_zero(self) -> bool { self.0 & 0x7fff == 0 }
        }
    )* };
}

short_floats!(Half: 0x3c00 BrainFloat: 0x3f80);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_a_float_and_back() {
        for bits in 0..=u16::MAX {
            let (float, is_nan) = (f32::from(Half(bits)), bits & 0x7fff > 0x7c00);
            assert_eq!(float.is_nan(), is_nan);
            assert!(is_nan || Half::from(float).0 == bits, "{bits:#06x} {float}");
            let brain = f32::from(BrainFloat(bits));
            assert!(brain.is_nan() || BrainFloat::from(brain).0 == bits);
        }
    }

    #[test]
    fn floats_between_two_halves_round_to_the_nearest() {
        let half = |value: f32| Half::from(value).0;
        assert_eq!((half(1.0 + 0.000_48), half(1.0 + 0.000_49)), (0x3c00, 0x3c01));
        assert_eq!((half(65519.0), half(65520.0), half(-1e9)), (0x7bff, 0x7c00, 0xfc00));
        assert_eq!((half(2_f32.powi(-25)), half(3.0 * 2_f32.powi(-25))), (0, 2), "ties to even");
        assert_eq!(half(2_f32.powi(-14) - 2_f32.powi(-26)), 0x0400, "rounds up to a leading one");
        assert_eq!(BrainFloat::from(1.0 + 2_f32.powi(-8)).0, 0x3f80);
    }
}
