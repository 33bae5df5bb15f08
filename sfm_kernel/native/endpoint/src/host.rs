//! The program around an endpoint: what the core's waiting calls know of it (`calls::Host`).

use std::fs;
use std::sync::{Arc, Mutex};

use serde_json::json;

use sfm_native::calls::{End, Host};
use sfm_native::clock::now;
use sfm_native::core::Core;
use sfm_native::main_thread::{In, SystemCall};
use sfm_native::segment::Activity;
use sfm_native::sync::lock;

use crate::callers;
use crate::endpoint::Endpoint;
use crate::error::{Error, Kind, Result};
use crate::{handlers, wait_facts};

/// Runs the program's signal handlers, which may end what waits: by an error. Called often; no lock is
/// held meanwhile.
pub type Signals<'a> = &'a dyn Fn() -> Result<()>;

/// An endpoint's program, as its waiting calls see it.
pub trait Surroundings: Send + Sync {
    /// A signal came while a call waited, or may have come to another thread: an error ends the
    /// call. The handlers of a program in C have run already, and it goes on.
    fn signals(&self) -> Result<()> {
        Ok(())
    }

    /// Whether the address that an entry has noted is the call's location in the program
    /// (callers.rs).
    fn has_addresses(&self) -> bool {
        true
    }

    /// The present call as the program has it, if that differs from the library's function: asked
    /// for once the call is seen to wait.
    fn call(&self) -> Option<ProgramCall> {
        None
    }

    /// The present reduction of objects, which mpi4py makes of its own messages.
    fn reduction(&self) -> Option<Reduction> {
        None
    }

    /// The program will raise an exception because of what its present call returns: let the
    /// exception also say `why`.
    fn expect_failure(&self, _why: &dyn Fn() -> String) {}

    /// A call has begun at this thread's present location: its events are shown there.
    fn enter(&self) {}

    /// The number of the present call (sites.rs), as cheap as can be.
    fn site(&self) -> u32 {
        callers::site()
    }

    /// Write the program's buffered output: the process is about to end without its exit handlers.
    fn flush(&self) {
        // SAFETY: no preconditions.
        unsafe { libc::fflush(std::ptr::null_mut()) };
    }

    /// An observer asks what the main thread does while it is in no call: publish it. Called in the
    /// network thread, which must not wait for the program.
    fn examine(&self, core: &Arc<Core>) {
        let main = &core.shared().main;
        if core.shared().activity_is(Activity::Running) && main.ask(now()) {
            let is_in = SystemCall::current().map_or(In::Code, |call| match call.is_for_ever() {
                true if others(std::process::id() as i32).is_empty() => In::Held,
                _ => call.is_in(false),
            });
            main.publish(is_in, 0, now());
        }
    }

    /// Which other parts of the program could go on while this thread waits: JSON for observers,
    /// empty if none could. As in `sfm_kernel/endpoint/bystanders.py`.
    fn bystanders(&self) -> String {
        let shown = others(this_thread());
        if shown.is_empty() {
            String::new()
        } else {
            shortened(shown)
        }
    }
}

/// A call as the program's source has it.
pub struct ProgramCall {
    /// `comm.recv`
    pub text: String,
    /// Arguments that the library does not get, with their values.
    pub given: Vec<(String, String)>,
}

/// A reduction of objects, as the program's source has it.
pub struct Reduction {
    /// `allreduce`
    pub method: String,
    /// A predefined operation, `MPI_SUM`.
    pub op: Option<String>,
    pub root: Option<usize>,
    /// True if they are the same in each call of that line.
    pub is_fixed: bool,
}

/// A program in C, or in another compiled language.
pub struct Program;

impl Surroundings for Program {}

/// An endpoint as the host of its calls.
pub struct Around<'a>(pub &'a Endpoint);

impl Host for Around<'_> {
    type Error = Error;

    fn signals(&self) -> Result<()> {
        self.0.check_interrupt()?;
        self.0.surroundings().signals()
    }

    fn release<T: Send>(&self, work: impl Send + FnOnce() -> T) -> T {
        work()
    }

    fn bystanders(&self) -> Result<Option<String>> {
        Ok(Some(self.0.surroundings().bystanders()))
    }

    fn ended(&self, why: End) -> Error {
        error_of(why)
    }

    fn is_loss(&self, failure: &Error) -> bool {
        failure.kind == Kind::PeerLost
    }
}

