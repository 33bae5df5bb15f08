//! Meeting processes that were started apart, or are in another part of the world: through a port, or
//! a socket that both have.
//!
//! A port is a socket that listens. The two roots tell each other through it what the communicator
//! between both takes; then it has done its work.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use serde_json::{json, Value};

use crate::comm::Comm;
use crate::errors::{fail, Answer};
use crate::group::Group;
use crate::handles::*;
use crate::spawning::{check, failed, share};
use crate::{making, process, sockets};

/// Those that this process has opened, by name.
static PORTS: LazyLock<Mutex<HashMap<String, Arc<UnixListener>>>> = LazyLock::new(Mutex::default);

fn ports() -> MutexGuard<'static, HashMap<String, Arc<UnixListener>>> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A new one; its name.
pub fn open() -> Answer<String> {
    let bound = || {
        // Not a hash map's seed: those of forked processes are the same.
        let port = format!("port-{}-{:032x}", process::own().rank, sfm_endpoint::random()?);
        let listener = UnixListener::bind_addr(&sockets::address(&port)?)?;
        Ok((port, listener))
    };
    let (port, listener) = bound().map_err(|error: io::Error| {
        fail(MPI_ERR_OTHER, format!("the system gives no socket for a port: {error}"))
    })?;
    ports().insert(port.clone(), Arc::new(listener));
    Ok(port)
}

pub fn close(port: &str) -> Answer {
    ports().remove(port).map(|_| ()).ok_or_else(|| not_ours(port))
}

fn not_ours(port: &str) -> crate::errors::Failure {
    let opener = port.strip_prefix("port-").and_then(|rest| rest.split_once('-'));
    let text = match opener {
        Some((rank, _)) => format!(
            "port {port:?} is not open at this process: rank {rank} of the program that opened it \
             is the one that accepts there and closes it; others connect, and call \
             MPI_Comm_disconnect when they are done"
        ),
        None => format!("{port:?} is no port; MPI_Open_port gives one"),
    };
    fail(MPI_ERR_PORT, text)
}

fn broken(port: &str, error: &io::Error) -> crate::errors::Failure {
    let text = match error.kind() {
        io::ErrorKind::ConnectionRefused => "it is closed, or its process has ended".into(),
        io::ErrorKind::UnexpectedEof => "whoever is there has closed it, or ended".into(),
        _ => error.to_string(),
    };
    fail(MPI_ERR_PORT, format!("nobody can be met at port {port:?}: {text}"))
}

/// Wait for somebody who connects.
pub fn accept(port: &str) -> Answer<OwnedFd> {
    let listener = ports().get(port).cloned().ok_or_else(|| not_ours(port))?;
    let accepted = || loop {
        sockets::wait_for(listener.as_raw_fd(), libc::POLLIN)?;
        let (stream, _) = listener.accept()?;
        if sockets::is_ours(stream.as_raw_fd()) {
            return Ok(stream.into());
        }
    };
    accepted().map_err(|error| broken(port, &error))
}

/// Go to where somebody accepts, or will.
pub fn connect(port: &str) -> Answer<OwnedFd> {
    let stream = sockets::address(port).and_then(|address| UnixStream::connect_addr(&address));
    Ok(stream.map_err(|error| broken(port, &error))?.into())
}

/// The communicator to those who are at the other end of the socket that the root has.
pub fn meet(comm: &Comm, root: usize, port: &str, socket: Answer<Option<OwnedFd>>) -> Answer<Comm> {
    let said = match socket {
        Ok(None) => Value::Null,
        Ok(Some(socket)) => {
            greet(comm, socket.as_raw_fd()).unwrap_or_else(|error| failed(&broken(port, &error)))
        }
        Err(failure) => failed(&failure),
    };
    joined(comm, &share(comm, root, &said)?)
}

/// The same of two processes and a socket that connects them; None where that leads to another
/// machine.
pub fn join(comm: &Comm, socket: RawFd) -> Answer<Option<Comm>> {
    let said = greet(comm, socket).map_err(|error| broken("of the socket", &error))?;
    if said["machine"] != machine() {
        return Ok(None);
    }
    joined(comm, &said).map(Some)
}

/// Tell the other root what it needs, and hear the same of it; the number is then common.
fn greet(comm: &Comm, socket: RawFd) -> io::Result<Value> {
    let number = making::next();
    let own = json!({"number": number, "members": comm.group.members, "machine": machine()});
    let own = own.to_string().into_bytes();
    sockets::send(socket, &(own.len() as u64).to_le_bytes())?;
    sockets::send(socket, &own)?;
    let length = sockets::receive(socket, 8)?.try_into().expect("eight bytes");
    let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LONGEST {
        return Err(io::Error::other("what is there is no MPI program"));
    }
    let mut theirs: Value = serde_json::from_slice(&sockets::receive(socket, length)?)?;
    let both = theirs["number"].as_u64().map_or(number, |their| their.min(number));
    theirs["number"] = both.into();
    Ok(theirs)
}

/// Bytes that a greeting has at most: numbers of as many processes as a world can have.
const LONGEST: usize = 1 << 20;

/// Since its start, among all.
fn machine() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into()
}

fn joined(comm: &Comm, said: &Value) -> Answer<Comm> {
    check(said, MPI_ERR_PORT)?;
    let members = said["members"].as_array().into_iter().flatten();
    let remote = Group::new(members.filter_map(Value::as_i64).map(|one| one as c_int).collect());
    if remote.members.iter().any(|member| comm.group.rank_of(*member).is_some()) {
        return Err(fail(MPI_ERR_COMM, "the two groups have a process in common"));
    }
    let number = said["number"].as_u64().unwrap_or(0);
    let mut made = making::child(comm, number, comm.group.clone(), comm.rank as usize);
    made.remote = Some(remote);
    Ok(made)
}
