//! The program's call that a thread without the GIL is in. It is searched for at the beginning of
//! each MPI operation, so it must cost next to nothing.
//!
//! Only the thread itself changes its frames, so it may read them without the GIL; but their layout
//! is internal to the interpreter. For each version whose layout is known, the layout is compared
//! once with the interpreter's functions. If they differ, and for a call that was not seen before,
//! the thread takes the GIL.

use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use sfm_endpoint::callers;
use sfm_endpoint::sites::{self, Key, Lookup, Site, NOWHERE};

use crate::host::undisturbed::undisturbed;

/// Offsets in bytes.
struct Layout {
    /// In a thread's state: the current frame, behind one more pointer in older versions.
    current: usize,
    through: Option<usize>,
    /// In a frame.
    code: usize,
    previous: usize,
    instruction: usize,
}

/// Offset of the frame in a frame object.
const FRAME: usize = 24;

/// Python 3.11, 3.12, and later versions as long as `holds` is true.
const LAYOUTS: [Layout; 3] = [
    Layout { current: 56, through: Some(8), code: 32, previous: 48, instruction: 56 },
    Layout { current: 56, through: Some(0), code: 0, previous: 8, instruction: 56 },
    Layout { current: 72, through: None, code: 0, previous: 8, instruction: 56 },
];

static LAYOUT: OnceLock<&'static Layout> = OnceLock::new();

/// # Safety
/// There is a readable word at this offset.
unsafe fn word(start: usize, offset: usize) -> usize {
    // SAFETY: as the caller promises.
    unsafe { *((start + offset) as *const usize) }
}

impl Layout {
    /// The current frame of a thread; 0 for none.
    ///
    /// # Safety
    /// `thread` is the calling thread's state, and the layout is right.
    #[inline]
    unsafe fn current(&self, thread: *mut ffi::PyThreadState) -> usize {
        // SAFETY: as the caller promises.
        unsafe {
            let current = word(thread as usize, self.current);
            self.through.map_or(current, |offset| word(current, offset))
        }
    }

    /// # Safety
    /// `frame` is one of the calling thread, and the layout is right.
    #[inline]
    unsafe fn key(&self, frame: usize) -> Key {
        // SAFETY: as the caller promises. The lowest bits of a reference may be flags.
        unsafe { (word(frame, self.code) & !7, word(frame, self.instruction)) }
    }

    /// Whether the interpreter has the current frame, its code and its caller at these offsets.
    fn holds(&self, py: Python<'_>) -> bool {
        let Some(top) = current(py) else { return false };
        let code = |frame: &Bound<'_, PyAny>| Some(frame.getattr("f_code").ok()?.as_ptr() as usize);
        let Ok(before) = top.getattr("f_back") else { return false };
        // SAFETY: the words that are read are inside the objects of every version, and only pointers
        // that equal the interpreter's are followed.
        unsafe {
            let frames = [&top, &before].map(|frame| word(frame.as_ptr() as usize, FRAME));
            self.current(ffi::PyThreadState_Get()) == frames[0]
                && word(frames[0], self.previous) == frames[1]
                && [&top, &before].into_iter().zip(frames).all(|(object, frame)| {
                    let (found, instruction) = self.key(frame);
                    Some(found) == code(object) && is_in_code(object, instruction - found)
                })
        }
    }
}

/// Whether an instruction at this offset in a frame's code object can be the frame's current one.
fn is_in_code(frame: &Bound<'_, PyAny>, offset: usize) -> bool {
    let read = || -> PyResult<(usize, usize)> {
        let length = frame.getattr("f_code")?.getattr("co_code")?.len()?;
        Ok((frame.getattr("f_lasti")?.extract()?, length))
    };
    // A code object has other fields before its instructions.
    read().is_ok_and(|(last, length)| (last..last + 512 + length).contains(&offset))
}

/// The Python frame that has called this code.
fn current(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    // SAFETY: borrowed from this thread.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }
}

/// Choose the layout of frames. The caller is a Python function, which has a Python caller.
pub fn learn(py: Python<'_>) {
    let version = py.version_info();
    let known = (version.minor as usize).checked_sub(11).map(|nth| &LAYOUTS[nth.min(2)]);
    // Debug builds have further fields in every object.
    let is_usual = || Ok::<_, PyErr>(!py.import("sys")?.hasattr("gettotalrefcount")?);
    let is_usual = version.major == 3 && is_usual().unwrap_or(false);
    if let Some(layout) = known.filter(|layout| is_usual && layout.holds(py)) {
        let _ = LAYOUT.set(layout);
    }
}

/// The number of the program's call that this thread is in. `describe` returns, for a frame that was
/// not seen before, the text of its call, its code and its line; None if it is not the program's.
pub fn site(describe: impl Fn(Python<'_>, &Bound<'_, PyAny>) -> PyResult<Py<PyAny>>) -> u32 {
    if let Some(layout) = LAYOUT.get() {
        // SAFETY: the calling thread's state, null if Python does not know the thread; its frames do
        // not change during this call, and `learn` has verified the layout.
        unsafe {
            let thread = ffi::PyGILState_GetThisThreadState();
            let mut frame = if thread.is_null() { 0 } else { layout.current(thread) };
            while frame != 0 {
                match sites::find(layout.key(frame)) {
                    Lookup::Known(number) => return number,
                    Lookup::Hidden => frame = word(frame, layout.previous),
                    Lookup::Full => return NOWHERE,
                    Lookup::New => break,
                }
            }
            if frame == 0 {
                return NOWHERE;
            }
        }
    }
    let found = Python::try_attach(|py| undisturbed(py, || new(py, &describe)));
    found.flatten().unwrap_or(NOWHERE)
}

#[cold]
fn new(
    py: Python<'_>,
    describe: impl Fn(Python<'_>, &Bound<'_, PyAny>) -> PyResult<Py<PyAny>>,
) -> PyResult<u32> {
    let mut next = current(py);
    while let Some(frame) = next {
        let key = key_of(&frame)?;
        let lookup = match sites::find(key) {
            Lookup::New => {
                let about: Option<(Option<String>, String, u32)> =
                    describe(py, &frame)?.extract(py)?;
                // Its address is a key from now on, and must not be reused.
                std::mem::forget(frame.getattr("f_code")?);
                let site = about.map(|(call, code, line)| {
                    // Without source the call has the name of mpi4py's call, for large counts.
                    let call =
                        call.unwrap_or_else(|| callers::name().trim_end_matches("_c").to_owned());
                    Site::new(call, code, line)
                });
                sites::add(key, site)
            }
            known => known,
        };
        match lookup {
            Lookup::Known(number) => return Ok(number),
            Lookup::Hidden => next = frame.getattr("f_back")?.extract()?,
            Lookup::New | Lookup::Full => return Ok(NOWHERE),
        }
    }
    Ok(NOWHERE)
}

fn key_of(frame: &Bound<'_, PyAny>) -> PyResult<Key> {
    if let Some(layout) = LAYOUT.get() {
        // SAFETY: `learn` has verified the layout.
        return Ok(unsafe { layout.key(word(frame.as_ptr() as usize, FRAME)) });
    }
    let code = frame.getattr("f_code")?.as_ptr() as usize;
    Ok((code, frame.getattr("f_lasti")?.extract()?))
}
