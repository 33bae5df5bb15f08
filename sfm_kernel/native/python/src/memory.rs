//! The memory that a buffer of an MPI call is, where the call says it in the simplest ways.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};
use smallvec::SmallVec;

use super::arrays::numbers;

/// Larger data go in chunks, which Python drives.
const EAGER: usize = 1 << 20;

/// Contiguous memory of a buffer, as the simplest specifications say it.
pub struct Memory<'py> {
    pub at: *mut u8,
    pub length: usize,
    pub writable: bool,
    pub owner: Bound<'py, PyAny>,
}

impl<'py> Memory<'py> {
    /// An array, `[array, datatype]` or `[array, count, datatype]`. None where Python has to look.
    pub fn of(buf: &Bound<'py, PyAny>) -> PyResult<Option<Memory<'py>>> {
        if let Some(memory) = Memory::of_array(buf, EAGER) {
            return Ok(Some(memory));
        }
        let parts: SmallVec<[Bound<'py, PyAny>; 3]> = match buf.cast_exact::<PyList>() {
            Ok(list) if list.len() <= 3 => list.iter().collect(),
            Ok(_) => return Ok(None),
            Err(_) => match buf.cast_exact::<PyTuple>() {
                Ok(tuple) if tuple.len() <= 3 => tuple.iter().collect(),
                _ => return Ok(None),
            },
        };
        let (array, count, datatype) = match &parts[..] {
            [array, datatype] => (array, None, datatype),
            [array, count, datatype] => (array, Some(count), datatype),
            _ => return Ok(None),
        };
        let Some(mut memory) = Memory::of_array(array, EAGER) else { return Ok(None) };
        let Some(size) = element_size(datatype)? else { return Ok(None) };
        match count {
            None if memory.length % size == 0 => {}
            None => return Ok(None),
            Some(count) => {
                let Some(count) = number(Some(count), -1) else { return Ok(None) };
                match usize::try_from(count).ok().and_then(|count| count.checked_mul(size)) {
                    Some(length) if length <= memory.length => memory.length = length,
                    _ => return Ok(None),
                }
            }
        }
        Ok(Some(memory))
    }

    /// An array of at most so many bytes.
    pub fn of_array(value: &Bound<'py, PyAny>, most: usize) -> Option<Memory<'py>> {
        let numbers = numbers(value).filter(|one| one.front[2] == b'C' && one.length <= most)?;
        Some(Memory {
            at: numbers.from.cast_mut(),
            length: numbers.length,
            writable: numbers.writable,
            owner: value.clone(),
        })
    }
}

/// The size of a datatype whose elements follow each other without gaps; None of any other.
fn element_size(datatype: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    let py = datatype.py();
    let Some(state) = datatype.getattr_opt(intern!(py, "_state"))? else { return Ok(None) };
    if state.is_none() {
        return Ok(None);
    }
    let Some(contiguous) = state.getattr_opt(intern!(py, "contiguous"))? else { return Ok(None) };
    if !contiguous.is_truthy()? || !state.getattr(intern!(py, "committed"))?.is_truthy()? {
        return Ok(None);
    }
    let size: usize = state.getattr(intern!(py, "size"))?.extract()?;
    Ok((size > 0).then_some(size))
}

/// An argument that is a plain int; None where it is something else.
pub fn number(value: Option<&Bound<'_, PyAny>>, default: i64) -> Option<i64> {
    match value {
        None => Some(default),
        Some(value) => value.cast_exact::<PyInt>().ok()?.extract().ok(),
    }
}
