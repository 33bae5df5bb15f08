//! The signal handlers of compiled code, which may end a call that waits.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use crate::{crash, modules};

/// By number, beginning with 1; those of Linux that programs send, or get from the system.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// The signals for which the program has a handler, and the handler's address. Nobody wakes a program
/// with those that a crash raises.
pub fn handled() -> impl Iterator<Item = (c_int, usize)> {
    let is_crash = |signal| crash::CRASHES.contains(&signal) || signal == libc::SIGSYS;
    let signals = (1..=libc::SIGRTMAX()).filter(move |signal| !is_crash(*signal));
    let handlers = signals.filter_map(|signal| Some((signal, handler(signal)?)));
    handlers.filter(|(_, address)| is_programs(*address))
}

/// Whether a timer is set that will send SIGALRM.
pub fn has_timer() -> bool {
    let mut timer = MaybeUninit::<libc::itimerval>::zeroed();
    // SAFETY: memory of this frame, for which zero is a valid value.
    let left = unsafe {
        libc::getitimer(libc::ITIMER_REAL, timer.as_mut_ptr());
        timer.assume_init().it_value
    };
    left.tv_sec > 0 || left.tv_usec > 0
}

/// A signal's name, as Python has it.
pub fn name(signal: c_int) -> String {
    let known = NAMES.get(signal as usize - 1);
    known.map_or_else(|| format!("signal {signal}"), |name| format!("SIG{name}"))
}

/// The address of a signal's handler, if it has one.
fn handler(signal: c_int) -> Option<usize> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: memory of this frame, for which zero is a valid value.
    let (failed, action) = unsafe {
        (libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()), action.assume_init())
    };
    let is_set = ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
    (failed == 0 && is_set).then_some(action.sa_sigaction)
}

/// Whether a handler is the program's: not this library's, not of Fortran's runtime, which handles
/// the signals that end a program with a core dump, and not of a Python interpreter, which calls
/// functions of the program only after the call that waits.
fn is_programs(address: usize) -> bool {
    let is_runtimes = |module: &modules::Module| {
        let itself = || std::fs::read_link("/proc/self/exe").unwrap_or_default();
        let path = match module.name.to_bytes() {
            [] => itself().into_os_string().into_encoded_bytes(),
            name => name.to_vec(),
        };
        let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        ["libgfortran", "python", "libpython"].iter().any(|name| file.starts_with(name.as_bytes()))
    };
    !crash::is_handler(address) && !modules::find(address, is_runtimes).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn handle(_: c_int) {}

    #[test]
    fn handlers_of_the_program_are_found_by_name() {
        let is_known = |wanted| handled().any(|(signal, _)| name(signal) == wanted);
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGUSR2, handle as *const () as usize) };
        assert!(is_known("SIGUSR2"));
        // SAFETY: no preconditions.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        assert!(!is_known("SIGUSR2"));
        assert_eq!(name(libc::SIGRTMIN()), format!("signal {}", libc::SIGRTMIN()));
    }
}
