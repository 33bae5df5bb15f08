//! The signal handlers that native code has installed in a Python process.

use pyo3::ffi;
use pyo3::prelude::*;
use sfm_endpoint::{handlers, modules};

/// The signals for which an extension, or a library, has a handler of its own: neither Python, whose
/// handler calls functions of the program, nor a module of its standard library.
#[pyfunction]
pub fn native_handlers() -> Vec<i32> {
    let interpreter =
        modules::find(ffi::PyErr_CheckSignals as *const () as usize, |found| found.base);
    let is_foreign = |address| {
        modules::find(address, |module| {
            let path = module.name.to_bytes();
            let is_of_standard_library = path.windows(13).any(|part| part == b"/lib-dynload/");
            Some(module.base) != interpreter && !is_of_standard_library
        })
    };
    // Code of no file is a function of ctypes or of a compiler.
    let foreign = handlers::handled().filter(|(_, address)| is_foreign(*address).unwrap_or(true));
    foreign.map(|(signal, _)| signal).collect()
}
