//! The effect of accumulate operations on the elements of a target.

use crate::datatype::{named, Basic, Datatype};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::op::{self, Kernel};

#[derive(Clone, Copy)]
enum How {
    /// MPI_NO_OP: no effect.
    Keep,
    /// MPI_REPLACE.
    Replace,
    By(Kernel),
}

/// An operation on elements of one predefined datatype.
#[derive(Clone, Copy)]
pub struct Combining {
    how: How,
    pub op: MPI_Op,
    element: Basic,
}

impl Combining {
    pub fn of(op: MPI_Op, element: Basic) -> Answer<Combining> {
        let how = match op {
            MPI_NO_OP => How::Keep,
            MPI_REPLACE => How::Replace,
            _ => How::By(op::kernel(op, element)?),
        };
        Ok(Combining { how, op, element })
    }

    /// Like `of`, but refuses MPI_NO_OP.
    pub fn changing(op: MPI_Op, element: Basic) -> Answer<Combining> {
        if op == MPI_NO_OP {
            let text =
                "argument op is MPI_NO_OP, which only MPI_Get_accumulate and MPI_Fetch_and_op \
                accept";
            return Err(fail(MPI_ERR_OP, text));
        }
        Combining::of(op, element)
    }

    /// The common element of origin and target, which both must consist of.
    pub fn elements(origin: &Datatype, target: &Datatype) -> Answer<Basic> {
        match target.element() {
            Some(element) if origin.element() == Some(element) => Ok(element),
            _ => {
                let text = format!(
                    "argument origin_datatype is {}, argument target_datatype {}: both must \
                    consist of the same predefined datatype",
                    origin.label(),
                    target.label()
                );
                Err(fail(MPI_ERR_TYPE, text))
            }
        }
    }

    /// The operation that a message encodes, for elements encoded by `code`.
    pub fn of_code(op: MPI_Op, code: MPI_Datatype) -> Answer<Combining> {
        match named::get(code).and_then(|datatype| datatype.basic) {
            Some(element) => Combining::of(op, element),
            None => Err(fail(MPI_ERR_TYPE, "no such datatype")),
        }
    }

    pub fn code(&self) -> MPI_Datatype {
        named::like(self.element).handle.expect("predefined")
    }

    /// True if elements have no gap, so that contiguous ones may be combined in place.
    pub fn is_solid(&self) -> bool {
        !self.element.has_gap()
    }

    /// Combine contiguous elements.
    ///
    /// # Safety
    /// Both have `bytes` bytes, of solid elements.
    pub unsafe fn in_place(&self, from: *const u8, into: *mut u8, bytes: usize) {
        match self.how {
            How::Keep => {}
            How::Replace => into.copy_from(from, bytes),
            How::By(kernel) => kernel(from, into, bytes / self.element.bytes()),
        }
    }

    /// Combine packed elements, of which both have the same number.
    pub fn packed(&self, from: &[u8], into: &mut [u8]) {
        let bytes = from.len().min(into.len());
        if self.is_solid() || !matches!(self.how, How::By(_)) {
            // SAFETY: both have `bytes` bytes, of which each is read or written once.
            return unsafe { self.in_place(from.as_ptr(), into.as_mut_ptr(), bytes) };
        }
        // A pair with a gap; the loop expects it in C's layout.
        let element = named::like(self.element);
        let count = bytes / element.size;
        let spread = |packed: &[u8]| {
            let mut spread = vec![0_u8; count * element.extent as usize];
            let to = spread.as_mut_ptr().cast();
            // SAFETY: the vector has room for as many bytes as the elements have.
            unsafe { element.unpack(to, count, 0..bytes, packed.as_ptr()) };
            spread
        };
        let (from, mut result) = (spread(from), spread(into));
        // SAFETY: both are vectors of `count` elements in C's layout, and ours alone.
        unsafe {
            if let How::By(kernel) = self.how {
                kernel(from.as_ptr(), result.as_mut_ptr(), count);
            }
            element.pack(result.as_ptr().cast(), count, 0..bytes, into.as_mut_ptr());
        }
    }
}

