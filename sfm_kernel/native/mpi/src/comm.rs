//! Communicators as data: who is in one, and what hangs on it. functions/communicators.rs makes
//! them, which takes communication.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use crate::attributes::Attributes;
use crate::buffer::Buffer;
use crate::collective::meeting::Meetings;
use crate::collective::sites::Sites;
use crate::engine;
use crate::errhandlers::Attached;
use crate::errors::{fail, Answer};
use crate::group::Group;
use crate::handles::*;
use crate::info::Info;
use crate::table::Table;
use crate::topology::Topology;

pub struct Comm {
    /// What every message of this communicator carries, so that no other receives it.
    pub context: u64,
    /// The processes whose ranks `rank` counts: of an intercommunicator, the local ones.
    pub group: Arc<Group>,
    /// This process's rank in `group`.
    pub rank: c_int,
    /// The other side of an intercommunicator, whose ranks its messages name.
    pub remote: Option<Arc<Group>>,
    pub topology: Option<Topology>,
    pub errhandler: Attached,
    pub attributes: Attributes,
    pub info: Mutex<Info>,
    /// For its buffered sends.
    pub buffer: Buffer,
    /// The session that it comes of, or MPI_SESSION_NULL.
    pub session: MPI_Session,
    /// The next collective's number, of those that block and of the others.
    pub collectives: AtomicU32,
    pub begun: AtomicU32,
    /// Where its processes meet that share memory.
    pub meetings: Meetings,
    /// Where its processes are, if that is at several sites; from the first collective on.
    pub sites: OnceLock<Option<Arc<Sites>>>,
    name: Mutex<String>,
}

static COMMS: Table<Comm> = Table::new(0x8400_0000);
/// MPI_COMM_WORLD and MPI_COMM_SELF.
static PREDEFINED: RwLock<[Option<Arc<Comm>>; 2]> = RwLock::new([None, None]);

/// See `number_anew`.
static ANEW: AtomicU64 = AtomicU64::new(0);

/// The first number of collective calls.
fn first_number() -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    // A million of numbers each, so that what is left of a call before is of no call after.
    (ANEW.load(Relaxed).wrapping_mul(ODD) >> 55) as u32 * (1 << 20)
}

impl Comm {
    /// Without topology, attributes and name, and with errors fatal; change what is to be else.
    pub fn new(context: u64, group: Arc<Group>, rank: c_int) -> Comm {
        Comm {
            context,
            group,
            rank,
            remote: None,
            topology: None,
            errhandler: Attached::new(),
            attributes: Attributes::default(),
            info: Mutex::default(),
            buffer: Buffer::default(),
            session: MPI_SESSION_NULL,
            collectives: AtomicU32::new(first_number()),
            begun: AtomicU32::new(first_number()),
            meetings: Meetings::default(),
            sites: OnceLock::new(),
            name: Mutex::default(),
        }
    }

    pub fn size(&self) -> c_int {
        self.group.size()
    }

    /// Those whose ranks a message's source or destination counts.
    pub fn peers(&self) -> &Arc<Group> {
        self.remote.as_ref().unwrap_or(&self.group)
    }

    /// All processes: of an intercommunicator the local ones, and then the others.
    pub fn everybody(&self) -> Arc<Group> {
        match &self.remote {
            None => self.group.clone(),
            Some(remote) => Group::new([&self.group.members[..], &remote.members[..]].concat()),
        }
    }

    pub fn name(&self) -> String {
        let name = self.name.lock().expect("no panic under the lock").clone();
        if name.is_empty() {
            return "a communicator without a name".into();
        }
        name
    }

    /// What MPI_Comm_get_name says: empty until it is set.
    pub fn given_name(&self) -> String {
        self.name.lock().expect("no panic under the lock").clone()
    }

    pub fn set_name(&self, name: String) {
        *self.name.lock().expect("no panic under the lock") = name;
    }
}

/// A handle for a new communicator.
pub fn open(comm: Comm) -> MPI_Comm {
    COMMS.insert(Arc::new(comm))
}

/// Set the predefined ones, at MPI_Init.
pub fn start(world: Comm, alone: Comm) {
    world.set_name("MPI_COMM_WORLD".into());
    alone.set_name("MPI_COMM_SELF".into());
    *PREDEFINED.write().expect("no panic under the lock") =
        [Some(Arc::new(world)), Some(Arc::new(alone))];
}

