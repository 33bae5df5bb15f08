//! The engine that moves messages: sends and receives in progress, and the progress of all of them.
//!
//! Every message has an envelope of the core: context, source and tag are the communicator's
//! numbers; the note gives the kind of message and its sender. Small messages carry their bytes;
//! for a large one only an offer is sent (offers.rs). Receives are posted in the core, so that data
//! goes from the ring directly into the user's memory. The engine has no thread of its own: any
//! thread that is in an MPI call makes progress for all (`advance`), and sleeps when there is
//! nothing to do (`wait`). While none is, the endpoint's network thread sends what a full ring has
//! held back.
//!
//! ```text
//! path        the route of messages to a peer
//! peer        one other process, and its path
//! queue       the messages that wait for room
//! peers       all of them
//! origin      the line in which another process has sent a message
//! operation   the common half of sends and receives: an end, with an outcome
//! sending, receiving
//! control     control messages between two libraries: received, offer accepted ...
//! cancelling  cancelling a send
//! early       collective calls that a process has left early
//! limits      the sizes at which messages change their protocol
//! offers      large messages, whose bytes their receivers fetch
//! together    those that both sides copy
//! streaming   their bytes that come through the ring
//! landing     the memory into which their bytes come
//! report      the description of a waiting call for observers
//! wait        progress, waiting, and the detection of dead processes
//! stepwise    operations of several steps, such as non-blocking collectives
//! sockets     waiting for a socket
//! collective  the collective call that a message belongs to
//! ```

mod cancelling;
mod collective;
mod control;
mod early;
mod landing;
pub mod limits;
mod offers;
mod operation;
pub mod origin;
mod path;
mod peer;
mod peers;
mod queue;
mod receiving;
pub mod report;
mod sending;
mod sockets;
mod stepwise;
mod streaming;
#[cfg(test)]
mod tests;
mod together;
mod wait;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sfm_native::core::Core;
use sfm_native::packet::LIBRARY;
use sfm_native::sync::lock;

pub use collective::{mark, site_of, Alike, Collective};
pub use control::{MessageKind, Note, Upper};
pub use offers::{copy, Proof};
pub use operation::Outcome;
pub use receiving::{found, probed, Pattern, Receiving, Taken};
pub use sending::{Mode, Sending, To};
pub use sockets::wait_for_socket;
pub use stepwise::Stepwise;
pub use wait::{text_of_loss, About, From};

use crate::membership::Membership;
use crate::process;
use control::Todo;
use peers::Peers;
use streaming::Streaming;
use together::Unfinished;

pub struct Engine {
    pub core: Arc<Core>,
    pub endpoint: Box<dyn Membership>,
    /// The number of this process (`process`).
    pub rank: usize,
    peers: Peers,
    upper: Upper,
    /// What waits for other processes: sends in the queues of all peers, and `unfinished`.
    held_back: AtomicUsize,
    /// Whether the network thread tries to send them.
    is_sent_later: AtomicBool,
    /// Work that arrived messages cause, done outside the core's lock.
    todo: Mutex<VecDeque<Todo>>,
    has_todo: AtomicBool,
    /// Large messages that are partly copied.
    unfinished: Mutex<Unfinished>,
    /// Sends that end with the peer's answer, by number.
    answered: Mutex<Numbered<Arc<Sending>>>,
    /// Large messages that arrive in fragments, by number.
    streamed: Mutex<Numbered<Streaming>>,
    /// Collective calls that other processes have left.
    left_calls: Mutex<Vec<early::LeftCall>>,
    has_left_calls: AtomicBool,
    /// Operations of several steps in progress, and their number.
    stepwise: Mutex<Vec<Arc<dyn Stepwise>>>,
    pub running: AtomicUsize,
    /// Threads that sleep, or are about to, until an operation of theirs has ended.
    resting: AtomicUsize,
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

/// This process's engine, which exists from MPI_Init or the first session on.
#[inline]
pub fn engine() -> &'static Engine {
    let engine = ENGINE.load(Ordering::Acquire);
    assert!(!engine.is_null(), "MPI was not initialized");
    // SAFETY: it is not null, and what `start` has stored is never freed.
    unsafe { &*engine }
}

