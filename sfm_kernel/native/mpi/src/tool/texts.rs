//! Names and descriptions, in the form that this interface returns.

use crate::handles::*;

/// Write as much of a text as there is room for, and the room that all of it takes. Both pointers
/// may be null.
///
/// # Safety
/// `at` is null or has `*length` characters; `length` is null or points to a number.
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

/// Write an optional result.
///
/// # Safety
/// `at` is null or may be written to.
pub unsafe fn offer<T>(at: *mut T, value: T) {
    if !at.is_null() {
        at.write(value);
    }
}
