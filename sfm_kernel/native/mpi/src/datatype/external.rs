//! The representation "external32": elements that any machine can read, the most significant byte
//! first, in sizes that the standard fixes (MPI 4.1, section 14.5.2).

use crate::errors::{fail, Answer};
use crate::handles::*;

use super::named::{Basic, Pair};
use super::Signature;

/// The representation of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum External {
    /// The native one, with each unit of this many bytes reversed.
    Reversed(usize),
    /// An integer of this many bytes, which may be fewer than in the native representation; true:
    /// signed.
    Integer(usize, bool),
    /// C's `long double`s, each in the quadruple precision of IEEE 754.
    Quads,
}

use External::*;

impl External {
    pub fn of(handle: MPI_Datatype, basic: Basic) -> External {
        match (handle, basic) {
            (MPI_LONG, _) => Integer(4, true),
            (MPI_UNSIGNED_LONG, _) => Integer(4, false),
            (MPI_WCHAR, _) => Integer(2, false),
            (_, Basic::LongDouble | Basic::LongDoubleComplex) => Quads,
            (_, Basic::Complex(bytes)) => Reversed(bytes / 2),
            _ => Reversed(basic.bytes()),
        }
    }

    /// The representations of a pair's value and index.
    pub fn of_pair(pair: Pair) -> [External; 2] {
        let value = match pair {
            Pair::Long => Integer(4, true),
            Pair::LongDouble => Quads,
            _ => Reversed(pair.shape().0),
        };
        [value, Reversed(pair.shape().1)]
    }

    fn bytes(self, here: usize) -> usize {
        match self {
            Integer(bytes, _) => bytes,
            Reversed(_) | Quads => here,
        }
    }

    /// Convert an element from the native representation.
    fn write(self, here: &[u8], to: &mut Vec<u8>) -> Answer {
        match self {
            Reversed(unit) => here.chunks(unit).for_each(|element| to.extend(element.iter().rev())),
            Integer(bytes, signed) => {
                let filler = if signed && here[bytes - 1] & 0x80 != 0 { 0xff } else { 0 };
                if here[bytes..].iter().any(|byte| *byte != filler) {
                    let text = format!(
                        "a number does not fit into the {bytes} bytes that external32 has for it"
                    );
                    return Err(fail(MPI_ERR_CONVERSION, text));
                }
                to.extend(here[..bytes].iter().rev());
            }
            Quads => here.chunks(16).for_each(|element| to.extend(quad_of(element).to_be_bytes())),
        }
        Ok(())
    }

    /// Convert an element to the native representation, which has `here` bytes.
    fn read(self, from: &[u8], here: usize, to: &mut Vec<u8>) {
        match self {
            Reversed(unit) => from.chunks(unit).for_each(|element| to.extend(element.iter().rev())),
            Integer(bytes, signed) => {
                to.extend(from.iter().rev());
                let filler = if signed && from[0] & 0x80 != 0 { 0xff } else { 0 };
                to.extend(std::iter::repeat_n(filler, here - bytes));
            }
            Quads => from.chunks(16).for_each(|element| to.extend(extended_of(element))),
        }
    }
}

/// x86's 80 bits include the leading one of the fraction, which quadruple precision omits.
fn quad_of(extended: &[u8]) -> u128 {
    let fraction = u64::from_le_bytes(extended[..8].try_into().expect("eight"));
    let sign_and_exponent = u16::from_le_bytes(extended[8..10].try_into().expect("two"));
    u128::from(sign_and_exponent) << 112 | u128::from(fraction & (u64::MAX >> 1)) << 49
}

fn extended_of(quad: &[u8]) -> [u8; 16] {
    let quad = u128::from_be_bytes(quad.try_into().expect("sixteen"));
    let sign_and_exponent = (quad >> 112) as u16;
    let leading = u64::from(sign_and_exponent & 0x7fff != 0) << 63;
    let fraction = (quad >> 49) as u64 & (u64::MAX >> 1) | leading;
    let mut extended = [0; 16];
    extended[..8].copy_from_slice(&fraction.to_le_bytes());
    extended[8..10].copy_from_slice(&sign_and_exponent.to_le_bytes());
    extended
}

impl Signature {
    pub fn external_bytes(&self) -> usize {
        match self {
            Signature::Basic(bytes, external) => external.bytes(*bytes),
            Signature::Repeat(count, body) => count * body.external_bytes(),
            Signature::Sequence(all) => all.iter().map(|child| child.external_bytes()).sum(),
        }
    }

    /// Convert the packed bytes of one item, and remove them from `here`.
    pub fn write_external(&self, here: &mut &[u8], to: &mut Vec<u8>) -> Answer {
        match self {
            Signature::Basic(bytes, external) => external.write(split_front(here, *bytes), to),
            Signature::Repeat(count, body) => {
                (0..*count).try_for_each(|_| body.write_external(here, to))
            }
            Signature::Sequence(all) => {
                all.iter().try_for_each(|child| child.write_external(here, to))
            }
        }
    }

    /// Convert one item back; if it is cut off, only its complete elements.
    pub fn read_external(&self, from: &mut &[u8], to: &mut Vec<u8>) {
        match self {
            Signature::Basic(bytes, external) if from.len() < external.bytes(*bytes) => *from = &[],
            Signature::Basic(bytes, external) => {
                external.read(split_front(from, external.bytes(*bytes)), *bytes, to);
            }
            Signature::Repeat(count, body) => {
                (0..*count).for_each(|_| body.read_external(from, to))
            }
            Signature::Sequence(all) => all.iter().for_each(|child| child.read_external(from, to)),
        }
    }
}

fn split_front<'a>(from: &mut &'a [u8], bytes: usize) -> &'a [u8] {
    let (first, rest) = from.split_at(bytes);
    *from = rest;
    first
}
