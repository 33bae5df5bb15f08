//! The members' values in a round, and how they are combined.

use std::sync::atomic::AtomicU64;

/// Most bytes that one member can contribute.
pub const ROOM: usize = 2048 - FRONT;
const FRONT: usize = 32;

/// The kind of a cell's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CellKind {
    Nothing = 0,
    /// i64s, which wrap around (arrays) or must not overflow (Python's numbers).
    Ints = 1,
    Floats = 2,
    /// Values that Python has to combine.
    Bytes = 3,
    /// Bytes that found no room: they must be sent as messages.
    Large = 4,
    /// Different kinds, or a sum that fits no i64: Python has to combine the members' values.
    Mixed = 5,
    /// The members are not in the same call.
    Mismatch = 6,
    /// The result of Python's combining.
    Result = 7,
    /// Python's combining has failed; the bytes say how.
    Failure = 8,
    /// Bytes that a program's own loops combine (`combine_with`).
    Raw = 9,
}

impl CellKind {
    pub fn of(code: u32) -> CellKind {
        use CellKind::*;
        [Nothing, Ints, Floats, Bytes, Large, Mixed, Mismatch, Result, Failure, Raw]
            .into_iter()
            .find(|kind| *kind as u32 == code)
            .unwrap_or(Mismatch) // damaged memory is as bad
    }
}

/// The operation on numbers. The codes are those that Python gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// None: each member reads the others' values.
    Keep,
    Add,
    Multiply,
    /// As Python's `min` and `max`: the first, unless the second is smaller (larger).
    Min,
    Max,
    /// As NumPy's `minimum` and `maximum`: a NaN prevails.
    Minimum,
    Maximum,
    /// Python does it.
    Other,
}

impl Op {
    pub fn of(code: u32) -> Op {
        use Op::*;
        [Keep, Add, Multiply, Min, Max, Minimum, Maximum]
            .get(code as usize)
            .copied()
            .unwrap_or(Other)
    }
}

/// The header of a cell, and its bytes.
#[repr(C, align(64))]
pub struct Cell {
    /// The call and its details: equal for all members, or their calls do not match.
    pub call: [u64; 2],
    kind: u32,
    length: u32,
    /// The round in which a member has written this.
    pub round: AtomicU64,
    bytes: [u8; ROOM],
}