/// Refuse a datatype that MPI_Compare_and_swap cannot compare.
pub fn comparable(datatype: &Datatype) -> Answer {
    use Basic::*;
    match datatype.basic {
        Some(Signed(_) | Unsigned(_) | Logical(_) | Byte) => Ok(()),
        _ => {
            let text = format!(
                "argument datatype is {}; give an integer, a logical or MPI_BYTE",
                datatype.label()
            );
            Err(fail(MPI_ERR_TYPE, text))
        }
    }
}

/// Refuse a derived datatype, as MPI_Fetch_and_op demands.
pub fn predefined(datatype: &Datatype) -> Answer {
    if datatype.basic.is_some() {
        return Ok(());
    }
    let text = format!("argument datatype is {}; give a predefined one", datatype.label());
    Err(fail(MPI_ERR_TYPE, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<T>(of: &[T]) -> Vec<u8> {
        // SAFETY: the slice has plain numbers, so that all its bytes are initialized.
        unsafe { std::slice::from_raw_parts(of.as_ptr().cast(), size_of_val(of)) }.to_vec()
    }

    fn combined<T>(op: MPI_Op, code: MPI_Datatype, from: &[T], into: &[T]) -> Vec<u8> {
        let (from, mut into) = (bytes(from), bytes(into));
        Combining::of_code(op, code).unwrap().packed(&from, &mut into);
        into
    }

    #[test]
    fn elements_are_combined_unchanged_or_replaced() {
        assert_eq!(combined(MPI_SUM, MPI_INT, &[1, 2], &[10, 20]), bytes(&[11, 22]));
        assert_eq!(combined(MPI_REPLACE, MPI_INT, &[1, 2], &[10, 20]), bytes(&[1, 2]));
        assert_eq!(combined(MPI_NO_OP, MPI_INT, &[1, 2], &[10, 20]), bytes(&[10, 20]));
    }

    #[test]
    fn pairs_with_a_gap_are_combined_without_it() {
        let packed = |all: &[(f64, i32)]| -> Vec<u8> {
            all.iter().flat_map(|pair| [bytes(&[pair.0]), bytes(&[pair.1])].concat()).collect()
        };
        let (from, mut into) = (packed(&[(1.0, 7), (5.0, 1)]), packed(&[(2.0, 3), (4.0, 2)]));
        let combining = Combining::of_code(MPI_MAXLOC, MPI_DOUBLE_INT).unwrap();
        combining.packed(&from, &mut into);
        assert_eq!(into, packed(&[(2.0, 3), (5.0, 1)]));
    }

    #[test]
    fn elements_with_a_gap_are_those_whose_packed_size_is_smaller() {
        for handle in 0x4c00_0000..0x4c00_3000 {
            if let Some(datatype) = named::get(handle).filter(|datatype| datatype.size > 0) {
                let has_gap = datatype.size as isize != datatype.extent;
                assert_eq!(datatype.basic.unwrap().has_gap(), has_gap, "{}", datatype.label());
            }
        }
        for handle in [MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT] {
            assert!(named::get(handle).unwrap().basic.unwrap().has_gap());
        }
    }

    #[test]
    fn operations_without_meaning_are_refused() {
        let named = |handle| named::get(handle).unwrap();
        let code = |answer: Answer<Combining>| answer.err().map(|failure| failure.code);
        assert_eq!(code(Combining::of(MPI_SUM, Basic::Byte)), Some(MPI_ERR_OP));
        assert_eq!(code(Combining::changing(MPI_NO_OP, Basic::Signed(4))), Some(MPI_ERR_OP));
        assert!(Combining::elements(named(MPI_INT), named(MPI_DOUBLE)).is_err());
        assert!(Combining::elements(named(MPI_INT32_T), named(MPI_INT)).is_ok());
        assert!(comparable(named(MPI_DOUBLE)).is_err() && comparable(named(MPI_LONG)).is_ok());
    }
}
