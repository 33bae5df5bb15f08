//! Packing and unpacking: copies between the type map's displacements and contiguous bytes.

use std::ops::Range;
use std::ptr::copy_nonoverlapping;

use super::layout::{Layout, Visitor};

/// From the type map to contiguous bytes.
struct Packing {
    from: *const u8,
    to: *mut u8,
}

/// From contiguous bytes to the type map.
struct Unpacking {
    from: *const u8,
    to: *mut u8,
}

/// Copy `count` runs of `$bytes`; if the compiler knows the length, each becomes a load and a
/// store.
macro_rules! strided {
    ($bytes:expr, $from:expr, $from_step:expr, $to:expr, $to_step:expr, $count:expr) => {
        for _ in 0..$count {
            copy_nonoverlapping($from, $to, $bytes);
            $from = $from.wrapping_offset($from_step);
            $to = $to.wrapping_offset($to_step);
        }
    };
}

/// # Safety
/// Each run is readable at its source and writable at its destination, and the two do not overlap.
unsafe fn copy_runs(
    mut from: *const u8,
    from_step: isize,
    mut to: *mut u8,
    to_step: isize,
    bytes: usize,
    count: usize,
) {
    match bytes {
        1 => strided!(1, from, from_step, to, to_step, count),
        2 => strided!(2, from, from_step, to, to_step, count),
        4 => strided!(4, from, from_step, to, to_step, count),
        8 => strided!(8, from, from_step, to, to_step, count),
        16 => strided!(16, from, from_step, to, to_step, count),
        _ => strided!(bytes, from, from_step, to, to_step, count),
    }
}

impl Visitor for Packing {
    fn run(&mut self, at: isize, bytes: usize) {
        self.runs(at, bytes, 0, 1);
    }

    fn runs(&mut self, at: isize, bytes: usize, stride: isize, count: usize) {
        // SAFETY: the caller of `pack` promises valid memory for all runs, and room for their
        // bytes.
        unsafe {
            let from = self.from.wrapping_offset(at);
            copy_runs(from, stride, self.to, bytes as isize, bytes, count);
        }
        self.to = self.to.wrapping_add(bytes * count);
    }
}

impl Visitor for Unpacking {
    fn run(&mut self, at: isize, bytes: usize) {
        self.runs(at, bytes, 0, 1);
    }

    fn runs(&mut self, at: isize, bytes: usize, stride: isize, count: usize) {
        // SAFETY: the caller of `unpack` promises valid memory for all runs, which it alone uses.
        unsafe {
            let to = self.to.wrapping_offset(at);
            copy_runs(self.from, bytes as isize, to, stride, bytes, count);
        }
        self.from = self.from.wrapping_add(bytes * count);
    }
}

/// Copy this range of the packed bytes of the item at `from` to `to`.
///
/// # Safety
/// All bytes of the layout at `from` can be read, and `range.len()` bytes at `to` written.
pub unsafe fn pack(layout: &Layout, from: *const u8, range: Range<usize>, to: *mut u8) {
    layout.visit(0, range, &mut Packing { from, to });
}

/// Copy `range.len()` bytes at `from` into this range of the packed bytes of the item at `to`.
///
/// # Safety
/// As for `pack`, in the opposite direction.
pub unsafe fn unpack(layout: &Layout, to: *mut u8, range: Range<usize>, from: *const u8) {
    layout.visit(0, range, &mut Unpacking { from, to });
}
