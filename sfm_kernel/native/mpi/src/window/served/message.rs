//! One fragment of an operation, as it is sent to its target. All numbers are little-endian.
//!
//! ```text
//! kind, op, element, 1 if a result is expected, runs, bytes    six numbers of 32 bits
//! runs: offset of the first, bytes, stride, count               four numbers of 64 bits each
//! bytes
//! ```
//!
//! Offsets are relative to the beginning of the target's memory; in a dynamic window they are
//! addresses.

use std::ops::Range;
use std::sync::Arc;

use crate::data::Data;
use crate::datatype::layout::{Layout, Visitor};
use crate::handles::*;

/// The bytes of the six numbers, and of a run.
pub const HEAD: usize = 24;
pub const RUN: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum AccessKind {
    Put = 1,
    Get,
    Combine,
    /// The bytes are the value to compare with, and the new value.
    Swap,
}

/// Runs of bytes at equal distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Runs {
    at: isize,
    bytes: usize,
    stride: isize,
    count: usize,
}

#[derive(PartialEq, Eq, Debug)]
pub struct Message {
    pub kind: AccessKind,
    pub op: MPI_Op,
    /// The handle of a predefined datatype.
    pub element: MPI_Datatype,
    pub expects_result: bool,
    runs: Vec<Runs>,
    pub bytes: Vec<u8>,
}

impl Message {
    /// A fragment about this range of the target's bytes.
    pub fn of(
        kind: AccessKind,
        op: MPI_Op,
        element: MPI_Datatype,
        expects_result: bool,
        target: &Data,
        range: Range<usize>,
        bytes: Vec<u8>,
    ) -> Message {
        let mut message = Message { kind, op, element, expects_result, runs: Vec::new(), bytes };
        target.visit(range, &mut message);
        message
    }

    pub fn encoded(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(HEAD + RUN * self.runs.len() + self.bytes.len());
        let (runs, bytes) = (self.runs.len() as u32, self.bytes.len() as u32);
        let (op, element) = (self.op as u32, self.element as u32);
        for number in [self.kind as u32, op, element, u32::from(self.expects_result), runs, bytes] {
            to.extend(number.to_le_bytes());
        }
        for Runs { at, bytes, stride, count } in &self.runs {
            for number in [*at as u64, *bytes as u64, *stride as u64, *count as u64] {
                to.extend(number.to_le_bytes());
            }
        }
        to.extend(&self.bytes);
        to
    }

    /// None if the bytes are not a message.
    pub fn decoded(mut from: &[u8]) -> Option<Message> {
        let mut numbers = [0_u32; 6];
        for number in &mut numbers {
            *number = u32::from_le_bytes(*from.split_off(..4)?.first_chunk()?);
        }
        let [kind, op, element, expects_result, runs, bytes] = numbers;
        let kind = [AccessKind::Put, AccessKind::Get, AccessKind::Combine, AccessKind::Swap]
            .into_iter()
            .find(|one| *one as u32 == kind)?;
        let (op, element, expects_result) =
            (op as MPI_Op, element as MPI_Datatype, expects_result != 0);
        if from.len() as u64 != u64::from(runs) * RUN as u64 + u64::from(bytes) {
            return None;
        }
        let run = |run: &[u8]| {
            let number = |nth: usize| {
                u64::from_le_bytes(*run[8 * nth..].first_chunk().expect("four")) as usize
            };
            let [at, bytes, stride, count] = [0, 1, 2, 3].map(number);
            let (at, stride) = (at as isize, stride as isize);
            // Refuse numbers that would overflow later.
            let reach = stride.checked_mul(isize::try_from(count).ok()?)?;
            at.checked_add(reach)?.checked_add(isize::try_from(bytes).ok()?)?;
            bytes.checked_mul(count)?;
            Some(Runs { at, bytes, stride, count })
        };
        let runs = from.split_off(..runs as usize * RUN)?.chunks(RUN).map(run);
        let runs = runs.collect::<Option<Vec<_>>>()?;
        Some(Message { kind, op, element, expects_result, runs, bytes: from.to_vec() })
    }

    pub fn layout(&self) -> Layout {
        Layout::joined(self.runs.iter().map(|Runs { at, bytes, stride, count }| {
            Layout::repeated(&Arc::new(Layout::run(0, *bytes)), *at, *count, *stride)
        }))
    }
}

impl Visitor for Message {
    fn run(&mut self, at: isize, bytes: usize) {
        self.runs(at, bytes, bytes as isize, 1);
    }

    fn runs(&mut self, at: isize, bytes: usize, stride: isize, count: usize) {
        self.runs.push(Runs { at, bytes, stride, count });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::{self, making};

    #[test]
    fn a_decoded_message_equals_the_encoded_one() {
        let column = making::vector(5, 1, 3, datatype::get(MPI_INT).unwrap()).unwrap();
        let target = Data::items(std::ptr::null(), 2, &column);
        let bytes = (0..24).collect();
        let message =
            Message::of(AccessKind::Combine, MPI_SUM, MPI_INT, true, &target, 8..32, bytes);
        let encoded = message.encoded();
        let decoded = Message::decoded(&encoded).unwrap();
        assert_eq!(decoded, message);
        assert_eq!(decoded.layout().bytes(), 24);
        assert_eq!(decoded.layout().bounds().map(|(low, _)| low), Some(24));
        for length in 0..encoded.len() {
            assert_eq!(Message::decoded(&encoded[..length]), None);
        }
    }
}
