//! Arrays of numbers: what the bytes of a buffer mean.

use super::u64_at;

/// The value of an `Array` attribute: what its buffer means.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    /// NumPy's letter for the kind of number: b'b', b'i', b'u', b'f' or b'c'.
    pub kind: u8,
    pub item: u8,
    /// b'C' or b'F': which index varies fastest in memory, the last or the first.
    pub order: u8,
    extents: &'a [u8],
}

impl<'a> Shape<'a> {
    /// None if the value is no shape.
    pub fn of(value: &'a [u8]) -> Option<Shape<'a>> {
        let (front, extents) = value.split_at_checked(8)?;
        let [.., kind, item, order, dimensions] = *front else { return None };
        let number = matches!(
            (kind, item),
            (b'b', 1) | (b'i' | b'u', 1 | 2 | 4 | 8) | (b'f', 2 | 4 | 8) | (b'c', 8 | 16)
        );
        let right = number
            && matches!(order, b'C' | b'F')
            && dimensions <= MAX_DIMENSIONS
            && extents.len() == usize::from(dimensions) * 8;
        right.then_some(Shape { kind, item, order, extents })
    }

    pub fn extents(&self) -> impl Iterator<Item = u64> + 'a {
        self.extents.chunks_exact(8).map(|extent| u64_at(extent, 0))
    }

    /// Bytes of the array; None if they overflow.
    pub fn bytes(&self) -> Option<u64> {
        self.extents().try_fold(u64::from(self.item), u64::checked_mul)
    }
}

/// NumPy's own limit is 64; in older versions 32.
pub const MAX_DIMENSIONS: u8 = 32;
