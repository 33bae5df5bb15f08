//! Which call of the program's a thread is in that has given the GIL back: looked for whenever it
//! begins something of MPI, so that it must cost next to nothing.
//!
//! Nobody but the thread itself changes its frames, so that it may read them without the GIL; but
//! where things are in them is the interpreter's own business. For each version whose layout is
//! known this is compared, once, with what the interpreter says. Where that is not the same, and of
//! a call that was never seen before, the GIL is asked for.

use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use sfm_endpoint::callers;
use sfm_endpoint::sites::{self, Key, Lookup, Site, NOWHERE};

use crate::host::undisturbed::undisturbed;

/// Where things are, in bytes.
struct Layout {
    /// In a thread's state: the current frame, behind one more pointer in older versions.
    current: usize,
    through: Option<usize>,
    /// In a frame.
    code: usize,
    previous: usize,
    instruction: usize,
}

/// In the object of a frame: the frame itself.
const FRAME: usize = 24;

/// Python 3.11, 3.12, and those after them as long as it is true.
const LAYOUTS: [Layout; 3] = [
    Layout { current: 56, through: Some(8), code: 32, previous: 48, instruction: 56 },
    Layout { current: 56, through: Some(0), code: 0, previous: 8, instruction: 56 },
    Layout { current: 72, through: None, code: 0, previous: 8, instruction: 56 },
];

static LAYOUT: OnceLock<&'static Layout> = OnceLock::new();

/// # Safety
/// A word of ours is there.
unsafe fn word(start: usize, at: usize) -> usize {
    // SAFETY: as the caller promises.
    unsafe { *((start + at) as *const usize) }
}

impl Layout {
    /// The current frame of a thread; 0 for none.
    ///
    /// # Safety
    /// The calling thread's state, and the layout is right.
    #[inline]
    unsafe fn current(&self, thread: *mut ffi::PyThreadState) -> usize {
        // SAFETY: as the caller promises.
        unsafe {
            let found = word(thread as usize, self.current);
            self.through.map_or(found, |at| word(found, at))
        }
    }

    /// # Safety
    /// A frame of the calling thread's, and the layout is right.
    #[inline]
    unsafe fn key(&self, frame: usize) -> Key {
        // SAFETY: as the caller promises. The lowest bits of a reference may say what it counts.
        unsafe { (word(frame, self.code) & !7, word(frame, self.instruction)) }
    }

    /// Whether the interpreter has the current frame, its code and the frame before it where this
    /// layout says.
    fn holds(&self, py: Python<'_>) -> bool {
        let Some(top) = current(py) else { return false };
        let code = |frame: &Bound<'_, PyAny>| Some(frame.getattr("f_code").ok()?.as_ptr() as usize);
        let Ok(before) = top.getattr("f_back") else { return false };
        // SAFETY: the words that are looked at are inside of objects of every version, and nothing
        // else is followed than a pointer that was found equal to the interpreter's own.
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

/// Whether an instruction so many bytes behind the beginning of the object is one of a frame's code.
fn is_in_code(frame: &Bound<'_, PyAny>, offset: usize) -> bool {
    let read = || -> PyResult<(usize, usize)> {
        let length = frame.getattr("f_code")?.getattr("co_code")?.len()?;
        Ok((frame.getattr("f_lasti")?.extract()?, length))
    };
    // In front of its instructions a code object has other things.
    read().is_ok_and(|(last, length)| (last..last + 512 + length).contains(&offset))
}

/// The frame of Python that has called us.
fn current(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    // SAFETY: borrowed from the thread, which is ours.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }
}

/// Find out how frames are laid out. A function of Python's has called us, and another one that.
pub fn learn(py: Python<'_>) {
    let version = py.version_info();
    let known = (version.minor as usize).checked_sub(11).map(|nth| &LAYOUTS[nth.min(2)]);
    // Builds for debugging have more in every object.
    let is_usual = || Ok::<_, PyErr>(!py.import("sys")?.hasattr("gettotalrefcount")?);
    let is_usual = version.major == 3 && is_usual().unwrap_or(false);
    if let Some(layout) = known.filter(|layout| is_usual && layout.holds(py)) {
        let _ = LAYOUT.set(layout);
    }
}

/// The number of the call of the program's that this thread is in. `tell` is asked about a frame
/// that was not seen before: what it calls, in which code and in which line; None for one that is
/// none of the program's.
pub fn site(tell: impl Fn(Python<'_>, &Bound<'_, PyAny>) -> PyResult<Py<PyAny>>) -> u32 {
    if let Some(layout) = LAYOUT.get() {
        // SAFETY: the calling thread's own, null where Python does not know it; its frames stay as
        // they are while it is here, and `learn` has seen that the layout is right.
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
    let found = Python::try_attach(|py| undisturbed(py, || new(py, &tell)));
    found.flatten().unwrap_or(NOWHERE)
}

#[cold]
fn new(
    py: Python<'_>,
    tell: impl Fn(Python<'_>, &Bound<'_, PyAny>) -> PyResult<Py<PyAny>>,
) -> PyResult<u32> {
    let mut next = current(py);
    while let Some(frame) = next {
        let key = key_of(&frame)?;
        let looked = match sites::find(key) {
            Lookup::New => {
                let told: Option<(Option<String>, String, u32)> = tell(py, &frame)?.extract(py)?;
                // Its address is a key from now on, and must be nobody else's.
                std::mem::forget(frame.getattr("f_code")?);
                let site = told.map(|(call, code, line)| {
                    // Without its source it is known by what mpi4py has called, for large counts.
                    let call =
                        call.unwrap_or_else(|| callers::name().trim_end_matches("_c").to_owned());
                    Site::new(call, code, line)
                });
                sites::add(key, site)
            }
            known => known,
        };
        match looked {
            Lookup::Known(number) => return Ok(number),
            Lookup::Hidden => next = frame.getattr("f_back")?.extract()?,
            Lookup::New | Lookup::Full => return Ok(NOWHERE),
        }
    }
    Ok(NOWHERE)
}

fn key_of(frame: &Bound<'_, PyAny>) -> PyResult<Key> {
    if let Some(layout) = LAYOUT.get() {
        // SAFETY: `learn` has seen that the layout is right.
        return Ok(unsafe { layout.key(word(frame.as_ptr() as usize, FRAME)) });
    }
    let code = frame.getattr("f_code")?.as_ptr() as usize;
    Ok((code, frame.getattr("f_lasti")?.extract()?))
}
