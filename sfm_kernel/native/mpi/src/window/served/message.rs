//! One piece of an operation, as it goes to its target. All numbers have the lower byte first.
//!
//! ```text
//! kind, op, element, whether a result is wanted, places, bytes    six numbers of 32 bits
//! place: first byte, bytes, distance to the next, how many        four numbers of 64 bits, each
//! bytes
//! ```
//!
//! Places are counted from the beginning of the target's memory; in a dynamic window, addresses.

use std::ops::Range;
use std::sync::Arc;

use crate::data::Data;
use crate::datatype::layout::{Layout, Visitor};
use crate::handles::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Kind {
    Put = 1,
    Get,
    Combine,
    /// The bytes are what is compared, and what is put there.
    Swap,
}

/// Some runs of bytes at equal distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Runs {
    at: isize,
    bytes: usize,
    stride: isize,
    count: usize,
}

#[derive(PartialEq, Eq, Debug)]
pub struct Message {
    pub kind: Kind,
    pub op: MPI_Op,
    /// The handle of a predefined datatype.
    pub element: MPI_Datatype,
    pub wants: bool,
    places: Vec<Runs>,
    pub bytes: Vec<u8>,
}

impl Message {
    /// About this range of the target's bytes.
    pub fn of(
        kind: Kind,
        op: MPI_Op,
        element: MPI_Datatype,
        wants: bool,
        target: &Data,
        range: Range<usize>,
        bytes: Vec<u8>,
    ) -> Message {
        let mut message = Message { kind, op, element, wants, places: Vec::new(), bytes };
        target.visit(range, &mut message);
        message
    }

    pub fn encoded(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(24 + 32 * self.places.len() + self.bytes.len());
        let (places, bytes) = (self.places.len() as u32, self.bytes.len() as u32);
        let (op, element) = (self.op as u32, self.element as u32);
        for number in [self.kind as u32, op, element, u32::from(self.wants), places, bytes] {
            to.extend(number.to_le_bytes());
        }
        for Runs { at, bytes, stride, count } in &self.places {
            for number in [*at as u64, *bytes as u64, *stride as u64, *count as u64] {
                to.extend(number.to_le_bytes());
            }
        }
        to.extend(&self.bytes);
        to
    }

    /// None where the bytes are no message.
    pub fn decoded(mut from: &[u8]) -> Option<Message> {
        let mut numbers = [0_u32; 6];
        for number in &mut numbers {
            *number = u32::from_le_bytes(*from.split_off(..4)?.first_chunk()?);
        }
        let [kind, op, element, wants, places, bytes] = numbers;
        let kind = [Kind::Put, Kind::Get, Kind::Combine, Kind::Swap]
            .into_iter()
            .find(|one| *one as u32 == kind)?;
        let (op, element, wants) = (op as MPI_Op, element as MPI_Datatype, wants != 0);
        if from.len() as u64 != u64::from(places) * 32 + u64::from(bytes) {
            return None;
        }
        let place = |place: &[u8]| {
            let number = |nth: usize| {
                u64::from_le_bytes(*place[8 * nth..].first_chunk().expect("four")) as usize
            };
            let [at, bytes, stride, count] = [0, 1, 2, 3].map(number);
            let (at, stride) = (at as isize, stride as isize);
            // So that nothing that is computed of them is too large.
            let reach = stride.checked_mul(isize::try_from(count).ok()?)?;
            at.checked_add(reach)?.checked_add(isize::try_from(bytes).ok()?)?;
            bytes.checked_mul(count)?;
            Some(Runs { at, bytes, stride, count })
        };
        let places = from.split_off(..places as usize * 32)?.chunks(32).map(place);
        let places = places.collect::<Option<Vec<_>>>()?;
        Some(Message { kind, op, element, wants, places, bytes: from.to_vec() })
    }

    pub fn layout(&self) -> Layout {
        Layout::joined(self.places.iter().map(|Runs { at, bytes, stride, count }| {
            Layout::repeated(&Arc::new(Layout::run(0, *bytes)), *at, *count, *stride)
        }))
    }
}

impl Visitor for Message {
    fn run(&mut self, at: isize, bytes: usize) {
        self.runs(at, bytes, bytes as isize, 1);
    }

    fn runs(&mut self, at: isize, bytes: usize, stride: isize, count: usize) {
        self.places.push(Runs { at, bytes, stride, count });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::{self, making};

    #[test]
    fn what_goes_out_comes_in() {
        let column = making::vector(5, 1, 3, datatype::get(MPI_INT).unwrap()).unwrap();
        let target = Data::items(std::ptr::null(), 2, &column);
        let bytes = (0..24).collect();
        let message = Message::of(Kind::Combine, MPI_SUM, MPI_INT, true, &target, 8..32, bytes);
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
