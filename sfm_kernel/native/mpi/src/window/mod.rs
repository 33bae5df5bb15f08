//! Windows: memory of each process of a group that the others reach by themselves.
//!
//! Where a window's memory is ours to choose (MPI_Win_allocate), it lies in one file of shared memory
//! that all map: an operation is then a copy by its origin, and the target does nothing. Memory that
//! is the target's own (MPI_Win_create) is reached through the kernel, where that lets one process
//! read and write another's; where not, by messages that a thread of the target's serves. Whatever
//! the way, locks lie in shared memory, and operations that combine elements take turns there.
//!
//! ```text
//! epoch      what may be called when: a machine without communication
//! lock       a lock in shared memory: for one, or for many
//! control    the file: locks of each process, and memory
//! making     agreeing on a window, and what each process's part is
//! way        how the memory of a target is reached
//! target     the arguments that say where an operation goes
//! operation  put, get, accumulate, compare and swap
//! combining  what accumulating does to elements
//! waiting    taking locks, ending operations, and all that waits
//! served     operations as messages, and the thread that serves them
//! attached, hints
//! ```

pub mod attached;
pub mod combining;
pub mod control;
pub mod epoch;
pub mod hints;
pub mod lock;
pub mod making;
pub mod operation;
pub mod served;
pub mod target;
pub mod waiting;
pub mod way;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::attributes::Attributes;
use crate::comm::Comm;
use crate::engine::Receiving;
use crate::errhandlers::Attached as Handler;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::info::Info;
use crate::left;
use crate::table::Table;

use attached::Attached;
use control::Control;
use epoch::Epochs;
use hints::Hints;
use way::Way;

pub struct Window {
    /// Of its processes, for nothing but this window.
    pub comm: Comm,
    pub members: Vec<Member>,
    pub own: Own,
    pub control: Control,
    /// Some processes reach the memory of others by messages only.
    is_served: bool,
    /// By rank.
    ways: Vec<Way>,
    /// Memory that the library had to get for this process, since there was none to share.
    _memory: Option<Memory>,
    attached: Mutex<Attached>,
    epochs: Mutex<Epochs>,
    /// The ends of what those do to whom the window is posted.
    completed: Mutex<Vec<Arc<Receiving>>>,
    pub outgoing: served::Outgoing,
    pub errhandler: Handler,
    pub attributes: Attributes,
    hints: Mutex<Hints>,
    name: Mutex<String>,
    /// How many windows this process had made before.
    number: usize,
}

/// One process's part, as all know it.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub size: usize,
    pub disp_unit: MPI_Aint,
    /// Where the memory begins in that process.
    pub base: usize,
}

/// This process's part, as its attributes show it: their values are the addresses of these.
pub struct Own {
    pub base: usize,
    pub size: MPI_Aint,
    pub disp_unit: c_int,
    pub flavor: c_int,
    pub model: c_int,
}

/// Memory of our own.
pub struct Memory(*mut c_void);

// SAFETY: an address that is freed once.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: from `posix_memalign`.
        unsafe { libc::free(self.0) };
    }
}

static WINDOWS: Table<Window> = Table::new(0xa000_0000);
static MADE: AtomicUsize = AtomicUsize::new(0);
/// Those that may be open.
static OPEN: Mutex<Vec<Weak<Window>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Window {
    pub fn rank(&self) -> usize {
        self.comm.rank as usize
    }

    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The process that has this rank.
    pub fn process(&self, rank: usize) -> usize {
        self.comm.group.members[rank] as usize
    }

    /// What messages name it by.
    pub fn id(&self) -> i64 {
        self.comm.context as i64
    }

    pub fn is_dynamic(&self) -> bool {
        self.own.flavor == MPI_WIN_FLAVOR_DYNAMIC
    }

    /// What the program calls it: empty until it is set.
    pub fn name(&self) -> String {
        lock(&self.name).clone()
    }

    pub fn set_name(&self, name: String) {
        *lock(&self.name) = name;
    }

    /// For people.
    pub fn told(&self) -> String {
        match self.name() {
            name if name.is_empty() => format!("window {}", self.number),
            name => name,
        }
    }

    pub fn epochs(&self) -> MutexGuard<'_, Epochs> {
        lock(&self.epochs)
    }

    pub fn way(&self, rank: usize) -> Way {
        self.ways[rank]
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

/// A handle for a new window.
pub fn open(window: Arc<Window>) -> MPI_Win {
    let mut all = lock(&OPEN);
    all.retain(|one| one.strong_count() > 0);
    all.push(Arc::downgrade(&window));
    WINDOWS.insert(window)
}

/// By how much the first process of a window is ahead of the others: to write its first values takes
/// less, also where the kernel lets those run first whom it has woken.
const HEAD_START: Duration = Duration::from_micros(200);

/// Known by its handle, it may be reached: let all know that of each other, where messages go. The
/// first process goes on first: programs often let it write to its memory then, and forget the
/// barrier that others need before they reach for it.
pub fn start(window: &Arc<Window>) -> Answer {
    if window.is_served {
        making::start(window)?;
    }
    if window.rank() > 0 {
        std::thread::sleep(HEAD_START);
    }
    Ok(())
}

pub fn get(handle: MPI_Win) -> Answer<Arc<Window>> {
    WINDOWS.get(handle).ok_or_else(|| {
        let text = match handle {
            MPI_WIN_NULL => "argument win is MPI_WIN_NULL".into(),
            _ => format!("argument win ({handle:#010x}) is no window, or one that was freed"),
        };
        fail(MPI_ERR_WIN, text)
    })
}

/// Take the handle out of use.
pub fn release(handle: MPI_Win) {
    WINDOWS.release(handle);
}

/// Those that were not freed.
fn all_open() -> Vec<Arc<Window>> {
    lock(&OPEN).iter().filter_map(Weak::upgrade).collect()
}

/// The one that messages name so.
fn of_id(id: i64) -> Option<Arc<Window>> {
    all_open().into_iter().find(|window| window.id() == id)
}

/// At the end of MPI: tell of epochs that were not ended, and serve nobody any more.
pub fn finish() {
    for window in all_open() {
        let epochs = window.epochs();
        if let Some(open) = epochs.open() {
            left::tell_epoch(&window.told(), &open, epochs.begun());
        }
    }
    served::service::stop(None);
}

/// The number of the next one.
fn next() -> usize {
    MADE.fetch_add(1, Relaxed)
}
