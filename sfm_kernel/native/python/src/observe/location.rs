//! Where in a program a call comes from: the nearest line that is not this package's own.
//!
//! Told to observers with each message, so it must cost little: the frame is the interpreter's, and
//! what was found out about an instruction once is remembered.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_int, CStr};
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use sfm_native::code_location::{self, location as location_in, CodeLocation};

/// Instructions that are remembered, by a part of their address.
const INSTRUCTIONS: usize = 256;
/// Pieces of code that are remembered.
const CODES: usize = 256;

/// Tells more about a file: see `set_locator`.
static LOCATOR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

thread_local! {
    /// (code, instruction, location), valid as long as the code is in CODES. Not in the thread's own
    /// room, of which a library that is loaded late gets little (sfm_endpoint: callers.rs).
    static SEEN: Box<[Cell<(usize, c_int, CodeLocation)>]> =
        (0..INSTRUCTIONS).map(|_| Cell::new((0, 0, 0))).collect();
    /// Code -> its number, 0 where it is the package's own. The reference keeps the address taken.
    static KNOWN: RefCell<HashMap<usize, (Py<PyAny>, u64)>> = RefCell::default();
}

/// Have `function(filename, name)` describe a piece of code for observers: a text, or None where
/// the call is not to be shown there but one level further out. Only the first has an effect.
#[pyfunction]
#[pyo3(signature = (function, /))]
pub fn set_locator(py: Python<'_>, function: Py<PyAny>) {
    let _ = LOCATOR.set(py, function);
}

/// What the interpreter offers beyond the stable interface, if it does.
struct Beyond {
    instruction: unsafe extern "C" fn(*mut ffi::PyFrameObject) -> c_int,
    back: unsafe extern "C" fn(*mut ffi::PyFrameObject) -> *mut ffi::PyFrameObject,
}

fn beyond() -> Option<&'static Beyond> {
    static BEYOND: OnceLock<Option<Beyond>> = OnceLock::new();
    let symbol = |name: &CStr| {
        // SAFETY: looks a name up; null where there is none.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let find = || {
        let (instruction, back) = (symbol(c"PyFrame_GetLasti")?, symbol(c"PyFrame_GetBack")?);
        // SAFETY: public functions of CPython since 3.11 and 3.9, with these signatures.
        Some(unsafe {
            Beyond {
                instruction: std::mem::transmute::<
                    *mut libc::c_void,
                    unsafe extern "C" fn(*mut ffi::PyFrameObject) -> c_int,
                >(instruction),
                back: std::mem::transmute::<
                    *mut libc::c_void,
                    unsafe extern "C" fn(*mut ffi::PyFrameObject) -> *mut ffi::PyFrameObject,
                >(back),
            }
        })
    };
    BEYOND.get_or_init(find).as_ref()
}

/// This thread is in a call that was made from the current Python frame; a helper is where the
/// call is that it works for. What a signal's handler raises while code is described is passed on:
/// it is meant for the call.
pub fn mark(py: Python<'_>) -> PyResult<()> {
    if code_location::helping() == 0 {
        code_location::set_current(current(py)?);
    }
    Ok(())
}

pub fn current(py: Python<'_>) -> PyResult<CodeLocation> {
    let Some(beyond) = beyond() else { return Ok(0) };
    // SAFETY: the frame is borrowed from the thread that runs us; those further out are owned until
    // the next step.
    unsafe {
        let mut frame = ffi::PyEval_GetFrame();
        let mut held: Option<Bound<'_, PyAny>> = None;
        while !frame.is_null() {
            let found = place_of(py, frame, (beyond.instruction)(frame))?;
            if found != 0 {
                return Ok(found);
            }
            frame = (beyond.back)(frame);
            held = Bound::from_owned_ptr_or_opt(py, frame.cast());
        }
        drop(held);
    }
    Ok(0)
}

/// The place of an instruction of a frame; 0 where its code is not to be shown.
///
/// # Safety
/// `frame` is a frame.
unsafe fn place_of(
    py: Python<'_>,
    frame: *mut ffi::PyFrameObject,
    instruction: c_int,
) -> PyResult<CodeLocation> {
    // SAFETY: a frame's code, a new reference.
    let code = unsafe { Bound::<PyAny>::from_owned_ptr(py, ffi::PyFrame_GetCode(frame).cast()) };
    let address = code.as_ptr() as usize;
    let nth = ((address >> 5) ^ instruction as usize) % INSTRUCTIONS;
    let (seen, at, location) = SEEN.with(|seen| seen[nth].get());
    if seen == address && at == instruction {
        return Ok(location);
    }
    let Some(number) = number_of(code)? else { return Ok(0) };
    // SAFETY: a frame.
    let line = unsafe { ffi::PyFrame_GetLineNumber(frame) };
    let found = if number == 0 { 0 } else { location_in(number, line.max(0) as u32) };
    SEEN.with(|seen| seen[nth].set((address, instruction, found)));
    Ok(found)
}

/// The number of this code, 0 if it is not to be shown. None where that cannot be told now: what
/// describes code has made a call itself.
fn number_of(code: Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    let address = code.as_ptr() as usize;
    KNOWN.with(|known| {
        let Ok(mut known) = known.try_borrow_mut() else { return Ok(None) };
        if let Some((_, number)) = known.get(&address) {
            return Ok(Some(*number));
        }
        let number = describe(&code)?;
        if known.len() >= CODES {
            known.clear();
            SEEN.with(|seen| seen.iter().for_each(|one| one.set((0, 0, 0))));
        }
        known.insert(address, (code.unbind(), number));
        Ok(Some(number))
    })
}

/// A number for this code; 0 where it is not to be shown.
fn describe(code: &Bound<'_, PyAny>) -> PyResult<u64> {
    let Some(locator) = LOCATOR.get(code.py()) else { return Ok(0) };
    let (file, name) = (code.getattr("co_filename")?, code.getattr("co_name")?);
    let text: Option<String> = locator.bind(code.py()).call1((file, name))?.extract()?;
    Ok(text.map_or(0, code_location::register))
}