/// The engine, if MPI was initialized.
pub fn running() -> Option<&'static Engine> {
    // SAFETY: it is null, or what `start` has stored, which is never freed.
    unsafe { ENGINE.load(Ordering::Acquire).as_ref() }
}

/// The number of the program's current call, for the operations that it begins.
pub fn site() -> u32 {
    engine().endpoint.surroundings().site()
}

/// Whether the program is in Python: then it makes its calls by mpi4py's methods.
pub fn is_python() -> bool {
    running().is_some_and(|engine| !engine.endpoint.surroundings().has_addresses())
}

/// Start the engine. The process has joined its world: from now on it can send messages.
pub fn start(endpoint: Box<dyn Membership>, upper: Upper) -> &'static Engine {
    let this = process::this();
    let peers = Peers::new(this.first_number(), this.size);
    let engine = Engine::new(endpoint, this.number() as usize, peers, upper);
    let engine = Box::into_raw(Box::new(engine));
    ENGINE.store(engine, Ordering::Release);
    let engine = self::engine();
    engine.core.set_library(engine);
    engine.core.post_for_all(CONTROL, Arc::new(control::Answers));
    offers::let_peers_read();
    engine
}

impl Engine {
    fn new(endpoint: Box<dyn Membership>, rank: usize, peers: Peers, upper: Upper) -> Engine {
        Engine {
            rank,
            peers,
            upper,
            core: endpoint.core().clone(),
            endpoint,
            held_back: AtomicUsize::new(0),
            is_sent_later: AtomicBool::new(false),
            todo: Mutex::default(),
            has_todo: AtomicBool::new(false),
            unfinished: Mutex::default(),
            answered: Mutex::default(),
            streamed: Mutex::default(),
            left_calls: Mutex::default(),
            has_left_calls: AtomicBool::new(false),
            stepwise: Mutex::default(),
            running: AtomicUsize::new(0),
            resting: AtomicUsize::new(0),
        }
    }

    /// The number of processes in MPI_COMM_WORLD.
    pub fn size(&self) -> usize {
        process::this().size
    }
}

/// The context of control messages between two libraries, apart from all communicators. In the
/// core's numbers it is an answer, on the library's account.
const CONTROL: u64 = MARK | 7;
/// Distinguishes these contexts from those of Python's libraries.
const MARK: u64 = 0x4d00;

/// The context of the program's messages on a communicator.
pub fn messages(context: u64) -> u64 {
    spread(context) | MARK | 1
}

/// The context of the program's messages on a communicator, from that context or from that of its
/// partitioned messages; None for any other context.
pub fn messages_beside(context: u64) -> Option<u64> {
    match context & 0xffff ^ MARK {
        1 => Some(context),
        2 => Some(context ^ (1 << 63 | 3)),
        _ => None,
    }
}

/// The context of a communicator's partitioned messages, in which senders announce their
/// partitions.
pub fn partitioned(context: u64) -> u64 {
    (spread(context) ^ 1 << 63) | MARK | 2
}

/// The context of the partitions' data.
pub fn partitions(context: u64) -> u64 {
    (spread(context) ^ 1 << 63) | MARK | 3
}

/// The context of a communicator's collectives, which do not count against the limit of the
/// program's messages. The uppermost bit tells observers that no receive of the program takes them.
pub fn collectives(context: u64) -> u64 {
    (spread(context) ^ 1 << 63) | MARK | LIBRARY | 1
}

/// The context of a communicator's messages, from that of its collectives.
pub fn messages_of_collectives(context: u64) -> u64 {
    (context ^ 1 << 63) & !LIBRARY
}

/// Observers distinguish contexts by the upper bits (`trace::mark`), so the lowest 16 of the 48
/// bits of a context's number go there.
fn spread(context: u64) -> u64 {
    let number = context + 1;
    number << 48 | (number >> 16) << 16
}
