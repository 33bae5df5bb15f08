//! The program that this process belongs to: its beginning and its end.

use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering::*};
use std::sync::{Mutex, MutexGuard, Once, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use sfm_endpoint::{callers, Program, Surroundings};
use sfm_native::sync::lock;

use crate::collective::team::Team;
use crate::collective::{blocking, mismatch};
use crate::endpoint::Endpoint;
use crate::engine::{self, engine, report, About, Collective, From, Sending, Upper};
use crate::errors::{fail, plain, Answer};
use crate::file::tally;
use crate::group::Group;
use crate::handles::*;
use crate::process::{self, Identity};
use crate::window::served;
use crate::{comm, host, launcher, pmi, unfinished};

const BEFORE: u8 = 0;
const RUNNING: u8 = 1;
const AFTER: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(BEFORE);

/// True between MPI_Init and MPI_Finalize.
pub fn is_running() -> bool {
    STATE.load(Acquire) == RUNNING
}

/// The value of MPI_Initialized: true even after MPI_Finalize.
pub fn was_initialized() -> bool {
    STATE.load(Acquire) != BEFORE
}

pub fn is_finalized() -> bool {
    STATE.load(Acquire) == AFTER
}

/// Called by every function that needs a running MPI.
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
        (true, _) => "MPI_Finalize was called before it; it must be the last call of MPI",
        (false, _) => "MPI_Init was not called yet; call it first, at the beginning of main",
    };
    fail(MPI_ERR_OTHER, text)
}

/// The thread that has called MPI_Init.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// The level that MPI_Init or MPI_Init_thread has provided. If neither was called (sessions,
/// engines) it is the level that the library always supports: any thread may call it at any time.
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

/// The index of this process's program among those that were started together; None if nothing
/// started it.
pub fn application() -> Option<c_int> {
    std::env::var("SFM_MPI_APPNUM").ok()?.parse().ok()
}

/// The number of processes for which there is room, as given to the launcher (`--usize`).
pub fn universe() -> Option<c_int> {
    std::env::var("SFM_MPI_UNIVERSE").ok()?.parse().ok()
}

/// End all processes of the program with an exit status derived from `code`.
pub fn abort(code: c_int) -> ! {
    let status = status_of(code);
    host::surroundings().flush();
    if launcher::find() {
        launcher::report(launcher::ABORTED, status, &format!("{}\n{code}", callers::report()));
        while !launcher::has_released(Duration::from_secs(60)) {}
    } else {
        eprintln!("MPI_Abort was called in process {} with code {code}", process::this().rank);
        pmi::abort(status);
    }
    // SAFETY: no exit handler of the program runs.
    unsafe { libc::_exit(status) }
}

/// The same for a call that has failed; `text` is the error. `is_lost`: it failed because another
/// process has ended, which is reported differently.
pub fn fail_fatally(code: c_int, is_lost: bool, text: &str) -> ! {
    let status = status_of(code);
    host::surroundings().flush();
    if launcher::find() {
        let kind = if is_lost { launcher::CUT_OFF } else { launcher::FAILED };
        launcher::report(kind, status, &format!("{}\n{text}", callers::report()));
    } else {
        eprintln!("MPI error in process {}: {}", process::this().rank, plain(text));
        pmi::abort(status);
    }
    // SAFETY: it ends the process, and no exit handler of the program runs.
    unsafe { libc::_exit(status) }
}

/// An exit status has eight bits; a code that is not 0 must not become 0, which means success.
fn status_of(code: c_int) -> c_int {
    match code & 0xff {
        0 => c_int::from(code != 0),
        low_bits => low_bits,
    }
}

const UPPER: Upper = Upper {
    window_message: served::arrive,
    window_work: served::catch_up,
    never_received: unfinished::never_received,
};

/// This process's membership of its world.
struct Joined {
    now: bool,
    /// How often it has left.
    times: u32,
}

static JOINED: Mutex<Joined> = Mutex::new(Joined { now: false, times: 0 });
/// Open sessions.
static SESSIONS: AtomicUsize = AtomicUsize::new(0);

/// Join the world, unless this process is a member.
fn join() -> Answer {
    let mut joined = lock(&JOINED);
    if !joined.now {
        match host::engines(true) {
            Some((engines, Some(home))) => {
                process::set(Identity::engine(engines));
                engine::start(home, UPPER);
            }
            _ => {
                launcher::find();
                engine::start(Box::new(Endpoint::join(joined.times)?), UPPER);
            }
        }
        joined.now = true;
    }
    Ok(())
}

