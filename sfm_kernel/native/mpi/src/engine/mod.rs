//! What moves messages: sends and receives under way, and the progress of all of them.
//!
//! Every message is an envelope of the core: context, source and tag are the communicator's numbers,
//! the note says what kind of message it is and who sent it. Small ones carry their bytes; of large
//! ones only an offer goes (offers.rs). A receive is posted in the core, so that what comes goes from
//! the ring into the user's memory. Nothing here has a thread of its own: whoever is in a call of
//! MPI moves everything on (`advance`), and sleeps when there is nothing to do (`wait`).
//!
//! ```text
//! path        how messages go to it
//! peer        one other process: the way to it, and the sends that wait for room there
//! peers       all of them
//! operation   what both halves of a message have: an end, and how it ended
//! sending, receiving
//! control     what the two libraries say to each other: received, offer accepted ...
//! cancelling  taking a send back
//! limits      sizes at which messages go another way
//! offers      large messages, copied from memory to memory by both sides
//! told        what observers are told of calls that wait
//! wait        advancing, waiting, and finding out that somebody has died
//! what        which collective call a message is of
//! ```

mod cancelling;
mod control;
mod early;
pub mod limits;
mod offers;
mod operation;
mod path;
mod peer;
mod peers;
mod receiving;
mod sending;
pub mod told;
mod wait;
mod what;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sfm_native::core::Core;
use sfm_native::packet::LIBRARY;

pub use control::{Kind, Note};
pub use offers::{copy, Proof};
pub use operation::Outcome;
pub use receiving::{found, probed, Receiving, Wanted};
pub use sending::{Mode, Sending, To};
pub use wait::{text_of_loss, About, From};
pub use what::What;

use crate::collective::schedule::Schedule;
use crate::home::Home;
use crate::process;
use control::Todo;
use offers::Pouring;
use peers::Peers;

pub struct Engine {
    pub core: Arc<Core>,
    pub endpoint: Box<dyn Home>,
    /// The number of this process (`process`).
    pub rank: usize,
    peers: Peers,
    /// Sends that are in a peer's queue, in all.
    queued: AtomicUsize,
    /// What came in, and is answered outside of the core's lock.
    todo: Mutex<Vec<Todo>>,
    has_todo: AtomicBool,
    /// Sends that end when the peer says so, by number.
    answered: Mutex<Numbered<Arc<Sending>>>,
    /// Large messages that come in pieces, by number.
    poured: Mutex<Numbered<Pouring>>,
    /// Collective calls that others have left.
    left: Mutex<Vec<early::Left>>,
    has_left: AtomicBool,
    /// Non-blocking collectives that are under way.
    pub schedules: Mutex<Vec<Arc<Schedule>>>,
    pub running: AtomicUsize,
}

struct Numbered<T> {
    last: u32,
    all: HashMap<u32, T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered { last: 0, all: HashMap::new() }
    }
}

impl<T> Numbered<T> {
    fn next(&mut self) -> u32 {
        loop {
            self.last = self.last % (control::NUMBERS - 1) + 1; // never 0
            if !self.all.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(std::ptr::null_mut());

/// This process's engine, from MPI_Init or the first session on.
#[inline]
pub fn engine() -> &'static Engine {
    let engine = ENGINE.load(Ordering::Acquire);
    assert!(!engine.is_null(), "MPI was not initialized");
    // SAFETY: set by `start`, and never freed.
    unsafe { &*engine }
}

/// The engine, if MPI was initialized.
pub fn running() -> Option<&'static Engine> {
    // SAFETY: as in `engine`.
    unsafe { ENGINE.load(Ordering::Acquire).as_ref() }
}

/// The process has joined: messages can go from now on.
pub fn start(endpoint: Box<dyn Home>) -> &'static Engine {
    let (core, own) = (endpoint.core().clone(), process::own());
    let engine = Engine {
        rank: own.number() as usize,
        peers: Peers::new(own.first_number(), own.size),
        core,
        endpoint,
        queued: AtomicUsize::new(0),
        todo: Mutex::default(),
        has_todo: AtomicBool::new(false),
        answered: Mutex::default(),
        poured: Mutex::default(),
        left: Mutex::default(),
        has_left: AtomicBool::new(false),
        schedules: Mutex::default(),
        running: AtomicUsize::new(0),
    };
    let engine = Box::leak(Box::new(engine));
    ENGINE.store(engine, Ordering::Release);
    engine.core.post_for_all(CONTROL, Arc::new(control::Answers));
    offers::let_peers_read();
    engine
}

impl Engine {
    /// How many processes are in MPI_COMM_WORLD.
    pub fn size(&self) -> usize {
        process::own().size
    }
}

/// Between two libraries, beside all communicators: what is in the core's numbers an answer, on the
/// library's account.
const CONTROL: u64 = MARK | 7;
/// Told from the contexts of Python's libraries.
const MARK: u64 = 0x4d00;

/// The context of a communicator's messages, those that the program sends.
pub fn messages(context: u64) -> u64 {
    spread(context) | MARK | 1
}

/// The context of a communicator's messages, from that or from that of its partitioned ones; None
/// for another context.
pub fn messages_beside(context: u64) -> Option<u64> {
    match context & 0xffff ^ MARK {
        1 => Some(context),
        2 => Some(context ^ (1 << 63 | 3)),
        _ => None,
    }
}

/// The context of its partitioned messages, in which their senders say how they cut them.
pub fn partitioned(context: u64) -> u64 {
    (spread(context) ^ 1 << 63) | MARK | 2
}

/// The context of the parts of those.
pub fn parts(context: u64) -> u64 {
    (spread(context) ^ 1 << 63) | MARK | 3
}

/// The context of its collectives, which take no room of the program's messages. The uppermost bit
/// tells observers that no receive of the program's gets them.
pub fn collectives(context: u64) -> u64 {
    (spread(context) ^ 1 << 63) | MARK | LIBRARY | 1
}

/// Observers tell contexts by the upper bits (`trace::mark`), so that the lowest of the 48 of a
/// context's number go there.
fn spread(context: u64) -> u64 {
    let number = context + 1;
    number << 48 | (number >> 16) << 16
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
