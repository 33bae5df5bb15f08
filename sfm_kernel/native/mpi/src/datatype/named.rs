//! The predefined datatypes: their basic elements, and a table of them by handle.

use std::sync::LazyLock;

use super::external::External;
use super::{Datatype, Signature};
use crate::datatype::layout::Layout;
use crate::handles::*;

/// The kind of an element for a reduction; numbers are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basic {
    Signed(usize),
    Unsigned(usize),
    /// The IEEE 754 format of this many bytes.
    Float(usize),
    /// The upper half of a Float(4).
    BrainFloat,
    /// The C compiler's `long double`: 16 bytes, of which x86 uses 10.
    LongDouble,
    /// Two of Float(bytes / 2).
    Complex(usize),
    LongDoubleComplex,
    /// True unless all bytes are zero.
    Logical(usize),
    Byte,
    /// A value and an index.
    Pair(Pair),
    /// Not an operand of any reduction: text, packed data.
    Opaque(usize),
    /// MPI_LB and MPI_UB, which the oldest programs put into a struct.
    Lower,
    Upper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    Float,
    Double,
    Long,
    Short,
    Int,
    LongDouble,
    TwoReals,
    TwoDoubles,
}

use Basic::*;

struct Entry {
    name: &'static str,
    handle: MPI_Datatype,
    basic: Basic,
}

macro_rules! table {
    ($($name:ident: $basic:expr),* $(,)?) => {
        &[$(Entry { name: stringify!($name), handle: $name, basic: $basic }),*]
    };
}

const NAMED: &[Entry] = table! {
    MPI_CHAR: Signed(1), MPI_SIGNED_CHAR: Signed(1), MPI_UNSIGNED_CHAR: Unsigned(1),
    MPI_BYTE: Byte, MPI_WCHAR: Opaque(4), MPI_PACKED: Opaque(1),
    MPI_SHORT: Signed(2), MPI_UNSIGNED_SHORT: Unsigned(2),
    MPI_INT: Signed(4), MPI_UNSIGNED: Unsigned(4),
    MPI_LONG: Signed(8), MPI_UNSIGNED_LONG: Unsigned(8),
    MPI_LONG_LONG_INT: Signed(8), MPI_UNSIGNED_LONG_LONG: Unsigned(8),
    MPI_FLOAT: Float(4), MPI_DOUBLE: Float(8), MPI_LONG_DOUBLE: LongDouble,
    MPI_INT8_T: Signed(1), MPI_INT16_T: Signed(2), MPI_INT32_T: Signed(4), MPI_INT64_T: Signed(8),
    MPI_UINT8_T: Unsigned(1), MPI_UINT16_T: Unsigned(2), MPI_UINT32_T: Unsigned(4),
    MPI_UINT64_T: Unsigned(8),
    MPI_AINT: Signed(8), MPI_OFFSET: Signed(8), MPI_COUNT: Signed(8),
    MPI_C_BOOL: Logical(1), MPI_C_COMPLEX: Complex(8), MPI_C_DOUBLE_COMPLEX: Complex(16),
    MPI_C_LONG_DOUBLE_COMPLEX: LongDoubleComplex,
    MPI_CXX_BOOL: Logical(1), MPI_CXX_FLOAT_COMPLEX: Complex(8),
    MPI_CXX_DOUBLE_COMPLEX: Complex(16), MPI_CXX_LONG_DOUBLE_COMPLEX: LongDoubleComplex,
    MPI_CHARACTER: Opaque(1), MPI_INTEGER: Signed(4), MPI_REAL: Float(4), MPI_LOGICAL: Logical(4),
    MPI_COMPLEX: Complex(8), MPI_DOUBLE_PRECISION: Float(8), MPI_DOUBLE_COMPLEX: Complex(16),
    MPI_INTEGER1: Signed(1), MPI_INTEGER2: Signed(2), MPI_INTEGER4: Signed(4),
    MPI_INTEGER8: Signed(8), MPI_INTEGER16: Signed(16),
    MPI_REAL2: Float(2), MPI_REAL4: Float(4), MPI_REAL8: Float(8), MPI_REAL16: Float(16),
    MPI_COMPLEX4: Complex(4), MPI_COMPLEX8: Complex(8), MPI_COMPLEX16: Complex(16),
    MPI_COMPLEX32: Complex(32), MPIX_C_FLOAT16: Float(2), MPIX_BFLOAT16: BrainFloat,
    MPI_LOGICAL1: Logical(1), MPI_LOGICAL2: Logical(2), MPI_LOGICAL4: Logical(4),
    MPI_LOGICAL8: Logical(8), MPI_LOGICAL16: Logical(16),
    MPI_2INT: Pair(Pair::Int), MPI_2INTEGER: Pair(Pair::Int), MPI_2REAL: Pair(Pair::TwoReals),
    MPI_2DOUBLE_PRECISION: Pair(Pair::TwoDoubles),
    MPI_FLOAT_INT: Pair(Pair::Float), MPI_DOUBLE_INT: Pair(Pair::Double),
    MPI_LONG_INT: Pair(Pair::Long), MPI_SHORT_INT: Pair(Pair::Short),
    MPI_LONG_DOUBLE_INT: Pair(Pair::LongDouble),
    MPI_LB: Lower, MPI_UB: Upper,
};

