//! A program that another MPI's mpiexec has started, and that runs on this library: its processes
//! are a world of their own.
//!
//! MPICH's launcher and its relatives give each process a socket (`PMI_FD`), and answer questions
//! there in the lines of PMI 1. They also end the others when a process ends before it says that it
//! is done.

use std::env;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::sockets::{self, block};

/// What the launcher says about the processes that it has started.
pub struct Job {
    /// Its name; no other job of this machine has it.
    pub name: String,
    pub rank: usize,
    pub size: usize,
}

/// The socket; -1 if no such launcher has started this process, or if it need not answer any more.
static SOCKET: AtomicI32 = AtomicI32::new(-1);

const INSTEAD: &str = "start the program with `python -m sfm_kernel.mpi`";

/// Greet the launcher, if one has started this process; returns this process's job.
pub fn greet() -> Answer<Option<Job>> {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    if number("OMPI_COMM_WORLD_SIZE").is_some_and(|size| size > 1) {
        let text = format!("Open MPI's launcher cannot start processes of this library; {INSTEAD}");
        return Err(fail(MPI_ERR_OTHER, text));
    }
    let known = number("PMI_FD").zip(number("PMI_RANK")).zip(number("PMI_SIZE"));
    let Some(((fd, rank), size)) = known.filter(|((fd, _), _)| is_socket(*fd as RawFd)) else {
        return Ok(None); // a process that a process of such a job has started has the variables
    };
    if number("MPI_LOCALNRANKS").is_some_and(|here| here < size) {
        let text = format!("mpiexec has started processes on several machines; {INSTEAD} on one");
        return Err(fail(MPI_ERR_OTHER, text));
    }
    SOCKET.store(fd as RawFd, Ordering::Release);
    ask("init pmi_version=1 pmi_subversion=1", "rc")?;
    Ok(Some(Job { name: ask("get_my_kvsname", "kvsname")?, rank, size }))
}

impl Job {
    /// The number that rank 0 makes, at all ranks. Every rank calls it once.
    pub fn share(&self, make: impl FnOnce() -> usize) -> Answer<usize> {
        let (name, key) = (&self.name, "key=sfm-launch");
        if self.rank == 0 {
            ask(&format!("put kvsname={name} {key} value={}", make()), "rc")?;
        }
        ask("barrier_in", "cmd")?;
        let text = ask(&format!("get kvsname={name} {key}"), "value")?;
        text.parse().map_err(|_| silent())
    }
}

fn is_socket(fd: RawFd) -> bool {
    let mut kind = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    let (to, option) = ((&raw mut kind).cast(), libc::SO_DOMAIN);
    // SAFETY: room for the answer; any number may be asked about.
    unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, option, to, &mut length) == 0 }
}

fn silent() -> Failure {
    fail(MPI_ERR_OTHER, format!("the mpiexec that has started this process has ended; {INSTEAD}"))
}

/// Send a command; returns a value of its answer.
fn ask(command: &str, wanted: &str) -> Answer<String> {
    let fd = SOCKET.load(Ordering::Acquire);
    sockets::send(fd, format!("cmd={command}\n").as_bytes(), block).map_err(|_| silent())?;
    answer(wanted)
}

/// A value of the launcher's next answer.
fn answer(wanted: &str) -> Answer<String> {
    let (fd, mut line) = (SOCKET.load(Ordering::Acquire), Vec::new());
    while line.last() != Some(&b'\n') {
        line.extend(sockets::receive(fd, 1, block).map_err(|_| silent())?);
    }
    let line = String::from_utf8_lossy(&line).into_owned();
    let mut values = line.split_whitespace().filter_map(|word| word.split_once('='));
    values.find(|(key, _)| *key == wanted).map(|(_, value)| value.into()).ok_or_else(silent)
}

/// True if this process is of such a job, and has not left it.
pub fn is_member() -> bool {
    SOCKET.load(Ordering::Acquire) >= 0
}

/// Say that this process needs no other one any more. `has_released` is true when all have.
pub fn finish() {
    if is_member() {
        let _ = sockets::send(SOCKET.load(Ordering::Acquire), b"cmd=barrier_in\n", block);
    }
}

/// True if no process of the job needs this one any more, or if there is none; waits up to `limit`
/// for it.
pub fn has_released(limit: Duration) -> bool {
    !is_member() || sockets::has_news(SOCKET.load(Ordering::Acquire), limit)
}

/// Have the launcher end all processes of the job with this exit status.
pub fn abort(status: c_int) {
    if is_member() {
        let command = format!("cmd=abort exitcode={status}\n");
        let _ = sockets::send(SOCKET.load(Ordering::Acquire), command.as_bytes(), block);
    }
}

/// Leave the job, which has been released.
pub fn leave() {
    if is_member() {
        let _ = answer("cmd").and_then(|_| ask("finalize", "cmd")); // of `finish`, and of this
        SOCKET.store(-1, Ordering::Release);
    }
}
