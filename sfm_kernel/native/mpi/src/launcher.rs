//! Messages between this process and the launcher that has started it: see
//! sfm_kernel/mpi/launch/reports.py. Without a launcher nothing is sent.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use sfm_native::sync::lock;

use crate::engine::wait_for_socket;
use crate::errors::plain;
use crate::process::{self, is_rank};
use crate::{pmi, sockets, starting};

/// The socket's descriptor; -1 without a launcher.
static SOCKET: AtomicI32 = AtomicI32::new(-1);

pub const STARTED: &str = "started";
pub const FINISHED: &str = "finished";
pub const ABORTED: &str = "aborted";
/// A call has failed: for these two kinds the text has the code location of the call
/// (`callers::report`) in two lines, then the error.
pub const FAILED: &str = "failed";
pub const CUT_OFF: &str = "cut off";
/// A call has failed because another process has ended: what this one does next may follow from it.
pub const PEER_LOST: &str = "peer lost";
/// Something was begun and not ended: see `unfinished`.
pub const UNFINISHED: &str = "left";
/// Collective calls that differ have all returned.
pub const DIFFERED: &str = "differed";
/// A request to start processes.
pub const SPAWN: &str = "spawn";

/// Find the launcher; true if there is one.
pub fn find() -> bool {
    if socket().is_none() {
        connect();
    }
    socket().is_some()
}

fn connect() {
    let text = std::env::var("SFM_MPI_REPORTS").ok();
    let Some(fd) = text.and_then(|text| text.parse::<i32>().ok()) else { return };
    if !is_rank() {
        return;
    }
    // SAFETY: no memory is involved. Processes that the program starts do not inherit it.
    if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } == 0 {
        SOCKET.store(fd, Ordering::Release);
    }
}

fn socket() -> Option<i32> {
    Some(SOCKET.load(Ordering::Acquire)).filter(|fd| *fd >= 0)
}

/// Report to the launcher; if it has died the report is dropped.
pub fn report(kind: &str, status: i32, text: &str) {
    let Some(fd) = socket() else { return };
    let _ = send(fd, kind, status, text);
}

/// Report, once, that another process has ended.
pub fn report_loss() {
    static WAS_SENT: AtomicBool = AtomicBool::new(false);
    if !WAS_SENT.swap(true, Ordering::Relaxed) {
        report(PEER_LOST, 0, "");
    }
}

/// Report that collective calls have differed: the program has not ended well.
pub fn report_difference(text: &str) {
    match find() {
        true => report(DIFFERED, 1, text),
        false => eprintln!("MPI_Finalize in process {}: {}", process::this().rank, plain(text)),
    }
}

fn send(fd: i32, kind: &str, status: i32, text: &str) -> io::Result<()> {
    let report = json!([kind, status, text]).to_string();
    // SAFETY: the call reads so many bytes of the text, which lives until it returns.
    match unsafe { libc::send(fd, report.as_ptr().cast(), report.len(), libc::MSG_NOSIGNAL) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Send a request and wait for the answer; None if the launcher has died. If there is none, one is
/// started.
pub fn ask(kind: &str, text: &str) -> io::Result<Option<String>> {
    static ONE: Mutex<()> = Mutex::new(()); // answers come in the order of requests
    let _one = lock(&ONE);
    if pmi::is_member() {
        let text =
            "a program that another MPI's mpiexec has started cannot start processes; start it \
            with `python -m sfm_kernel.mpi`";
        return Err(io::Error::other(text));
    }
    if socket().is_none() {
        SOCKET.store(starting::start(wait_for_socket)?, Ordering::Release);
    }
    let Some(fd) = socket() else { return Ok(None) };
    send(fd, kind, 0, text)?;
    sockets::message(fd, wait_for_socket)
}

/// True if all processes of the program are done, or the launcher has died; waits up to `limit` for
/// it.
pub fn has_released(limit: Duration) -> bool {
    // Nothing is requested any more, so only an end can come.
    socket().is_none_or(|fd| sockets::has_news(fd, limit))
}
