//! Sessions: each lets a part of the program use MPI on its own, whether MPI_Init was called or not.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::errhandlers::Attached;
use crate::errors::{fail, Answer};
use crate::group::Group;
use crate::handles::*;
use crate::info::Info;
use crate::table::Table;
use crate::{process, world};

pub struct Session {
    pub errhandler: Attached,
    pub buffer: Buffer,
    pub info: Info,
}

static SESSIONS: Table<Session> = Table::new(0xb800_0000);

/// A new one; the process is a member of its world from now on.
pub fn open(info: &Info, errhandler: MPI_Errhandler) -> Answer<MPI_Session> {
    let own = Attached::new();
    own.set(errhandler)?;
    world::open_session()?;
    let mut used = Info::default();
    used.set("thread_level".into(), "MPI_THREAD_MULTIPLE".into());
    used.set("mpi_memory_alloc_kinds".into(), "mpi,system".into());
    let hints = info.entries.iter().filter(|(key, _)| used.get(key).is_none());
    let hints: Vec<_> = hints.cloned().collect();
    used.entries.extend(hints);
    let (buffer, info) = (Buffer::default(), used);
    Ok(SESSIONS.insert(Arc::new(Session { errhandler: own, buffer, info })))
}

pub fn find(handle: MPI_Session) -> Option<Arc<Session>> {
    SESSIONS.get(handle)
}

pub fn get(handle: MPI_Session) -> Answer<Arc<Session>> {
    find(handle).ok_or_else(|| {
        let text = match handle {
            MPI_SESSION_NULL => "argument session is MPI_SESSION_NULL".into(),
            _ => format!("argument session ({handle:#010x}) is none, or one that was finalized"),
        };
        fail(MPI_ERR_SESSION, text)
    })
}

pub fn close(handle: MPI_Session) -> Answer {
    get(handle)?.buffer.flush()?;
    SESSIONS.release(handle);
    world::close_session()
}

/// Names of the sets of processes that every process knows.
pub const SETS: [&str; 2] = ["mpi://WORLD", "mpi://SELF"];

/// The processes of a set.
pub fn set(handle: MPI_Session, name: &str) -> Answer<Arc<Group>> {
    get(handle)?;
    let group = match name {
        "mpi://WORLD" => world::everybody(),
        "mpi://SELF" => Group::new(vec![process::own().number()]),
        _ => {
            let text = format!("there is no set {name:?}; the sets are {}", SETS.join(" and "));
            return Err(fail(MPI_ERR_ARG, text));
        }
    };
    Ok(group.of_session(handle))
}