/// The error for the core's reason to end a call.
pub fn error_of(why: End) -> Error {
    let kind = match &why {
        End::Closed => return Error::closed(),
        End::Deadlock(judgement) => {
            return Error::new(Kind::Deadlock, wait_facts::judgement_text(judgement))
        }
        End::Damaged(_) => Kind::Packet,
        End::MessagesLost => Kind::MessagesLost,
        End::TooLarge(_) | End::NoMemory => Kind::MessageTooLarge,
        End::Unopened(_) | End::Reentered => Kind::System,
    };
    Error::new(kind, why.to_string())
}

/// Bystanders that are listed one by one.
const SHOWN: usize = 6;

fn shortened(mut shown: Vec<serde_json::Value>) -> String {
    if shown.len() > SHOWN + 1 {
        let more = shown.len() - SHOWN;
        shown.truncate(SHOWN);
        shown.push(json!(["more", more.to_string(), "", 0, null]));
    }
    serde_json::Value::from(shown).to_string()
}

pub fn this_thread() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// What could do something for the program beside this thread.
fn others(this: i32) -> Vec<serde_json::Value> {
    let other = |kind: &str, name: String| json!([kind, name, "", 0, null]);
    let internal = lock(&INTERNAL).clone();
    let of_program = threads().filter(|id| *id != this && !internal.contains(id) && acts(*id));
    let mut found: Vec<_> = of_program.map(|id| other("thread", name_of(id))).collect();
    found.extend(handlers::handled().map(|(signal, _)| other("signal", handlers::name(signal))));
    if handlers::has_timer() {
        found.push(other("timer", handlers::name(libc::SIGALRM)));
    }
    found
}

fn threads() -> impl Iterator<Item = i32> {
    let folder = fs::read_dir("/proc/self/task").into_iter().flatten();
    folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn name_of(id: i32) -> String {
    fs::read_to_string(format!("/proc/self/task/{id}/comm"))
        .unwrap_or_default()
        .trim_end()
        .to_owned()
}

/// Threads of this library, which do nothing for the program.
static INTERNAL: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Marks the calling thread as the library's while this lives.
pub struct InternalThread(i32);

impl InternalThread {
    pub fn enter() -> InternalThread {
        let id = this_thread();
        lock(&INTERNAL).push(id);
        InternalThread(id)
    }
}

impl Drop for InternalThread {
    fn drop(&mut self) {
        lock(&INTERNAL).retain(|id| *id != self.0);
    }
}

/// Whether a thread could do something by itself. One that sleeps without a limit for a word of
/// this process's own memory, such as an idle one of OpenMP or of a library, cannot: another thread
/// of the process has to wake it, and is listed itself if it can.
fn acts(id: i32) -> bool {
    let line = fs::read_to_string(format!("/proc/self/task/{id}/syscall"));
    !line.is_ok_and(|line| sleeps_for_others(&line))
}

/// From a line of proc(5), /proc/PID/task/TID/syscall.
fn sleeps_for_others(line: &str) -> bool {
    let Some(SystemCall { number, arguments }) = SystemCall::of(line) else { return false };
    let [_, operation, _, limit, ..] = arguments;
    let [wait, wait_for_bits] = [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET];
    let this = libc::FUTEX_PRIVATE_FLAG;
    let operation = operation as i32 & !libc::FUTEX_CLOCK_REALTIME;
    number == libc::SYS_futex
        && limit == 0
        && (operation == wait | this || operation == wait_for_bits | this)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_for_its_own_process_is_no_bystander() {
        let line = |words: &str| format!("{} {words} 0x0 0x0 0x7ffd 0x7f00\n", libc::SYS_futex);
        assert!(sleeps_for_others(&line("0x1 0x80 0x0 0x0")));
        assert!(sleeps_for_others(&line("0x1 0x189 0x0 0x0")));
        assert!(!sleeps_for_others(&line("0x1 0x189 0x0 0x7ff")), "it has a limit");
        assert!(!sleeps_for_others(&line("0x1 0x0 0x0 0x0")), "other processes can wake it");
        assert!(!sleeps_for_others("running\n") && !sleeps_for_others("0 0x0 0x1 0x1 0x0"));
    }

    #[test]
    fn a_thread_that_sleeps_for_a_while_could_go_on() {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let work = move || {
            while stopped.recv_timeout(std::time::Duration::from_millis(50)).is_err() {}
        };
        let thread = std::thread::Builder::new().name("works".into()).spawn(work).unwrap();
        while !Program.bystanders().contains("works") {
            std::thread::yield_now();
        }
        stop.send(()).unwrap();
        thread.join().unwrap();
        assert!(!Program.bystanders().contains("works"));
    }
}
