//! Actions of the libraries when they are loaded into a program that a launcher has started.
//!
//! Before `main`: a program may crash, or print, before it makes its first call. The launcher
//! describes the process in the environment; a rank's children inherit that, and are no ranks.

use std::ffi::{c_int, c_void};

use crate::crash;

/// The launcher's socket, if this process is one of its ranks.
fn reports() -> Option<c_int> {
    let number = |name| std::env::var(name).ok()?.parse::<i64>().ok();
    let is_rank = number("SFM_MPI_PID").is_none_or(|pid| pid == i64::from(std::process::id()));
    number("SFM_MPI_REPORTS").filter(|_| is_rank)?.try_into().ok()
}

/// Called when a library is loaded: `at_load!()` in each.
pub extern "C" fn begin() {
    let Some(reports) = reports() else { return };
    crash::install(reports);
    // SAFETY: nothing was written yet; the C library allocates the buffer.
    unsafe { setvbuf(stdout, std::ptr::null_mut(), libc::_IOLBF, 0) };
}

// Output is sent line by line, as on a terminal: it is not lost when a program crashes.
unsafe extern "C" {
    static stdout: *mut c_void;
    fn setvbuf(stream: *mut c_void, room: *mut u8, mode: c_int, size: usize) -> c_int;
}

/// Make a library call `begin` when it is loaded.
#[macro_export]
macro_rules! at_load {
    () => {
        #[used]
        #[unsafe(link_section = ".init_array")]
        static AT_LOAD: extern "C" fn() = $crate::loaded::begin;
    };
}
