//! The program that this process is a part of: its beginning and its end.

use std::sync::atomic::{AtomicU8, Ordering::*};
use std::sync::OnceLock;
use std::thread::{self, ThreadId};
use std::time::Duration;

use sfm_endpoint::callers;

use crate::endpoint::Endpoint;
use crate::engine;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::launcher;

const BEFORE: u8 = 0;
const RUNNING: u8 = 1;
const AFTER: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(BEFORE);

/// Between MPI_Init and MPI_Finalize.
pub fn is_running() -> bool {
    STATE.load(Acquire) == RUNNING
}

/// What MPI_Initialized says: also after MPI_Finalize.
pub fn was_initialized() -> bool {
    STATE.load(Acquire) != BEFORE
}

pub fn is_finalized() -> bool {
    STATE.load(Acquire) == AFTER
}

/// For every function that needs a running MPI.
#[inline]
pub fn must_run(function: &str) -> Answer {
    if is_running() {
        return Ok(());
    }
    Err(not_running(function))
}

#[cold]
fn not_running(function: &str) -> crate::errors::Failure {
    let text = match (is_finalized(), function) {
        (true, "MPI_Finalize") => "it was called before; call it once, at the end of main",
        (true, _) => "MPI_Finalize was called before it; let that be the last of all calls of MPI",
        (false, _) => "MPI_Init was not called yet; call it first, at the beginning of main",
    };
    fail(MPI_ERR_OTHER, text)
}

/// This process's rank in MPI_COMM_WORLD; 0 before MPI_Init.
pub fn rank() -> c_int {
    engine::running().map_or(0, |engine| engine.rank as c_int)
}

pub fn size() -> c_int {
    engine::running().map_or(1, |engine| engine.size() as c_int)
}

/// The thread that has called MPI_Init.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

pub fn note_main() {
    let _ = MAIN.set(thread::current().id());
}

pub fn is_main_thread() -> bool {
    MAIN.get() == Some(&thread::current().id())
}

/// The world's name, by which observers find its processes.
pub fn name() -> String {
    std::env::var("SFM_MPI_WORLD").unwrap_or_default()
}

/// Which of the programs that were started side by side this process runs, counted from 0; None if
/// nothing started it.
pub fn application() -> Option<c_int> {
    std::env::var("SFM_MPI_APPNUM").ok()?.parse().ok()
}

/// End all processes of the program with an exit status that this gives.
pub fn abort(code: c_int) -> ! {
    let status = status_of(code);
    flush();
    if launcher::find() {
        launcher::tell(launcher::ABORTED, status, &format!("{}\n{code}", callers::told()));
        while !launcher::has_released(Duration::from_secs(60)) {}
    } else {
        eprintln!("MPI_Abort was called in process {} with code {code}", rank());
    }
    // SAFETY: nothing that the program left for its end is run.
    unsafe { libc::_exit(status) }
}

/// The same for a call that has failed; `text` says how. Whether that is because another process
/// has ended decides what is told of all that fails.
pub fn fail_fatally(code: c_int, is_lost: bool, text: &str) -> ! {
    let status = status_of(code);
    flush();
    if launcher::find() {
        let kind = if is_lost { launcher::CUT_OFF } else { launcher::FAILED };
        launcher::tell(kind, status, &format!("{}\n{text}", callers::told()));
    } else {
        eprintln!("MPI error in process {}: {text}", rank());
    }
    // SAFETY: as above.
    unsafe { libc::_exit(status) }
}

fn status_of(code: c_int) -> c_int {
    if code & 0xff == 0 {
        1
    } else {
        code & 0xff
    }
}

/// What the program has printed is shown.
fn flush() {
    // SAFETY: no preconditions.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// Join the world, and wait until all of its processes have.
pub fn start() -> Answer {
    launcher::find();
    engine::start(Endpoint::join()?);
    STATE.store(RUNNING, Release);
    Ok(())
}

/// Leave it, when nobody needs this process any more.
pub fn finish() -> Answer {
    let engine = engine::engine();
    engine.finish()?;
    flush(); // before others see that it is done
    launcher::tell(launcher::FINISHED, 0, "{}");
    while !launcher::has_released(Duration::from_millis(500)) {
        engine.advance();
    }
    engine.endpoint.whole.leave();
    STATE.store(AFTER, Release);
    Ok(())
}
