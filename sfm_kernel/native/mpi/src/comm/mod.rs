//! Communicators as data: their members, and the state attached to them. functions/communicators.rs
//! makes them, which takes communication.

pub mod history;
pub mod meetings;
pub mod shown;
pub mod sites;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use sfm_native::sync::lock;

use crate::attributes::Attributes;
use crate::buffer::Buffer;
use crate::engine::{self, report};
use crate::errhandlers::Attached;
use crate::errors::{fail, Answer};
use crate::group::Group;
use crate::handles::*;
use crate::info::{Hints, Known};
use crate::latest::{self, Changes, Latest, Used};

use crate::table::Table;
use crate::topology::Topology;

use history::History;
use meetings::Meetings;
use sites::Sites;

/// The program's assertions, which the standard defines. None of them has an effect.
pub const HINTS: &Known = &[
    ("mpi_assert_no_any_tag", "false"),
    ("mpi_assert_no_any_source", "false"),
    ("mpi_assert_exact_length", "false"),
    ("mpi_assert_allow_overtaking", "false"),
    ("mpi_assert_strict_persistent_collective_ordering", "false"),
];

pub struct Comm {
    /// The context in every message of this communicator, so that no other communicator receives
    /// it.
    pub context: u64,
    /// The processes that `rank` counts: the local group of an intercommunicator.
    pub group: Arc<Group>,
    /// This process's rank in `group`.
    pub rank: c_int,
    /// The remote group of an intercommunicator, whose ranks its messages name.
    pub remote: Option<Arc<Group>>,
    pub topology: Option<Topology>,
    pub errhandler: Attached,
    pub attributes: Attributes,
    pub hints: Mutex<Hints>,
    pub buffer: Buffer,
    /// The session that it derives from, or MPI_SESSION_NULL.
    pub session: MPI_Session,
    /// The numbers of the next blocking and the next non-blocking collective.
    pub collectives: AtomicU32,
    pub begun: AtomicU32,
    /// The latest of them.
    pub history: History,
    /// The communicator that it was made of, by its context number.
    pub parent: Option<u64>,
    /// The call that has made it (`unfinished`).
    pub maker: u32,
    /// True if mpi4py has made it for its own messages: those of reductions of objects.
    pub is_internal: bool,
    /// The combining tree of its processes, if they share memory.
    pub meetings: Meetings,
    /// The sites of its processes, if there are several; set by the first collective.
    pub sites: OnceLock<Option<Arc<Sites>>>,
    name: Mutex<String>,
}

/// The context number, known to every process, for messages between processes that have no
/// communicator yet; lower ones belong to MPI_COMM_WORLD and MPI_COMM_SELF.
pub const FIRST: u64 = 2;

static COMMS: Table<Comm> = Table::new(0x8400_0000);
/// MPI_COMM_WORLD and MPI_COMM_SELF.
static PREDEFINED: RwLock<[Option<Arc<Comm>>; 2]> = RwLock::new([None, None]);

/// Of the handles of communicators.
static CHANGES: Changes = Changes::new();

thread_local! {
    static LATEST: Latest<Comm> = const { Latest::new() };
}

/// See `renumber_collectives`.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// Grows whenever collective calls are renumbered.
pub fn epoch() -> u64 {
    EPOCH.load(Relaxed)
}

/// The first number of collective calls after the last stop.
pub fn first_number() -> u32 {
    number_after(epoch())
}

/// Any of the 2^29 numbers of a collective. The messages of a call that was stopped match a later
/// one only if their number is among the few that are used until the next stop.
fn number_after(epoch: u64) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    (epoch.wrapping_mul(ODD) >> 35) as u32
}

impl Comm {
    /// A communicator without topology, attributes and name, and with MPI_ERRORS_ARE_FATAL.
    pub fn new(context: u64, group: Arc<Group>, rank: c_int) -> Comm {
        Comm {
            context,
            group,
            rank,
            remote: None,
            topology: None,
            errhandler: Attached::new(),
            attributes: Attributes::default(),
            hints: Mutex::new(Hints::new(HINTS)),
            buffer: Buffer::default(),
            session: MPI_SESSION_NULL,
            collectives: AtomicU32::new(first_number()),
            begun: AtomicU32::new(first_number()),
            history: History::default(),
            parent: None,
            maker: engine::site(),
            is_internal: false,
            meetings: Meetings::default(),
            sites: OnceLock::new(),
            name: Mutex::default(),
        }
    }