/// Join the world, and wait until all of its processes have.
pub fn start() -> Answer {
    join()?;
    engine().endpoint.gather()?;
    STATE.store(RUNNING, Release);
    Ok(())
}

/// Wait until all sends are complete, and no other process needs this one to make progress.
fn complete_all() -> Answer {
    let engine = engine();
    let of = |sending: &Sending| {
        Some(comm::shown::sending(&*comm::of_messages(sending.context())?, sending))
    };
    let needed = || engine.receivers();
    let call = || {
        let first = engine.first_not_received();
        first
            .and_then(|sending| of(&sending))
            .unwrap_or_else(|| report::some(vec![], From::Now(&needed)))
    };
    engine.wait(About::sending(From::Now(&needed), &call), || engine.has_sent_all())?;
    if !engine.endpoint.is_program() {
        return Ok(());
    }
    let world = comm::get(MPI_COMM_WORLD)?;
    let team = Team::of(&world, Collective::Finalize);
    if let Err(failure) = blocking::last_barrier(&world, &team) {
        // Python's end, which usually calls MPI_Finalize, tells nobody that it has failed.
        if failure.code == MPI_ERR_OTHER && engine::is_python() {
            launcher::report_difference(&failure.text);
        }
        return Err(failure);
    }
    // With sessions, other processes may be further ahead.
    if !has_sessions() {
        let of_files = tally::found_at_end()?;
        if let Some(text) = mismatch::unreceived_collective().or(of_files) {
            launcher::report_difference(&text);
        }
        unfinished::report_requests();
        unfinished::ask_senders();
    }
    engine.send_all()
}

/// The end of MPI_COMM_WORLD.
pub fn finish() -> Answer {
    complete_all()?;
    STATE.store(AFTER, Release);
    if engine().endpoint.is_program() {
        comm::finish();
    }
    Ok(())
}

/// Adapt to engines that have been restarted or added: remake MPI_COMM_WORLD from the living ones
/// if they have changed, and allow MPI calls again after MPI_Finalize. Has no effect except in
/// engines, nor before MPI_Init. `epoch`: the time when the last cell was stopped or failed;
/// collective calls are renumbered from it, because some engines may have made more of them than
/// others.
pub fn refresh(epoch: u64) {
    let is_renumbered = comm::renumber_collectives(epoch);
    if !was_initialized() {
        return;
    }
    if is_renumbered {
        engine().forget_leaving();
    }
    let Some((engines, _)) = host::engines(false) else { return };
    let new = Identity::engine(engines);
    if new.generation() != process::this().generation() {
        let new = process::set(new);
        comm::renew(new.generation(), Group::of_world(), new.rank as c_int);
    }
    STATE.store(RUNNING, Release);
}

/// Open a session; other processes need not have one at that time.
pub fn open_session() -> Answer {
    join()?;
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: a function of this library, which is never unloaded.
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

/// Leave after MPI_Finalize, and after the end of the sessions that were open then. Processes that
/// only have sessions, before it or after it, leave when they exit: they do not know which others
/// have some.
pub fn leave_if_done() {
    let joined = lock(&JOINED);
    if is_finalized() && !has_sessions() && joined.times == 0 {
        leave(joined);
    }
}

extern "C" fn leave_at_exit() {
    if !is_running() {
        leave(lock(&JOINED));
    }
}

/// Leave the world, when no other process needs this one any more.
fn leave(mut joined: MutexGuard<'_, Joined>) {
    if !std::mem::take(&mut joined.now) {
        return;
    }
    joined.times += 1;
    let engine = engine();
    // A process that has died does not get it any more.
    let _ = engine.send_all();
    Program.flush(); // before the other processes see that it is done
    launcher::report(launcher::FINISHED, 0, "{}");
    pmi::finish();
    let pause = Duration::from_millis(500);
    while !(launcher::has_released(pause) && pmi::has_released(pause)) {
        engine.advance();
    }
    // Processes that were released earlier may have asked this one to report a message (`unfinished`).
    engine.core.take_in_all();
    engine.advance();
    engine.endpoint.leave();
    pmi::leave();
}
