//! Checks of arguments that many functions have: each error names the argument, its value, and the
//! valid values.

use crate::errors::{fail, Answer};
use crate::handles::*;

/// Tags are from 0 to this: the value of MPI_TAG_UB.
pub const TAG_UB: c_int = c_int::MAX;

pub fn count(name: &str, count: impl Into<MPI_Count>) -> Answer<usize> {
    let count = count.into();
    usize::try_from(count)
        .map_err(|_| fail(MPI_ERR_COUNT, format!("argument {name} is {count}, less than zero")))
}

pub fn rank(name: &str, rank: c_int, size: c_int, of: &str) -> Answer {
    if (0..size).contains(&rank) {
        return Ok(());
    }
    let text = format!("argument {name} is {rank}, but {of} has {size} processes (counted from 0)");
    Err(fail(MPI_ERR_RANK, text))
}

pub fn tag(tag: c_int) -> Answer {
    if tag >= 0 {
        return Ok(());
    }
    let any = if tag == MPI_ANY_TAG { " (MPI_ANY_TAG is for receives only)" } else { "" };
    let text = format!("argument tag is {tag}{any}; a message's tag is from 0 to {TAG_UB}");
    Err(fail(MPI_ERR_TAG, text))
}

pub fn tag_or_any(tag: c_int) -> Answer {
    if tag >= 0 || tag == MPI_ANY_TAG {
        return Ok(());
    }
    Err(fail(MPI_ERR_TAG, format!("argument tag is {tag}; give 0 to {TAG_UB}, or MPI_ANY_TAG")))
}

/// A buffer of `bytes` from `at` on; null is MPI_BOTTOM, which is valid with absolute addresses in
/// the datatype.
pub fn buffer(name: &str, at: *const c_void, bytes: usize, absolute: bool) -> Answer {
    if !at.is_null() || bytes == 0 || absolute {
        return Ok(());
    }
    let text = format!("argument {name} is a null pointer, but the call needs {bytes} bytes");
    Err(fail(MPI_ERR_BUFFER, text))
}

/// Refuse MPI_IN_PLACE.
pub fn not_in_place(name: &str, at: *const c_void) -> Answer {
    if at as isize != MPI_IN_PLACE {
        return Ok(());
    }
    let text = format!("argument {name} is MPI_IN_PLACE, which this argument does not allow");
    Err(fail(MPI_ERR_BUFFER, text))
}

/// Refuse a null pointer for a result.
pub fn not_null<T>(name: &str, at: *mut T) -> Answer {
    if at.is_null() {
        return Err(fail(MPI_ERR_ARG, format!("argument {name} is a null pointer")));
    }
    Ok(())
}

/// Write a result.
///
/// # Safety
/// `at` is null, which is refused, or points to a T.
#[inline]
pub unsafe fn put<T>(name: &str, at: *mut T, value: T) -> Answer {
    not_null(name, at)?;
    at.write(value);
    Ok(())
}

/// Write a result that is made only if it can be written, such as a new handle.
///
/// # Safety
/// As for `put`.
pub unsafe fn put_new<T>(name: &str, at: *mut T, make: impl FnOnce() -> T) -> Answer {
    not_null(name, at)?;
    at.write(make());
    Ok(())
}

/// Write whether a result was found, and then the result.
///
/// # Safety
/// `flag` is null, which is refused, or points to an int.
pub unsafe fn put_found<T>(
    flag: *mut c_int,
    found: Option<T>,
    put_result: impl FnOnce(T) -> Answer,
) -> Answer {
    put("flag", flag, c_int::from(found.is_some()))?;
    found.map_or(Ok(()), put_result)
}

/// An array argument as a slice; it may be null if it is empty.
///
/// # Safety
/// `at` points to `count` of T.
pub unsafe fn array<'a, T>(name: &str, at: *const T, count: usize) -> Answer<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if at.is_null() {
        let text =
            format!("argument {name} is a null pointer, but the call needs {count} elements");
        return Err(fail(MPI_ERR_ARG, text));
    }
    Ok(std::slice::from_raw_parts(at, count))
}

