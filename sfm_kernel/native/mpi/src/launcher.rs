//! What this process and the launcher that has started it tell each other: see
//! sfm_kernel/mpi/launch/reports.py. Without a launcher nobody is told anything.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;

use crate::process::is_rank;
use crate::{sockets, starting};

/// The socket's descriptor; -1 without a launcher.
static SOCKET: AtomicI32 = AtomicI32::new(-1);

pub const STARTED: &str = "started";
pub const FINISHED: &str = "finished";
pub const ABORTED: &str = "aborted";
/// A call has failed: with these two the text has the call's place (`callers::told`) in two lines,
/// and then what is wrong.
pub const FAILED: &str = "failed";
pub const CUT_OFF: &str = "cut off";
/// Something was begun and not ended: see `left`.
pub const LEFT: &str = "left";
/// Processes are asked for.
pub const SPAWN: &str = "spawn";

/// Find the launcher, if there is one; whether there is.
pub fn find() -> bool {
    if socket().is_none() {
        look();
    }
    socket().is_some()
}

fn look() {
    let text = std::env::var("SFM_MPI_REPORTS").ok();
    let Some(fd) = text.and_then(|text| text.parse::<i32>().ok()) else { return };
    if !is_rank() {
        return;
    }
    // SAFETY: no memory is involved. What the program starts does not get it.
    if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } == 0 {
        SOCKET.store(fd, Ordering::Release);
    }
}

fn socket() -> Option<i32> {
    Some(SOCKET.load(Ordering::Acquire)).filter(|fd| *fd >= 0)
}

/// Tell the launcher; if it has died, nobody needs to know.
pub fn tell(kind: &str, status: i32, text: &str) {
    let Some(fd) = socket() else { return };
    let _ = say(fd, kind, status, text);
}

fn say(fd: i32, kind: &str, status: i32, text: &str) -> io::Result<()> {
    let report = json!([kind, status, text]).to_string();
    // SAFETY: reads the text.
    match unsafe { libc::send(fd, report.as_ptr().cast(), report.len(), libc::MSG_NOSIGNAL) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Ask for something and wait for the answer; None where the launcher has died. Without one, it is
/// started.
pub fn ask(kind: &str, text: &str) -> io::Result<Option<String>> {
    static ONE: Mutex<()> = Mutex::new(()); // answers come in the order of questions
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if socket().is_none() {
        SOCKET.store(starting::start()?, Ordering::Release);
    }
    let Some(fd) = socket() else { return Ok(None) };
    say(fd, kind, 0, text)?;
    answer(fd)
}

/// What it says next.
pub fn answer(fd: i32) -> io::Result<Option<String>> {
    sockets::wait_for(fd, libc::POLLIN)?;
    let mut answer = vec![0; 1 << 16];
    // SAFETY: room for so many bytes.
    let length = unsafe { libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), 0) };
    answer.truncate(length.max(0) as usize);
    Ok(Some(String::from_utf8_lossy(&answer).into_owned()).filter(|text| !text.is_empty()))
}

/// Whether all processes of the program are done, or the launcher has died; waits so long for it.
pub fn has_released(limit: Duration) -> bool {
    let Some(fd) = socket() else { return true };
    let mut one = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry. Nothing is asked any more, so that only an end comes.
    unsafe { libc::poll(&mut one, 1, limit.as_millis() as i32) > 0 }
}