/// MPI_COMM_WORLD is of other processes from now on.
pub fn renew(context: u64, group: Arc<Group>, rank: c_int) {
    let mut predefined = PREDEFINED.write().expect("no panic under the lock");
    let mut world = Comm::new(context, group, rank);
    if let Some(before) = &predefined[0] {
        world.errhandler = before.errhandler.copy();
    }
    world.set_name("MPI_COMM_WORLD".into());
    predefined[0] = Some(Arc::new(world));
}

/// Give the predefined ones back, at MPI_Finalize.
pub fn finish() {
    *PREDEFINED.write().expect("no panic under the lock") = [None, None];
}

/// The communicator of a handle; the error names what is wrong with it.
pub fn get(handle: MPI_Comm) -> Answer<Arc<Comm>> {
    let found = match handle {
        MPI_COMM_WORLD | MPI_COMM_SELF => {
            let place = (handle - MPI_COMM_WORLD) as usize;
            PREDEFINED.read().expect("no panic under the lock")[place].clone()
        }
        _ => COMMS.get(handle),
    };
    found.ok_or_else(|| wrong(handle))
}

/// The same where the function takes intracommunicators only.
pub fn intra(handle: MPI_Comm) -> Answer<Arc<Comm>> {
    let comm = get(handle)?;
    if comm.remote.is_none() {
        return Ok(comm);
    }
    let text = format!(
        "{} is an intercommunicator, which this function does not take; MPI_Intercomm_merge makes \
         one group of both",
        comm.name()
    );
    Err(fail(MPI_ERR_COMM, text))
}

#[cold]
fn wrong(handle: MPI_Comm) -> crate::errors::Failure {
    if [MPI_COMM_WORLD, MPI_COMM_SELF].contains(&handle) {
        let text = "MPI_COMM_WORLD and MPI_COMM_SELF are there between MPI_Init and MPI_Finalize; \
                    sessions make communicators with MPI_Comm_create_from_group";
        return fail(MPI_ERR_COMM, text);
    }
    let text = if handle == MPI_COMM_NULL {
        "argument comm is MPI_COMM_NULL; this process is perhaps no member: MPI_Comm_split with \
         MPI_UNDEFINED, or MPI_Comm_create with a group that lacks it, gives that"
            .into()
    } else {
        format!("argument comm ({handle:#010x}) is no communicator, or one that was freed")
    };
    fail(MPI_ERR_COMM, text)
}

/// The one whose messages have this context (`engine::messages`).
pub fn of_messages(context: u64) -> Option<Arc<Comm>> {
    let mut predefined = PREDEFINED.read().expect("no panic under the lock").clone().into_iter();
    let is_it = |comm: &Arc<Comm>| engine::messages(comm.context) == context;
    predefined.by_ref().flatten().find(is_it).or_else(|| COMMS.all().into_iter().find(is_it))
}

/// Number the collective calls of all communicators anew, the same way at all processes that are told
/// the same word: a cell was stopped, or has failed, and some were further than others. So it is with
/// communicators that are made later. False where the word is no larger than the last one: nothing
/// changes then.
pub fn number_anew(word: u64) -> bool {
    if ANEW.fetch_max(word, Relaxed) >= word {
        return false;
    }
    let predefined = PREDEFINED.read().expect("no panic under the lock").clone();
    for comm in predefined.iter().flatten().chain(&COMMS.all()) {
        comm.collectives.store(first_number(), Relaxed);
        comm.begun.store(first_number(), Relaxed);
    }
    true
}

/// Take the handle out of use. Who still holds the communicator (a pending operation) keeps it.
pub fn release(handle: MPI_Comm) -> Answer<Arc<Comm>> {
    if [MPI_COMM_WORLD, MPI_COMM_SELF].contains(&handle) {
        let text = "MPI_COMM_WORLD and MPI_COMM_SELF cannot be freed; MPI_Finalize ends them";
        return Err(fail(MPI_ERR_COMM, text));
    }
    COMMS.release(handle).ok_or_else(|| wrong(handle))
}
