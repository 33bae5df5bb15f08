//! Values that can be compared without Python: the keys of matching.

use crate::packet::{u64_at, Attribute, Kind};

/// A value whose `==` is known here. Two keys are equal exactly when Python says `a == b`:
/// `1 == 1.0 == True`, `-0.0 == 0.0`, and text never equals bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    None,
    Int(i64),
    /// A float that is no integer in the range of i64; its bits (never NaN).
    Float(u64),
    Str(Box<str>),
    Bytes(Box<[u8]>),
}

/// The value that a template wants, where the caller has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted<'a> {
    None,
    Int(i64),
    /// As in `Key`.
    Float(u64),
    Str(&'a str),
    Bytes(&'a [u8]),
}

impl Wanted<'_> {
    pub fn key(&self) -> Key {
        match *self {
            Wanted::None => Key::None,
            Wanted::Int(value) => Key::Int(value),
            Wanted::Float(bits) => Key::Float(bits),
            Wanted::Str(text) => Key::Str(text.into()),
            Wanted::Bytes(bytes) => Key::Bytes(bytes.into()),
        }
    }
}

/// How a message's value stands to native comparison.
pub enum Keyed {
    Key(Key),
    /// NaN: equal to nothing that is native.
    Nothing,
    /// Only Python can compare it: a pickled object, or a number beyond 64 bits.
    Opaque,
}

/// The key of a float, by Python's rules for comparing with integers.
pub fn float_key(value: f64) -> Keyed {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0; // 2**63
    if value.is_nan() {
        Keyed::Nothing
    } else if value.is_infinite() {
        Keyed::Key(Key::Float(value.to_bits()))
    } else if value.abs() >= LIMIT {
        Keyed::Opaque // it may equal an integer beyond i64
    } else if value.fract() == 0.0 {
        Keyed::Key(Key::Int(value as i64))
    } else {
        Keyed::Key(Key::Float(value.to_bits()))
    }
}

/// The key of an attribute's value.
pub fn key_of(one: &Attribute<'_>) -> Keyed {
    match one.kind {
        Kind::None => Keyed::Key(Key::None),
        Kind::False => Keyed::Key(Key::Int(0)),
        Kind::True => Keyed::Key(Key::Int(1)),
        Kind::Int => Keyed::Key(Key::Int(u64_at(one.value, 0) as i64)),
        Kind::Float => float_key(f64::from_bits(u64_at(one.value, 0))),
        Kind::Str => Keyed::Key(Key::Str(text(one.value).into())),
        Kind::Bytes => Keyed::Key(Key::Bytes(one.value.into())),
        Kind::BigInt
        | Kind::Pickle
        | Kind::BigStr
        | Kind::BigBytes
        | Kind::BigPickle
        | Kind::Array => Keyed::Opaque,
    }
}

/// What comparing a template's key with a message's value gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Yes,
    No,
    /// Ask Python.
    Unknown,
}

/// Compare without building a key.
pub fn compare(wanted: &Wanted<'_>, one: &Attribute<'_>) -> Verdict {
    let equal = match (wanted, one.kind) {
        (Wanted::None, Kind::None) => true,
        (Wanted::Int(0), Kind::False) | (Wanted::Int(1), Kind::True) => true,
        (Wanted::Int(value), Kind::Int) => *value == u64_at(one.value, 0) as i64,
        (Wanted::Int(_) | Wanted::Float(_), Kind::Float) => {
            return match float_key(f64::from_bits(u64_at(one.value, 0))) {
                Keyed::Key(key) if key == wanted.key() => Verdict::Yes,
                Keyed::Opaque => Verdict::Unknown,
                _ => Verdict::No,
            }
        }
        (Wanted::Str(value), Kind::Str) => value.as_bytes() == one.value,
        (Wanted::Bytes(value), Kind::Bytes) => *value == one.value,
        (
            _,
            Kind::BigInt
            | Kind::Pickle
            | Kind::BigStr
            | Kind::BigBytes
            | Kind::BigPickle
            | Kind::Array,
        ) => return Verdict::Unknown,
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
