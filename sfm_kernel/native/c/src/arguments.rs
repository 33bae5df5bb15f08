//! The caller's arguments: pointers, texts, times.

use std::ffi::{c_char, CStr};
use std::time::Duration;

use sfm_endpoint::Name;

use crate::codes::{Failure, Result};

/// The target of a pointer; `argument` names it in the error.
pub unsafe fn required<'a, T>(pointer: *const T, argument: &str) -> Result<&'a T> {
    pointer.as_ref().ok_or_else(|| missing(argument))
}

/// The same for memory that is written.
pub unsafe fn writable<'a, T>(pointer: *mut T, argument: &str) -> Result<&'a mut T> {
    pointer.as_mut().ok_or_else(|| missing(argument))
}

fn missing(argument: &str) -> Failure {
    Failure::argument(format!("{argument} is NULL: check the result of the previous call"))
}

/// A text; `argument` names it in the error.
pub unsafe fn text<'a>(pointer: *const c_char, argument: &str) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(missing(argument));
    }
    let bytes = CStr::from_ptr(pointer);
    bytes.to_str().map_err(|error| {
        let valid = error.valid_up_to();
        Failure::argument(format!(
            "{argument} is not UTF-8 text from byte {valid} on: give bytes instead"
        ))
    })
}

/// A text, or None for a null pointer.
pub unsafe fn optional_text<'a>(pointer: *const c_char, argument: &str) -> Result<Option<&'a str>> {
    if pointer.is_null() {
        Ok(None)
    } else {
        text(pointer, argument).map(Some)
    }
}

/// The name of an attribute.
pub unsafe fn attribute<'a>(pointer: *const c_char) -> Result<&'a str> {
    match text(pointer, "the attribute's name")? {
        "" => Err(Failure::argument("an attribute's name is not empty")),
        name => Ok(name),
    }
}

/// A process's name or rank: digits are a rank, since no name consists of them.
pub fn name(text: &str) -> Name {
    let is_rank = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(rank) if is_rank => Name::Rank(rank),
        _ => Name::from(text),
    }
}

/// Seconds; None for ever.
pub fn limit(seconds: f64) -> Result<Option<Duration>> {
    if seconds.is_nan() {
        return Err(Failure::argument("seconds is not a number: give SFM_FOREVER, or 0 or more"));
    }
    if seconds < 0.0 {
        return Ok(None);
    }
    Ok(Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_a_rank_and_all_else_is_a_name() {
        assert_eq!(name("12"), Name::Rank(12));
        for text in ["B", "-1", "+1", "", "1a", "99999999999999999999"] {
            assert_eq!(name(text), Name::from(text));
        }
    }

    #[test]
    fn times() {
        assert_eq!(limit(-1.0).unwrap(), None);
        assert_eq!(limit(0.5).unwrap(), Some(Duration::from_millis(500)));
        assert_eq!(limit(f64::INFINITY).unwrap(), Some(Duration::MAX));
        assert!(limit(f64::NAN).is_err());
    }
}