impl Cell {
    pub fn kind(&self) -> CellKind {
        CellKind::of(self.kind)
    }
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..(self.length as usize).min(ROOM)]
    }

    /// Write; bytes that have no room become `Large`.
    pub fn write(&mut self, call: [u64; 2], kind: CellKind, bytes: &[u8]) {
        self.call = call;
        let fits = bytes.len() <= ROOM;
        self.kind = if fits { kind } else { CellKind::Large } as u32;
        self.length = if fits { bytes.len() } else { 0 } as u32;
        self.bytes[..self.length as usize].copy_from_slice(&bytes[..self.length as usize]);
    }

    /// Begin with the first child's value.
    pub fn copy(&mut self, other: &Cell) {
        self.call = other.call;
        (self.kind, self.length) = (other.kind, other.length);
        let length = other.bytes().len();
        if matches!(other.kind(), CellKind::Ints | CellKind::Floats | CellKind::Raw) {
            self.bytes[..length].copy_from_slice(other.bytes());
        }
    }

    /// Combine with the next child's value, in the order of the members. `wraps`: as arrays of
    /// integers do, and Python's integers do not.
    pub fn combine(&mut self, other: &Cell, op: Op, wraps: bool) {
        self.kind = if self.call != other.call {
            CellKind::Mismatch
        } else {
            match (self.kind(), other.kind()) {
                (CellKind::Mismatch, _) | (_, CellKind::Mismatch) => CellKind::Mismatch,
                (CellKind::Large, _) | (_, CellKind::Large) => CellKind::Large,
                (a, b) if a != b || self.length != other.length => match (a, b) {
                    (CellKind::Bytes, CellKind::Bytes) => CellKind::Bytes,
                    _ => CellKind::Mixed,
                },
                (kind @ (CellKind::Ints | CellKind::Floats), _) if op == Op::Keep => kind,
                (CellKind::Ints, _) => match self.ints(other, op, wraps) {
                    true => CellKind::Ints,
                    false => CellKind::Mixed,
                },
                (CellKind::Floats, _) => self.floats(other, op),
                (kind, _) => kind,
            }
        } as u32;
    }

    /// The same for raw bytes, as many in both: `work` changes the first.
    pub fn combine_with(&mut self, other: &Cell, work: impl FnOnce(&mut [u8], &[u8])) {
        let are_alike = self.call == other.call && self.length == other.length;
        if are_alike && (self.kind(), other.kind()) == (CellKind::Raw, CellKind::Raw) {
            work(&mut self.bytes[..other.bytes().len()], other.bytes());
        } else {
            self.kind = CellKind::Mismatch as u32;
        }
    }

    /// False if a sum or product fits no i64.
    fn ints(&mut self, other: &Cell, op: Op, wraps: bool) -> bool {
        let mut fits = true;
        self.each(other, |a, b| {
            let (a, b) = (i64::from_ne_bytes(a), i64::from_ne_bytes(b));
            let (value, over) = match op {
                Op::Add => a.overflowing_add(b),
                Op::Multiply => a.overflowing_mul(b),
                Op::Min | Op::Minimum => (a.min(b), false),
                Op::Max | Op::Maximum => (a.max(b), false),
                Op::Keep | Op::Other => (a, true),
            };
            fits &= !over || (wraps && op != Op::Other);
            value.to_ne_bytes()
        });
        fits
    }

    fn floats(&mut self, other: &Cell, op: Op) -> CellKind {
        self.each(other, |a, b| {
            let (a, b) = (f64::from_ne_bytes(a), f64::from_ne_bytes(b));
            let value = match op {
                Op::Add => a + b,
                Op::Multiply => a * b,
                Op::Min if b < a => b,
                Op::Max if b > a => b,
                Op::Minimum if b < a || b.is_nan() => b,
                Op::Maximum if b > a || b.is_nan() => b,
                _ => a,
            };
            value.to_ne_bytes()
        });
        if op == Op::Other {
            CellKind::Mixed
        } else {
            CellKind::Floats
        }
    }

    fn each(&mut self, other: &Cell, mut work: impl FnMut([u8; 8], [u8; 8]) -> [u8; 8]) {
        let length = self.bytes().len();
        let a = self.bytes[..length].chunks_exact_mut(8);
        for (a, b) in a.zip(other.bytes().chunks_exact(8)) {
            let value = work((&*a).try_into().expect("8"), b.try_into().expect("8"));
            a.copy_from_slice(&value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(kind: CellKind, bytes: &[u8]) -> Cell {
        // SAFETY: numbers and bytes, for which zero is a value.
        let mut cell: Cell = unsafe { std::mem::zeroed() };
        cell.write([1, 2], kind, bytes);
        cell
    }

    fn combined(first: &Cell, second: &Cell, op: Op, wraps: bool) -> (CellKind, Vec<u8>) {
        let mut result = cell(CellKind::Nothing, b"");
        result.copy(first);
        result.combine(second, op, wraps);
        (result.kind(), result.bytes().to_vec())
    }

    fn floats(op: Op, first: f64, second: f64) -> f64 {
        let (first, second) = (
            cell(CellKind::Floats, &first.to_ne_bytes()),
            cell(CellKind::Floats, &second.to_ne_bytes()),
        );
        let (kind, bytes) = combined(&first, &second, op, false);
        assert_eq!(kind, CellKind::Floats);
        f64::from_ne_bytes(bytes.try_into().unwrap())
    }

    #[test]
    fn numbers_as_python_and_numpy_have_them() {
        assert_eq!(floats(Op::Add, 1.5, 2.0), 3.5);
        assert_eq!(floats(Op::Multiply, 1.5, 2.0), 3.0);
        assert_eq!(floats(Op::Min, 1.5, f64::NAN), 1.5);
        assert!(floats(Op::Min, f64::NAN, 1.5).is_nan());
        assert!(floats(Op::Minimum, 1.5, f64::NAN).is_nan());
        assert!(floats(Op::Maximum, f64::NAN, 1.5).is_nan());
        assert_eq!(floats(Op::Max, 1.0, 2.0), 2.0);
        assert!(floats(Op::Max, 0.0, -0.0).is_sign_positive());
    }

    #[test]
    fn an_overflow_is_for_python_unless_arrays_wrap() {
        let most = cell(CellKind::Ints, &i64::MAX.to_ne_bytes());
        assert_eq!(combined(&most, &most, Op::Add, false).0, CellKind::Mixed);
        let (kind, bytes) = combined(&most, &most, Op::Add, true);
        assert_eq!((kind, bytes), (CellKind::Ints, (-2i64).to_ne_bytes().to_vec()));
        assert_eq!(combined(&most, &most, Op::Max, false).0, CellKind::Ints);
    }

    #[test]
    fn mixed_kinds_and_different_calls_are_detected() {
        let (int, float) = (cell(CellKind::Ints, &[0; 8]), cell(CellKind::Floats, &[0; 8]));
        let (text, other) = (cell(CellKind::Bytes, b"abc"), cell(CellKind::Bytes, b"abcd"));
        assert_eq!(combined(&int, &float, Op::Add, false).0, CellKind::Mixed);
        assert_eq!(combined(&int, &int, Op::Other, true).0, CellKind::Mixed);
        assert_eq!(combined(&float, &float, Op::Other, true).0, CellKind::Mixed);
        assert_eq!(combined(&text, &other, Op::Other, false).0, CellKind::Bytes);
        assert_eq!(combined(&text, &int, Op::Other, false).0, CellKind::Mixed);
        let large = cell(CellKind::Bytes, &[0; ROOM + 1]);
        assert_eq!(large.kind(), CellKind::Large);
        assert_eq!(combined(&text, &large, Op::Other, false).0, CellKind::Large);
        let mut stranger = cell(CellKind::Bytes, b"abc");
        stranger.call = [9, 9];
        assert_eq!(combined(&large, &stranger, Op::Other, false).0, CellKind::Mismatch);
    }
}