    /// The intercommunicator of this communicator's group with a remote group.
    pub fn with_remote(self, remote: Arc<Group>) -> Comm {
        Comm { remote: Some(remote), ..self }
    }

    pub fn size(&self) -> c_int {
        self.group.size()
    }

    /// The group whose ranks are the sources or destinations of messages.
    pub fn peers(&self) -> &Arc<Group> {
        self.remote.as_ref().unwrap_or(&self.group)
    }

    /// All processes: the local group, then the remote group of an intercommunicator.
    pub fn everybody(&self) -> Cow<'_, Arc<Group>> {
        match &self.remote {
            None => Cow::Borrowed(&self.group),
            Some(remote) => {
                Cow::Owned(Group::new([&self.group.members[..], &remote.members[..]].concat()))
            }
        }
    }

    /// The two groups of an intercommunicator, in the same order at all processes.
    fn groups(&self) -> [&Group; 2] {
        let mut groups: [&Group; 2] = [&self.group, self.peers()];
        groups.sort_by_key(|group| group.members.first().copied());
        groups
    }

    /// A number that all processes have for a root, a rank among `everybody`: the groups of an
    /// intercommunicator do not give the same.
    pub fn root_for_all(&self, root: usize) -> usize {
        if self.remote.is_none() {
            return root;
        }
        let process = self.everybody().members[root];
        let ranks = self.groups().map(|group| group.rank_of(process));
        ranks
            .iter()
            .enumerate()
            .find_map(|(nth, rank)| Some(2 * (*rank)? as usize + nth))
            .unwrap_or(0)
    }

    /// The root with that number as a process of an intercommunicator gives it.
    pub fn root_given(&self, root: usize, process: usize) -> String {
        let group = self.groups()[root % 2];
        match group.rank_of(process as c_int) {
            None => (root / 2).to_string(),
            Some(rank) if rank as usize == root / 2 => "MPI_ROOT".into(),
            Some(_) => "MPI_PROC_NULL".into(),
        }
    }

    /// The communicator that it was made of, if it is still there.
    pub fn made_of(&self) -> Option<Arc<Comm>> {
        of_messages(engine::messages(self.parent?))
    }

    /// The communicator that mpi4py has made of this one for reductions of objects.
    pub fn of_objects(&self) -> Option<Arc<Comm>> {
        let is_it = |comm: &Arc<Comm>| comm.is_internal && comm.parent == Some(self.context);
        COMMS.all().into_iter().find(is_it)
    }

    /// The name that MPI_Comm_get_name returns: empty before it is set.
    pub fn given_name(&self) -> String {
        lock(&self.name).clone()
    }

    pub fn set_name(&self, name: String) {
        *lock(&self.name) = name;
    }
}

/// The contexts of all communicators that were internal: mpi4py frees them before MPI_Finalize.
static INTERNAL: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// True if messages of this context are mpi4py's own.
pub fn are_internal(context: u64) -> bool {
    lock(&INTERNAL).iter().any(|internal| engine::messages(*internal) == context)
}

/// The handle of a new communicator.
pub fn open(comm: Comm) -> MPI_Comm {
    let is_internal = report::is_made_by_mpi4py();
    if is_internal {
        lock(&INTERNAL).push(comm.context);
    }
    COMMS.insert(Arc::new(Comm { is_internal, ..comm }))
}

/// Set the predefined communicators, in MPI_Init.
pub fn start(world: Comm, alone: Comm) {
    world.set_name("MPI_COMM_WORLD".into());
    alone.set_name("MPI_COMM_SELF".into());
    *PREDEFINED.write().expect("no panic under the lock") =
        [Some(Arc::new(world)), Some(Arc::new(alone))];
    latest::note_change(&LATEST, &CHANGES);
}

/// Replace MPI_COMM_WORLD by one of other processes.
pub fn renew(context: u64, group: Arc<Group>, rank: c_int) {
    let mut predefined = PREDEFINED.write().expect("no panic under the lock");
    let mut world = Comm::new(context, group, rank);
    if let Some(before) = &predefined[0] {
        world.errhandler = before.errhandler.copy();
    }
    world.set_name("MPI_COMM_WORLD".into());
    predefined[0] = Some(Arc::new(world));
    drop(predefined);
    latest::note_change(&LATEST, &CHANGES);
}

