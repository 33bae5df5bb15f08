//! Connecting with processes that were started separately, or are elsewhere in the world: through a
//! port, or through a socket that both have.
//!
//! A port is a listening socket. Through it the two roots exchange the facts that a communicator
//! between both takes; then the socket is closed.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::{json, Value};
use sfm_native::sync::lock;

use crate::comm::Comm;
use crate::engine::wait_for_socket;
use crate::errors::{fail, Answer};
use crate::group::Group;
use crate::handles::*;
use crate::spawning::{check, failed, share};
use crate::{making, process, sockets};

/// The ports that this process has opened, by name.
static PORTS: LazyLock<Mutex<HashMap<String, Arc<UnixListener>>>> = LazyLock::new(Mutex::default);

/// Open a port; returns its name.
pub fn open() -> Answer<String> {
    let bound = || {
        // Not the seed of a hash map, which forked processes have in common.
        let port = format!("port-{}-{:032x}", process::this().rank, sfm_endpoint::random()?);
        let listener = UnixListener::bind_addr(&sockets::address(&port)?)?;
        Ok((port, listener))
    };
    let (port, listener) = bound().map_err(|error: io::Error| {
        fail(MPI_ERR_OTHER, format!("no socket can be opened for a port: {error}"))
    })?;
    lock(&PORTS).insert(port.clone(), Arc::new(listener));
    Ok(port)
}

pub fn close(port: &str) -> Answer {
    lock(&PORTS).remove(port).map(|_| ()).ok_or_else(|| not_ours(port))
}

fn not_ours(port: &str) -> crate::errors::Failure {
    let opener = port.strip_prefix("port-").and_then(|rest| rest.split_once('-'));
    let text = match opener {
        Some((rank, _)) => format!(
            "port {port:?} is not open at this process: only rank {rank} of the program that \
            opened it accepts there and closes it; other processes connect, and call \
            MPI_Comm_disconnect at the end"
        ),
        None => format!("{port:?} is not a port; MPI_Open_port opens one"),
    };
    fail(MPI_ERR_PORT, text)
}

fn broken(port: &str, error: &io::Error) -> crate::errors::Failure {
    let text = match error.kind() {
        io::ErrorKind::ConnectionRefused => "it is closed, or its process has ended".into(),
        io::ErrorKind::UnexpectedEof => "the other process has closed it, or has ended".into(),
        _ => error.to_string(),
    };
    fail(MPI_ERR_PORT, format!("no connection at port {port:?}: {text}"))
}

/// Wait for a process that connects.
pub fn accept(port: &str) -> Answer<OwnedFd> {
    let listener = lock(&PORTS).get(port).cloned().ok_or_else(|| not_ours(port))?;
    let accepted = || loop {
        wait_for_socket(listener.as_raw_fd(), libc::POLLIN)?;
        let (stream, _) = listener.accept()?;
        if sockets::is_ours(stream.as_raw_fd()) {
            return Ok(stream.into());
        }
    };
    accepted().map_err(|error| broken(port, &error))
}

/// Connect to a process that accepts now or later.
pub fn connect(port: &str) -> Answer<OwnedFd> {
    let stream = sockets::address(port).and_then(|address| UnixStream::connect_addr(&address));
    Ok(stream.map_err(|error| broken(port, &error))?.into())
}

/// A communicator with the processes at the other end of the root's socket.
pub fn meet(comm: &Comm, root: usize, port: &str, socket: Answer<Option<OwnedFd>>) -> Answer<Comm> {
    let greeting = match socket {
        Ok(None) => Value::Null,
        Ok(Some(socket)) => {
            greet(comm, socket.as_raw_fd()).unwrap_or_else(|error| failed(&broken(port, &error)))
        }
        Err(failure) => failed(&failure),
    };
    joined(comm, &share(comm, root, &greeting)?)
}

/// The same for two processes and a socket that connects them; None if it leads to another machine.
pub fn join(comm: &Comm, socket: RawFd) -> Answer<Option<Comm>> {
    let greeting = greet(comm, socket).map_err(|error| broken("of the socket", &error))?;
    if greeting["machine"] != machine() {
        return Ok(None);
    }
    joined(comm, &greeting).map(Some)
}

/// Exchange facts with the other root; both get the same number.
fn greet(comm: &Comm, socket: RawFd) -> io::Result<Value> {
    let number = making::next();
    let worlds = process::worlds();
    let facts = json!({
        "number": number, "members": comm.group.members, "machine": machine(), "worlds": worlds
    });
    let facts = facts.to_string().into_bytes();
    sockets::send(socket, &(facts.len() as u64).to_le_bytes(), wait_for_socket)?;
    sockets::send(socket, &facts, wait_for_socket)?;
    let length = sockets::receive(socket, 8, wait_for_socket)?.try_into().expect("eight bytes");
    let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LONGEST {
        return Err(io::Error::other("the other program is not an MPI program"));
    }
    let mut greeting: Value =
        serde_json::from_slice(&sockets::receive(socket, length, wait_for_socket)?)?;
    let lower = greeting["number"].as_u64().map_or(number, |other| other.min(number));
    greeting["number"] = lower.into();
    Ok(greeting)
}

/// The largest size of a greeting: the numbers of as many processes as a world can have.
const LONGEST: usize = 1 << 20;

/// Identifies this machine since its last boot.
fn machine() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into()
}

fn joined(comm: &Comm, greeting: &Value) -> Answer<Comm> {
    check(greeting, MPI_ERR_PORT)?;
    let members = greeting["members"].as_array().into_iter().flatten();
    let remote =
        Group::new(members.filter_map(Value::as_i64).map(|number| number as c_int).collect());
    if remote.members.iter().all(|member| process::nth(*member as usize).is_some()) {
        let worlds = greeting["worlds"].as_array().into_iter().flatten();
        process::note_worlds(worlds.filter_map(Value::as_u64).map(|first| first as usize));
    }
    if remote.members.iter().any(|member| comm.group.rank_of(*member).is_some()) {
        return Err(fail(MPI_ERR_COMM, "the two groups have a process in common"));
    }
    let number = greeting["number"].as_u64().unwrap_or(0);
    let made = making::child(comm, number, comm.group.clone(), comm.rank as usize);
    Ok(made.with_remote(remote))
}
