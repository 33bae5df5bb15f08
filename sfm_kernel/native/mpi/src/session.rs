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

/// An info key of sessions, and its values.
const THREAD_LEVEL: &str = "thread_level";
const LEVELS: [&str; 4] =
    ["MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"];

static SESSIONS: Table<Session> = Table::new(0xb800_0000);

/// Open a session; from now on the process is a member of its world.
pub fn open(info: &Info, errhandler: MPI_Errhandler) -> Answer<MPI_Session> {
    let attached = Attached::new();
    attached.set(errhandler)?;
    let mut used = Info::default();
    used.set(THREAD_LEVEL.into(), thread_level(info)?.into());
    used.set("mpi_memory_alloc_kinds".into(), "mpi,system".into());
    world::open_session()?;
    let (buffer, info) = (Buffer::default(), used);
    Ok(SESSIONS.insert(Arc::new(Session { errhandler: attached, buffer, info })))
}

/// The level of thread support that a session provides: the requested one, or the highest.
fn thread_level(info: &Info) -> Answer<&str> {
    let level = info.get(THREAD_LEVEL).unwrap_or(LEVELS[3]);
    if LEVELS.contains(&level) {
        return Ok(level);
    }
    let text = format!("info key {THREAD_LEVEL} is {level:?}; give one of {}", LEVELS.join(", "));
    Err(fail(MPI_ERR_ARG, text))
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

/// The processes of a process set. Its name is a URI, in which the case of letters means nothing.
pub fn set(handle: MPI_Session, name: &str) -> Answer<Arc<Group>> {
    get(handle)?;
    let group = match SETS.iter().position(|set| set.eq_ignore_ascii_case(name)) {
        Some(0) => Group::of_world(),
        Some(_) => Group::new(vec![process::this().number()]),
        None => {
            let text = format!("there is no set {name:?}; the sets are {}", SETS.join(" and "));
            return Err(fail(MPI_ERR_ARG, text));
        }
    };
    Ok(group.of_session(handle))
}
