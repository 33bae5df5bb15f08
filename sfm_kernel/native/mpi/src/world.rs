//! The program that this process is a part of: its beginning and its end.

use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use sfm_endpoint::callers;

use crate::endpoint::Endpoint;
use crate::engine::{self, engine, From};
use crate::errors::{fail, Answer};
use crate::group::Group;
use crate::handles::*;
use crate::process::{self, Own};
use crate::{comm, host, launcher};

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
    if is_running() || has_sessions() {
        engine().endpoint.surroundings().enter();
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

/// This process's rank in MPI_COMM_WORLD.
pub fn rank() -> c_int {
    process::own().rank as c_int
}

pub fn size() -> c_int {
    process::own().size as c_int
}

/// The processes of MPI_COMM_WORLD.
pub fn everybody() -> Arc<Group> {
    Group::new(process::own().everybody())
}

/// The thread that has called MPI_Init.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// What MPI_Init or MPI_Init_thread has provided. Where neither was called (sessions, engines) it is
/// what the library always keeps to: any thread may call it at any time.
static THREAD_LEVEL: AtomicI32 = AtomicI32::new(MPI_THREAD_MULTIPLE);

pub fn note_main(thread_level: c_int) {
    let _ = MAIN.set(thread::current().id());
    THREAD_LEVEL.store(thread_level, Relaxed);
}

pub fn thread_level() -> c_int {
    THREAD_LEVEL.load(Relaxed)
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

/// How many processes the launcher was told that there is room for (`--usize`).
pub fn universe() -> Option<c_int> {
    std::env::var("SFM_MPI_UNIVERSE").ok()?.parse().ok()
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

/// Of an exit status the system keeps eight bits; those of a code that is not 0 must not say that all
/// is well.
fn status_of(code: c_int) -> c_int {
    match code & 0xff {
        0 => c_int::from(code != 0),
        kept => kept,
    }
}

/// What the program has printed is shown.
fn flush() {
    // SAFETY: no preconditions.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// How this process stands to its world.
struct Joined {
    now: bool,
    /// How often it has left.
    times: u32,
}

static JOINED: Mutex<Joined> = Mutex::new(Joined { now: false, times: 0 });
/// Open sessions.
static SESSIONS: AtomicUsize = AtomicUsize::new(0);

fn joined() -> MutexGuard<'static, Joined> {
    JOINED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Be a member of the world, if this process is none.
fn join() -> Answer {
    let mut joined = joined();
    if !joined.now {
        match host::engines(true) {
            Some((engines, Some(home))) => {
                process::set(Own::engine(engines));
                engine::start(home);
            }
            _ => {
                launcher::find();
                engine::start(Box::new(Endpoint::join(joined.times)?));
            }
        }
        joined.now = true;
    }
    Ok(())
}

/// Join the world, and wait until all of its processes have.
pub fn start() -> Answer {
    join()?;
    engine::engine().endpoint.gather()?;
    STATE.store(RUNNING, Release);
    Ok(())
}

/// The end of MPI_COMM_WORLD.
pub fn finish() -> Answer {
    engine::engine().finish()?;
    STATE.store(AFTER, Release);
    if engine::engine().endpoint.is_program() {
        comm::finish();
    }
    Ok(())
}

/// See `host::refresh`.
pub fn refresh(anew: u64) {
    let is_anew = comm::number_anew(anew);
    if !was_initialized() {
        return;
    }
    if is_anew {
        engine().forget_leaving();
    }
    let Some((engines, _)) = host::engines(false) else { return };
    let new = Own::engine(engines);
    if new.generation() != process::own().generation() {
        process::set(new);
        comm::renew(process::own().generation(), everybody(), rank());
    }
    STATE.store(RUNNING, Release);
}

/// A session, of which others need not have one at that time.
pub fn open_session() -> Answer {
    join()?;
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: a function of ours, which stays where it is: the library is never unloaded.
        unsafe { libc::atexit(leave_at_exit) };
    });
    SESSIONS.fetch_add(1, AcqRel);
    Ok(())
}

pub fn has_sessions() -> bool {
    SESSIONS.load(Acquire) > 0
}

pub fn close_session() -> Answer {
    SESSIONS.fetch_sub(1, AcqRel);
    leave_if_done();
    Ok(())
}

/// Leave after MPI_Finalize, and the end of the sessions that were open then. Those who only have
/// sessions, before it or after it, leave at the end of the process: who else has some is not known.
pub fn leave_if_done() {
    let joined = joined();
    if is_finalized() && !has_sessions() && joined.times == 0 {
        leave(joined);
    }
}

extern "C" fn leave_at_exit() {
    if !is_running() {
        leave(joined());
    }
}

/// Leave the world, when nobody needs this process any more.
fn leave(mut joined: MutexGuard<'_, Joined>) {
    if !std::mem::take(&mut joined.now) {
        return;
    }
    joined.times += 1;
    let engine = engine::engine();
    // Who has died does not get it any more.
    let _ = engine.wait(From::Nobody, || engine.has_sent_all());
    flush(); // before others see that it is done
    launcher::tell(launcher::FINISHED, 0, "{}");
    while !launcher::has_released(Duration::from_millis(500)) {
        engine.advance();
    }
    // Who has been released before may have asked for something to be told (`left`).
    engine.core.take_in_all();
    engine.advance();
    engine.endpoint.leave();
}