/// Remove the predefined communicators, in MPI_Finalize.
pub fn finish() {
    *PREDEFINED.write().expect("no panic under the lock") = [None, None];
    latest::note_change(&LATEST, &CHANGES);
}

/// The communicator of a handle; the error says what is wrong with the handle.
#[inline]
pub fn get(handle: MPI_Comm) -> Answer<Used<Comm>> {
    latest::get(&LATEST, handle, &CHANGES, || find(handle)).ok_or_else(|| wrong(handle))
}

fn find(handle: MPI_Comm) -> Option<Arc<Comm>> {
    match handle {
        MPI_COMM_WORLD | MPI_COMM_SELF => {
            let index = (handle - MPI_COMM_WORLD) as usize;
            PREDEFINED.read().expect("no panic under the lock")[index].clone()
        }
        _ => COMMS.get(handle),
    }
}

/// The same for functions that take intracommunicators only.
pub fn intra(handle: MPI_Comm) -> Answer<Used<Comm>> {
    let comm = get(handle)?;
    if comm.remote.is_none() {
        return Ok(comm);
    }
    let text = format!(
        "{} is an intercommunicator, which this function does not accept; MPI_Intercomm_merge \
        merges its two groups",
        comm.name()
    );
    Err(fail(MPI_ERR_COMM, text))
}

#[cold]
fn wrong(handle: MPI_Comm) -> crate::errors::Failure {
    if [MPI_COMM_WORLD, MPI_COMM_SELF].contains(&handle) {
        let text = "MPI_COMM_WORLD and MPI_COMM_SELF exist between MPI_Init and MPI_Finalize; \
            sessions make communicators with MPI_Comm_create_from_group";
        return fail(MPI_ERR_COMM, text);
    }
    let text = if handle == MPI_COMM_NULL {
        "argument comm is MPI_COMM_NULL; perhaps this process is not a member: MPI_Comm_split \
        with MPI_UNDEFINED, or MPI_Comm_create with a group that lacks it, returns MPI_COMM_NULL"
            .into()
    } else {
        format!("argument comm ({handle:#010x}) is not a communicator, or was freed")
    };
    fail(MPI_ERR_COMM, text)
}

/// The communicator whose messages have this context (`engine::messages`).
pub fn of_messages(context: u64) -> Option<Arc<Comm>> {
    let mut predefined = PREDEFINED.read().expect("no panic under the lock").clone().into_iter();
    let is_it = |comm: &Arc<Comm>| engine::messages(comm.context) == context;
    predefined.by_ref().flatten().find(is_it).or_else(|| COMMS.all().into_iter().find(is_it))
}

/// All communicators.
pub fn all() -> Vec<Arc<Comm>> {
    let predefined = PREDEFINED.read().expect("no panic under the lock").clone();
    predefined.into_iter().flatten().chain(COMMS.all()).collect()
}

/// Renumber the collective calls of all communicators, now and in future, identically at all
/// processes that get the same `word`: a cell was stopped or has failed, and some processes were
/// further than others. False, and no change, unless the word is larger than the last one.
pub fn renumber_collectives(word: u64) -> bool {
    if EPOCH.fetch_max(word, Relaxed) >= word {
        return false;
    }
    for comm in all() {
        comm.collectives.store(first_number(), Relaxed);
        comm.begun.store(first_number(), Relaxed);
    }
    true
}

/// Free the handle. A pending operation that uses the communicator keeps it alive.
pub fn release(handle: MPI_Comm) -> Answer<Arc<Comm>> {
    if [MPI_COMM_WORLD, MPI_COMM_SELF].contains(&handle) {
        let text = "MPI_COMM_WORLD and MPI_COMM_SELF cannot be freed; MPI_Finalize ends them";
        return Err(fail(MPI_ERR_COMM, text));
    }
    let released = COMMS.release(handle).ok_or_else(|| wrong(handle));
    latest::note_change(&LATEST, &CHANGES);
    released
}

#[cfg(test)]
mod tests {
    use super::number_after;

    #[test]
    fn numbers_after_a_thousand_stops_lie_apart() {
        let a_day = 1_795_000_000_000_000_000_u64; // nanoseconds, as the notebook has them
        let mut numbers: Vec<_> =
            (0..1000).map(|n| number_after(a_day + n * 3_141_592_653)).collect();
        numbers.push(number_after(0)); // nothing was stopped yet
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[1] - pair[0] > 100));
        assert!(numbers.iter().all(|number| number >> 29 == 0));
    }
}
