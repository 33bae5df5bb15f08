//! Windows: memory of each process of a group that the others access directly.
//!
//! If this library allocates a window's memory (MPI_Win_allocate), it is in one file of shared
//! memory that all processes map: an operation is then a copy by its origin, and the target does
//! nothing. Memory that the target allocated (MPI_Win_create) is accessed through the kernel, if
//! the kernel lets one process read and write another's memory; otherwise by messages, which a
//! thread of the target serves. In all cases locks are in shared memory, and operations that
//! combine elements take turns there.
//!
//! ```text
//! epoch      the calls that are allowed now: a state machine without communication
//! lock       a lock in shared memory, exclusive or shared
//! control    the file: locks of each process, and memory
//! making     agreement on a window, and on each process's memory
//! route      how the memory of a target is reached
//! target     the arguments that determine the target memory of an operation
//! operation  put, get, accumulate, compare and swap
//! combining  the effect of accumulate operations on elements
//! waiting    taking locks, ending operations, and other waits
//! served     operations as messages, and the thread that serves them
//! attached
//! ```

pub mod attached;
pub mod combining;
pub mod control;
pub mod epoch;
mod guarded;
pub mod lock;
pub mod making;
pub mod operation;
pub mod route;
pub mod served;
pub mod target;
pub mod waiting;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use sfm_native::sync::lock;

use crate::attributes::Attributes;
use crate::comm::Comm;
use crate::engine::Receiving;
use crate::errhandlers::Attached as Handler;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::info::{Hints, Info, Known};
use crate::latest::{self, Changes, Latest, Used};
use crate::table::Table;
use crate::unfinished;

use attached::Attached;
use control::Control;
use route::Route;

/// The hints that the standard defines for windows.
pub const HINTS: &Known = &[
    ("no_locks", "false"),
    ("accumulate_ordering", "rar,raw,war,waw"),
    ("accumulate_ops", "same_op_no_op"),
    ("mpi_accumulate_granularity", "0"),
    ("alloc_shared_noncontig", "false"),
    ("same_size", "false"),
    ("same_disp_unit", "false"),
];

pub struct Window {
    /// A communicator of the window's processes, for this window only.
    pub comm: Comm,
    pub members: Vec<Member>,
    pub local: LocalMemory,
    pub control: Control,
    /// True if some processes reach the memory of others by messages only.
    is_served: bool,
    /// By rank.
    routes: Vec<Route>,
    /// Private memory of this process, allocated because there was too little shared memory.
    _memory: Option<Memory>,
    attached: Mutex<Attached>,
    pub epochs: guarded::Guarded,
    /// The receives of the MPI_Win_complete messages of the ranks to which the window is posted.
    completed: Mutex<Vec<Arc<Receiving>>>,
    pub outgoing: served::Outgoing,
    pub errhandler: Handler,
    pub attributes: Attributes,
    hints: Mutex<Hints>,
    name: Mutex<String>,
    /// The number of windows that this process had made before.
    number: usize,
}

/// One process's share of the window, known to all.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub size: usize,
    pub disp_unit: MPI_Aint,
    /// The address of the memory in that process.
    pub base: usize,
}

/// This process's share, as its attributes return it: their values are the addresses of these
/// fields.
pub struct LocalMemory {
    pub base: usize,
    pub size: MPI_Aint,
    pub disp_unit: c_int,
    pub flavor: c_int,
    pub model: c_int,
}

/// Memory that this library has allocated.
pub struct Memory(*mut c_void);

// SAFETY: it is an address, which only `drop` frees, whichever thread has it then.
unsafe impl Send for Memory {}
// SAFETY: a shared reference gives the address only.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the address is from `posix_memalign`, and nothing else frees it.
        unsafe { libc::free(self.0) };
    }
}

static WINDOWS: Table<Window> = Table::new(0xa000_0000);
/// Of the handles of windows.
static CHANGES: Changes = Changes::new();

thread_local! {
    static LATEST: Latest<Window> = const { Latest::new() };
}

static MADE: AtomicUsize = AtomicUsize::new(0);
/// The windows that may be open.
static OPEN: Mutex<Vec<Weak<Window>>> = Mutex::new(Vec::new());

impl Window {
    pub fn rank(&self) -> usize {
        self.comm.rank as usize
    }

    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The world rank of the process with this rank.
    pub fn process(&self, rank: usize) -> usize {
        self.comm.group.members[rank] as usize
    }

    /// The window's name in messages.
    pub fn id(&self) -> i64 {
        self.comm.context as i64
    }

    pub fn is_dynamic(&self) -> bool {
        self.local.flavor == MPI_WIN_FLAVOR_DYNAMIC
    }

    /// The name that the program set; empty before.
    pub fn name(&self) -> String {
        lock(&self.name).clone()
    }

    pub fn set_name(&self, name: String) {
        *lock(&self.name) = name;
    }

    /// For error texts and observers.
    pub fn label(&self) -> String {
        match self.name() {
            name if name.is_empty() => format!("window {}", self.number),
            name => name,
        }
    }

    pub fn epochs(&self) -> guarded::Guard<'_> {
        self.epochs.lock()
    }

    pub fn route(&self, rank: usize) -> Route {
        self.routes[rank]
    }

    pub fn attach(&self, base: usize, size: usize) -> Answer {
        lock(&self.attached).add(base, size)
    }

    pub fn detach(&self, base: usize) -> Answer {
        lock(&self.attached).remove(base)
    }

    pub fn hints(&self) -> Info {
        lock(&self.hints).info()
    }

    pub fn change_hints(&self, given: &Info) {
        lock(&self.hints).change(given);
    }

    pub fn has_no_locks(&self) -> bool {
        lock(&self.hints).is_set("no_locks")
    }
}

/// The handle of a new window.
pub fn open(window: Arc<Window>) -> MPI_Win {
    let mut all = lock(&OPEN);
    all.retain(|window| window.strong_count() > 0);
    all.push(Arc::downgrade(&window));
    WINDOWS.insert(window)
}

/// Start serving the window, once its handle exists, if some processes reach it by messages.
pub fn start(window: &Arc<Window>) -> Answer {
    match window.is_served {
        true => making::start(window),
        false => Ok(()),
    }
}

#[inline]
pub fn get(handle: MPI_Win) -> Answer<Used<Window>> {
    latest::get(&LATEST, handle, &CHANGES, || WINDOWS.get(handle)).ok_or_else(|| {
        let text = match handle {
            MPI_WIN_NULL => "argument win is MPI_WIN_NULL".into(),
            _ => format!("argument win ({handle:#010x}) is not a window, or was freed"),
        };
        fail(MPI_ERR_WIN, text)
    })
}

pub fn release(handle: MPI_Win) {
    WINDOWS.release(handle);
    latest::note_change(&LATEST, &CHANGES);
}

/// The windows that were not freed.
fn all_open() -> Vec<Arc<Window>> {
    lock(&OPEN).iter().filter_map(Weak::upgrade).collect()
}

/// The window with this name in messages.
fn of_id(id: i64) -> Option<Arc<Window>> {
    all_open().into_iter().find(|window| window.id() == id)
}

/// At the end of MPI: report epochs that were not ended, and stop serving.
pub fn finish() {
    for window in all_open() {
        let epochs = window.epochs();
        if let Some(open) = epochs.open() {
            unfinished::report_epoch(&window.label(), &open, epochs.begun());
        }
    }
    served::service::stop(None);
}

/// The number of the next window.
fn next() -> usize {
    MADE.fetch_add(1, Relaxed)
}