/// The same for an array that is written.
///
/// # Safety
/// `at` points to `count` of T that only the caller uses.
pub unsafe fn array_mut<'a, T>(name: &str, at: *mut T, count: usize) -> Answer<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    not_null(name, at)?;
    Ok(std::slice::from_raw_parts_mut(at, count))
}

/// # Safety
/// `at` is null, which is refused, or ends with a zero.
pub unsafe fn text(name: &str, at: *const c_char) -> Answer<String> {
    not_null(name, at.cast_mut())?;
    Ok(std::ffi::CStr::from_ptr(at).to_string_lossy().into_owned())
}

/// Write a text and its length into an array of `room` characters; the text is cut if it does not
/// fit.
///
/// # Safety
/// `at` has `room` characters; `length` is null or points to an int.
pub unsafe fn put_text(
    name: &str,
    at: *mut c_char,
    room: c_int,
    text: &str,
    length: *mut c_int,
) -> Answer {
    let mut end = text.len().min((room.max(1) - 1) as usize);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    not_null(name, at)?;
    std::ptr::copy_nonoverlapping(text.as_ptr(), at.cast(), end);
    *at.add(end) = 0;
    if !length.is_null() {
        *length = end as c_int;
    }
    Ok(())
}

/// An array argument of numbers: `int` in MPI_X, 64 bits in MPI_X_c.
#[derive(Clone, Copy)]
pub enum Numbers {
    Ints(*const c_int),
    Longs(*const MPI_Count),
}

impl Numbers {
    /// All numbers; the array may be null if it is empty.
    ///
    /// # Safety
    /// It points to `count` numbers.
    pub unsafe fn list(self, name: &str, count: usize) -> Answer<Vec<MPI_Count>> {
        match self {
            Numbers::Ints(at) => {
                Ok(array(name, at, count)?.iter().map(|number| MPI_Count::from(*number)).collect())
            }
            Numbers::Longs(at) => array(name, at, count).map(<[_]>::to_vec),
        }
    }

    /// All numbers as counts, none of which is negative.
    ///
    /// # Safety
    /// As for `list`.
    pub unsafe fn counts(self, name: &str, length: usize) -> Answer<Vec<usize>> {
        let all = self.list(name, length)?;
        all.iter().enumerate().map(|(nth, count)| number(name, nth, *count)).collect()
    }
}

fn number(name: &str, nth: usize, value: MPI_Count) -> Answer<usize> {
    usize::try_from(value)
        .map_err(|_| fail(MPI_ERR_COUNT, format!("{name}[{nth}] is {value}, less than zero")))
}

/// A pointer to results: `int` or 64 bits, like `Numbers`.
#[derive(Clone, Copy)]
pub enum Results {
    Ints(*mut c_int),
    Longs(*mut MPI_Count),
}

impl Results {
    /// Write a result; MPI_UNDEFINED if an int cannot hold it, as the standard demands.
    ///
    /// # Safety
    /// It is null, which is refused, or points to a number.
    pub unsafe fn put(self, name: &str, value: impl TryInto<MPI_Count>) -> Answer {
        let value = value.try_into().unwrap_or(MPI_Count::from(MPI_UNDEFINED));
        match self {
            Results::Ints(at) => put(name, at, c_int::try_from(value).unwrap_or(MPI_UNDEFINED)),
            Results::Longs(at) => put(name, at, value),
        }
    }

    /// # Safety
    /// As for `put`.
    pub unsafe fn get(self, name: &str) -> Answer<MPI_Count> {
        match self {
            Results::Ints(at) => not_null(name, at).map(|()| MPI_Count::from(*at)),
            Results::Longs(at) => not_null(name, at).map(|()| *at),
        }
    }
}
