//! Sessions: each lets a component of the program use MPI on its own, with or without MPI_Init.

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

/// Open a session; from now on the process is a member of its world.
pub fn open(info: &Info, errhandler: MPI_Errhandler) -> Answer<MPI_Session> {
    let attached = Attached::new();
    attached.set(errhandler)?;
    world::open_session()?;
    let mut used = Info::default();
    used.set("thread_level".into(), "MPI_THREAD_MULTIPLE".into());
    used.set("mpi_memory_alloc_kinds".into(), "mpi,system".into());
    let hints = info.entries.iter().filter(|(key, _)| used.get(key).is_none());
    let hints: Vec<_> = hints.cloned().collect();
    used.entries.extend(hints);
    let (buffer, info) = (Buffer::default(), used);
    Ok(SESSIONS.insert(Arc::new(Session { errhandler: attached, buffer, info })))
}

pub fn find(handle: MPI_Session) -> Option<Arc<Session>> {
    SESSIONS.get(handle)
}

pub fn get(handle: MPI_Session) -> Answer<Arc<Session>> {
    find(handle).ok_or_else(|| {
        let text = match handle {
            MPI_SESSION_NULL => "argument session is MPI_SESSION_NULL".into(),
            _ => format!("argument session ({handle:#010x}) is not a session, or was finalized"),
        };
        fail(MPI_ERR_SESSION, text)
    })
}

pub fn close(handle: MPI_Session) -> Answer {
    get(handle)?.buffer.flush()?;
    SESSIONS.release(handle);
    world::close_session()
}

/// Names of the process sets that every process knows.
pub const SETS: [&str; 2] = ["mpi://WORLD", "mpi://SELF"];

/// The processes of a process set.
pub fn set(handle: MPI_Session, name: &str) -> Answer<Arc<Group>> {
    get(handle)?;
    let group = match name {
        "mpi://WORLD" => world::everybody(),
        "mpi://SELF" => Group::new(vec![process::this().number()]),
        _ => {
            let text = format!("there is no set {name:?}; the sets are {}", SETS.join(" and "));
            return Err(fail(MPI_ERR_ARG, text));
        }
    };
    Ok(group.of_session(handle))
}
