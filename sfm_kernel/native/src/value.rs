//! Values that can be compared without Python: the basis of matching.

use crate::packet::{u64_at, Attribute, Kind};

/// A value whose `==` is known natively. Two are equal exactly when Python says `a == b`: `1 == 1.0
/// == True`, `-0.0 == 0.0`, and text never equals bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar<'a> {
    None,
    Int(i64),
    /// A float that is no integer in the range of i64; its bits (never NaN).
    Float(u64),
    Str(&'a str),
    Bytes(&'a [u8]),
}

/// A message's value as native comparison sees it.
pub enum Native<'a> {
    Scalar(Scalar<'a>),
    /// NaN: equal to nothing that is native.
    Nothing,
    /// Only Python can compare it: a pickled object, or a number beyond 64 bits.
    Opaque,
}

/// A float, by Python's rules for comparing with integers.
pub fn from_float(value: f64) -> Native<'static> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0; // 2**63
    if value.is_nan() {
        Native::Nothing
    } else if value.is_infinite() {
        Native::Scalar(Scalar::Float(value.to_bits()))
    } else if value.abs() >= LIMIT {
        Native::Opaque // it may equal an integer beyond i64
    } else if value.fract() == 0.0 {
        Native::Scalar(Scalar::Int(value as i64))
    } else {
        Native::Scalar(Scalar::Float(value.to_bits()))
    }
}

/// An attribute's value.
pub fn from_attribute<'a>(attribute: &Attribute<'a>) -> Native<'a> {
    use Kind::{Array, BigBytes, BigInt, BigPickle, BigStr, Pickle};
    match attribute.kind {
        Kind::None => Native::Scalar(Scalar::None),
        Kind::False => Native::Scalar(Scalar::Int(0)),
        Kind::True => Native::Scalar(Scalar::Int(1)),
        Kind::Int => Native::Scalar(Scalar::Int(u64_at(attribute.value, 0) as i64)),
        Kind::Float => from_float(f64::from_bits(u64_at(attribute.value, 0))),
        Kind::Str => Native::Scalar(Scalar::Str(text(attribute.value))),
        Kind::Bytes => Native::Scalar(Scalar::Bytes(attribute.value)),
        BigInt | Pickle | BigStr | BigBytes | BigPickle | Array => Native::Opaque,
    }
}

/// The result of comparing a template's value with a message's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Yes,
    No,
    /// Ask Python.
    Unknown,
}

/// Compare a template's value with a message's.
pub fn compare(expected: &Scalar<'_>, attribute: &Attribute<'_>) -> Verdict {
    use Kind::{Array, BigBytes, BigInt, BigPickle, BigStr, Pickle};
    let equal = match (expected, attribute.kind) {
        (Scalar::None, Kind::None) => true,
        (Scalar::Int(0), Kind::False) | (Scalar::Int(1), Kind::True) => true,
        (Scalar::Int(value), Kind::Int) => *value == u64_at(attribute.value, 0) as i64,
        (Scalar::Int(_) | Scalar::Float(_), Kind::Float) => {
            return match from_float(f64::from_bits(u64_at(attribute.value, 0))) {
                Native::Scalar(value) if value == *expected => Verdict::Yes,
                Native::Opaque => Verdict::Unknown,
                _ => Verdict::No,
            }
        }
        (Scalar::Str(value), Kind::Str) => value.as_bytes() == attribute.value,
        (Scalar::Bytes(value), Kind::Bytes) => *value == attribute.value,
        (_, BigInt | Pickle | BigStr | BigBytes | BigPickle | Array) => return Verdict::Unknown,
        _ => false,
    };
    if equal {
        Verdict::Yes
    } else {
        Verdict::No
    }
}

/// The text of a validated `Str` value.
pub fn text(value: &[u8]) -> &str {
    // SAFETY: `packet::validate` has checked that a Str value is UTF-8.
    unsafe { std::str::from_utf8_unchecked(value) }
}
