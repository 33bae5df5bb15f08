//! The location in the program that a call comes from: the nearest line outside this package.
//!
//! It is recorded with each message, so it must be cheap: it reads the interpreter's frames, and
//! caches the location of each instruction.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_int, CStr};
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::variables;
use sfm_native::code_location::{self, location as location_in, CodeLocation};

/// Instructions in the cache, indexed by some bits of their address.
const INSTRUCTIONS: usize = 256;
/// Code objects in the cache, at most.
const CODES: usize = 256;

/// Describes code: see `set_locator`.
static LOCATOR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

thread_local! {
    /// (code, instruction, location), valid as long as the code is in KNOWN. Boxed: a library that is
    /// loaded late gets little thread-local storage (sfm_endpoint: callers.rs).
    static SEEN: Box<[Cell<(usize, c_int, CodeLocation)>]> =
        (0..INSTRUCTIONS).map(|_| Cell::new((0, 0, 0))).collect();
    /// Code -> its number, 0 for this package's. The reference keeps the address from being reused.
    static KNOWN: RefCell<HashMap<usize, (Py<PyAny>, u64)>> = RefCell::default();
}

/// Have `function(filename, name)` describe a code object for observers: a text, or None to show its
/// caller instead. Only the first call has an effect.
#[pyfunction]
#[pyo3(signature = (function, /))]
pub fn set_locator(py: Python<'_>, function: Py<PyAny>) {
    let _ = LOCATOR.set(py, function);
}

/// A location for a sentence: " in a.py, line 3 (step)"; empty if it is unknown.
#[pyfunction]
#[pyo3(signature = (location, /))]
pub fn location_words(location: CodeLocation) -> String {
    code_location::words(location)
}

type Symbol = *mut libc::c_void;
type Instruction = unsafe extern "C" fn(*mut ffi::PyFrameObject) -> c_int;
type Back = unsafe extern "C" fn(*mut ffi::PyFrameObject) -> *mut ffi::PyFrameObject;
type Globals = unsafe extern "C" fn(*mut ffi::PyFrameObject) -> *mut ffi::PyObject;

/// Functions of the interpreter outside the stable interface, public since 3.11 or before.
pub struct FrameFunctions {
    instruction: Instruction,
    pub back: Back,
    pub globals: Globals,
    /// The address of the type of frames.
    pub frame_type: usize,
}

pub fn frame_functions() -> Option<&'static FrameFunctions> {
    static FUNCTIONS: OnceLock<Option<FrameFunctions>> = OnceLock::new();
    let symbol = |name: &CStr| {
        // SAFETY: looks a name up; null if there is none.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let find = || {
        let (instruction, back) = (symbol(c"PyFrame_GetLasti")?, symbol(c"PyFrame_GetBack")?);
        let (globals, frame_type) = (symbol(c"PyFrame_GetGlobals")?, symbol(c"PyFrame_Type")?);
        // SAFETY: the functions have these signatures.
        Some(unsafe {
            FrameFunctions {
                instruction: std::mem::transmute::<Symbol, Instruction>(instruction),
                back: std::mem::transmute::<Symbol, Back>(back),
                globals: std::mem::transmute::<Symbol, Globals>(globals),
                frame_type: frame_type as usize,
            }
        })
    };
    FUNCTIONS.get_or_init(find).as_ref()
}

/// Record the current Python frame as the location of this thread's call. An error of a signal
/// handler meanwhile is passed on: it is meant to end the call.
pub fn mark(py: Python<'_>) -> PyResult<()> {
    let location = current(py)?;
    variables::answer(py, location, || true)?;
    code_location::set_current(location);
    Ok(())
}

pub fn current(py: Python<'_>) -> PyResult<CodeLocation> {
    let Some(functions) = frame_functions() else { return Ok(0) };
    // SAFETY: the innermost frame is borrowed from this thread; its callers' are owned until the
    // next step.
    unsafe {
        let mut frame = ffi::PyEval_GetFrame();
        let mut held: Option<Bound<'_, PyAny>> = None;
        while !frame.is_null() {
            let location = location_of(py, frame, (functions.instruction)(frame))?;
            if location != 0 {
                return Ok(location);
            }
            frame = (functions.back)(frame);
            held = Bound::from_owned_ptr_or_opt(py, frame.cast());
        }
        drop(held);
    }
    Ok(0)
}

/// The location of an instruction of a frame; 0 if its code is not to be shown.
///
/// # Safety
/// `frame` is a frame.
unsafe fn location_of(
    py: Python<'_>,
    frame: *mut ffi::PyFrameObject,
    instruction: c_int,
) -> PyResult<CodeLocation> {
    // SAFETY: a frame's code, a new reference.
    let code = unsafe { Bound::<PyAny>::from_owned_ptr(py, ffi::PyFrame_GetCode(frame).cast()) };
    let address = code.as_ptr() as usize;
    let nth = ((address >> 5) ^ instruction as usize) % INSTRUCTIONS;
    let (seen, seen_instruction, location) = SEEN.with(|seen| seen[nth].get());
    if seen == address && seen_instruction == instruction {
        return Ok(location);
    }
    let Some(number) = number_of(code)? else { return Ok(0) };
    // SAFETY: a frame.
    let line = unsafe { ffi::PyFrame_GetLineNumber(frame) };
    let location = if number == 0 { 0 } else { location_in(number, line.max(0) as u32) };
    SEEN.with(|seen| seen[nth].set((address, instruction, location)));
    Ok(location)
}

/// The number of this code, 0 if it is not to be shown. None if the locator itself, which runs now,
/// has made the call.
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
            SEEN.with(|seen| seen.iter().for_each(|entry| entry.set((0, 0, 0))));
        }
        known.insert(address, (code.unbind(), number));
        Ok(Some(number))
    })
}

/// A new number for this code; 0 if it is not to be shown.
fn describe(code: &Bound<'_, PyAny>) -> PyResult<u64> {
    let Some(locator) = LOCATOR.get(code.py()) else { return Ok(0) };
    let (file, name) = (code.getattr("co_filename")?, code.getattr("co_name")?);
    let text: Option<String> = locator.bind(code.py()).call1((file, name))?.extract()?;
    Ok(text.map_or(0, code_location::register))
}