impl Pair {
    /// Bytes of the value, bytes of the index, and the index's offset, in C's layout of a struct.
    pub fn shape(self) -> (usize, usize, usize) {
        match self {
            Pair::Float | Pair::Int => (4, 4, 4),
            Pair::Double | Pair::Long => (8, 4, 8),
            Pair::Short => (2, 4, 4),
            Pair::LongDouble => (16, 4, 16),
            Pair::TwoReals => (4, 4, 4),
            Pair::TwoDoubles => (8, 8, 8),
        }
    }
}

impl Basic {
    pub fn bytes(self) -> usize {
        match self {
            Signed(bytes) | Unsigned(bytes) | Float(bytes) | Complex(bytes) | Logical(bytes)
            | Opaque(bytes) => bytes,
            LongDouble => 16,
            LongDoubleComplex => 32,
            BrainFloat => 2,
            Byte => 1,
            Pair(pair) => pair.shape().0 + pair.shape().1,
            Lower | Upper => 0,
        }
    }

    /// True if C leaves a gap inside the element or behind it.
    pub fn has_gap(self) -> bool {
        match self {
            Pair(pair) => {
                let (value, index, offset) = pair.shape();
                offset > value || (offset + index) % self.align() > 0
            }
            _ => false,
        }
    }

    /// The alignment in C.
    fn align(self) -> usize {
        match self {
            Complex(bytes) => bytes / 2,
            LongDoubleComplex => 16,
            Pair(pair) => pair.shape().0.max(pair.shape().1),
            Lower | Upper => 1,
            other => other.bytes().min(16),
        }
    }
}

/// By the low byte of the handle; those that are laid out as structs follow.
static BY_INDEX: LazyLock<Vec<Option<Datatype>>> = LazyLock::new(|| {
    let mut all: Vec<Option<Datatype>> = (0..INDICES + PAIRS).map(|_| None).collect();
    for entry in NAMED {
        all[index_of(entry.handle).expect("a handle of the table")] = Some(make(entry));
    }
    all
});

const INDICES: usize = 256;
const PAIRS: usize = 5;

/// The table index of a handle. MPICH's ABI: `0x4c00ssii` (size and index), or `0x8c00000i` for a
/// pair that has a gap. The standard's ABI: 0x200 to 0x2ff.
fn index_of(handle: MPI_Datatype) -> Option<usize> {
    let bits = number(handle)?;
    if cfg!(abi) {
        return (bits >> 8 == 2).then_some((bits & 0xff) as usize);
    }
    if bits & 0xffff_0000 == 0x4c00_0000 {
        return Some((bits & 0xff) as usize);
    }
    let pair = bits.wrapping_sub(0x8c00_0000) as usize;
    (pair < PAIRS).then_some(INDICES + pair)
}

pub fn get(handle: MPI_Datatype) -> Option<&'static Datatype> {
    BY_INDEX[index_of(handle)?].as_ref().filter(|found| found.handle == Some(handle))
}

/// The first datatype whose elements are of this kind.
pub fn like(basic: Basic) -> &'static Datatype {
    let mut all = BY_INDEX.iter().flatten();
    all.find(|datatype| datatype.basic == Some(basic)).expect("each kind has one")
}

fn make(entry: &Entry) -> Datatype {
    let basic = entry.basic;
    let bytes = basic.bytes();
    let (layout, signature, extent) = match basic {
        Pair(pair) => {
            let (value, index, offset) = pair.shape();
            let runs = [Layout::run(0, value), Layout::run(offset as isize, index)];
            let [first, second] = External::of_pair(pair);
            let elements = [(value, first), (index, second)]
                .map(|(bytes, external)| Signature::Basic(bytes, external).into());
            let extent = (offset + index).next_multiple_of(basic.align());
            (Layout::joined(runs), Signature::Sequence(elements.into()), extent)
        }
        Lower | Upper => (Layout::nothing(), Signature::Sequence(Vec::new()), 0),
        _ => (
            Layout::run(0, bytes),
            Signature::Basic(bytes, External::of(entry.handle, basic)),
            bytes,
        ),
    };
    let mut named = Datatype::new(layout, signature, 0, extent as isize, basic.align());
    named.markers = (basic == Lower, basic == Upper);
    named.named(entry.name, entry.handle, basic);
    named
}
