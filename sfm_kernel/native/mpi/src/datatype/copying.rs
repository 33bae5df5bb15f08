//! Packing and unpacking: copies between the places of a layout and bytes in a row.

use std::ops::Range;
use std::ptr::copy_nonoverlapping;

use super::layout::{Layout, Visitor};

/// From the places to the row.
struct Packing {
    from: *const u8,
    to: *mut u8,
}

/// From the row to the places.
struct Unpacking {
    from: *const u8,
    to: *mut u8,
}

/// Copy `count` pieces of `$bytes`; a length that the compiler knows makes each a load and a store.
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
/// Each piece is readable at its place and writable at the other, and they do not overlap.
unsafe fn pieces(
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
        // SAFETY: what `pack` is promised.
        unsafe {
            let from = self.from.wrapping_offset(at);
            pieces(from, stride, self.to, bytes as isize, bytes, count);
        }
        self.to = self.to.wrapping_add(bytes * count);
    }
}

impl Visitor for Unpacking {
    fn run(&mut self, at: isize, bytes: usize) {
        self.runs(at, bytes, 0, 1);
    }

    fn runs(&mut self, at: isize, bytes: usize, stride: isize, count: usize) {
        // SAFETY: what `unpack` is promised.
        unsafe {
            let to = self.to.wrapping_offset(at);
            pieces(self.from, bytes as isize, to, stride, bytes, count);
        }
        self.from = self.from.wrapping_add(bytes * count);
    }
}

/// Copy this range of the packed bytes of what lies at `from` to `to`.
///
/// # Safety
/// The layout's places from `from` on can be read, and `range.len()` bytes at `to` written.
pub unsafe fn pack(layout: &Layout, from: *const u8, range: Range<usize>, to: *mut u8) {
    layout.visit(0, range, &mut Packing { from, to });
}

/// Copy `range.len()` bytes at `from` to where this range of the packed bytes belongs.
///
/// # Safety
/// As of `pack`, the other way.
pub unsafe fn unpack(layout: &Layout, to: *mut u8, range: Range<usize>, from: *const u8) {
    layout.visit(0, range, &mut Unpacking { from, to });
}
