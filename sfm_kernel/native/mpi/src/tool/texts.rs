//! Names and descriptions, as this interface hands them out.

use crate::handles::*;

/// Write as much of a text as there is room for, and how much room all of it takes. The caller need
/// not want either: both may be null.
///
/// # Safety
/// `at` is null or has `*length` characters; `length` is null or a number.
pub unsafe fn give(text: &str, at: *mut c_char, length: *mut c_int) {
    if length.is_null() {
        return;
    }
    if !at.is_null() && *length > 0 {
        let end = text.len().min(*length as usize - 1);
        std::ptr::copy_nonoverlapping(text.as_ptr(), at.cast(), end);
        *at.add(end) = 0;
    }
    *length = text.len() as c_int + 1;
}

/// Write a result that the caller need not want.
///
/// # Safety
/// `at` is null or a place for it.
pub unsafe fn offer<T>(at: *mut T, value: T) {
    if !at.is_null() {
        at.write(value);
    }
}
