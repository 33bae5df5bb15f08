//! The receiving half of an endpoint: inbounds bring packets in, the queue holds them, the bell
//! wakes sleepers. No Python here.
//!
//! Locks: `state` is the only one, held for memory moves and never while waiting or while Python
//! runs. A thread that holds Python's GIL may wait for it, so its holder never waits for the GIL.

mod arrivals;
mod driving;
mod info;
mod library;
mod network;
mod posted;
mod queues;
mod receiving;
mod send_credit;

pub use driving::Driver;
pub use library::Library;
pub use posted::{Payload, Receiver};
pub use queues::Queues;
pub use receiving::Found;
pub use send_credit::{may_send, SendCredit};

use std::collections::{HashMap, VecDeque};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use self::info::Info;
use self::posted::Posted;
use crate::event_fd::{drain, EventFd};
use crate::matching::Taken;
use crate::packet::{Body, Packet, ACCOUNTS};
use crate::ring::RingReader;
use crate::ring_file::RingFile;
use crate::segment::{Activity, Segment, Shared, SLOTS};
use crate::spin::Spin;
use crate::summary::RequestedTemplate;
use crate::sync::lock;

/// The sending half of a ring, as the network thread knows it.
pub trait Sender: Send + Sync {
    /// Called now and then, so that memory is freed that the receiver has left.
    fn tidy(&self);
}

enum Via {
    /// A ring in shared memory, and its sender's segment (for waking it).
    Ring { reader: RingReader<Arc<RingFile>>, sender: Option<Segment> },
    /// An endpoint in this process.
    Local(Arc<SendCredit>),
    /// A transport that calls `deliver` and fetches acknowledgements.
    Remote,
    /// The ring's sender has been replaced, or its bytes made no sense.
    Closed,
}

struct Inbound {
    uid: u128,
    via: Via,
    /// Messages that have ever come in.
    arrived: u64,
    /// By account, the cost of all messages that were received.
    taken: [u64; ACCOUNTS],
    acknowledged: [u64; ACCOUNTS],
    due: bool,
    /// The sender waits for the acknowledgement of the next message that is received.
    asked: bool,
}

#[derive(Default)]
struct InboxState {
    queue: Queues,
    posted: Posted,
    inbounds: Vec<Inbound>,
    /// The inbound of the ring that each slot announced; NO_INBOUND if there is none.
    by_slot: Vec<u32>,
    by_uid: HashMap<u128, u32>,
    /// Arrived while callbacks are registered, and not yet shown to them.
    undecided: VecDeque<Taken>,
    /// Messages that were ever put there.
    undecided_total: u64,
    /// Messages that the network thread is showing to callbacks right now.
    deciding: usize,
    /// Messages of `undecided_total` that need no callback any more: it has returned, or there is
    /// none for them.
    handled: u64,
    troubles: Vec<Trouble>,
    /// Slots whose ring could not be opened yet.
    unopened: Vec<usize>,
    due: Vec<u32>,
    /// Inbounds whose sender may be waiting for what was just read or received.
    to_wake: Vec<u32>,
    /// When `adopt_in_time` ran last (nanoseconds of the coarse clock).
    adopted: u64,
}

const NO_INBOUND: u32 = u32::MAX;

/// A sender's trouble.
pub enum Trouble {
    /// Its bytes made no sense.
    Damaged(String),
    /// This process lacks the resources to open its ring. It is tried again.
    Unopened(std::io::Error),
}

/// The memory of the shared part: a segment, or the heap for an endpoint without one.
enum SharedMemory {
    Segment(Segment),
    Heap(Box<Shared>),
}

pub struct Core {
    home: SharedMemory,
    folder: Option<PathBuf>,
    state: Mutex<InboxState>,
    info: Info,
    /// Changes whenever a receive that found nothing might find something now.
    version: AtomicU64,
    /// Messages that were ever put back: cursors of waiting receives then start over.
    rewinds: AtomicU64,
    /// Processes of other machines that have ended, as far as this endpoint was told.
    losses: AtomicU64,
    closed: AtomicBool,
    /// `InboxState::troubles` is not empty.
    troubled: AtomicBool,
    spin: Spin,
    driver: OnceLock<Weak<dyn Driver>>,
    library: OnceLock<&'static dyn Library>,
    /// Whether the last arrival came through the driver: the next one probably does, too.
    remote: AtomicBool,
    event: EventFd,
    lock_fd: AtomicI32,
    /// The rings to other processes.
    senders: Mutex<Vec<Weak<dyn Sender>>>,
    /// Processes that have ever sent something here.
    senders_total: AtomicU64,
    /// The template of the receive that is blocked now, for observers. Locked last, and briefly.
    requested: Mutex<Option<RequestedTemplate>>,
}

impl Core {
    /// `folder` holds the world's segments and rings; needed with a segment only.
    pub fn new(segment: Option<Segment>, folder: Option<PathBuf>) -> std::io::Result<Core> {
        let lock_fd = segment.as_ref().and_then(Segment::lock_fd).unwrap_or(-1);
        let home = match segment {
            Some(segment) => SharedMemory::Segment(segment),
            // SAFETY: Shared is made of atomics, for which zero is a valid value.
            None => SharedMemory::Heap(unsafe { Box::new(std::mem::zeroed()) }),
        };
        Ok(Core {
            home,
            folder,
            state: Mutex::default(),
            info: Info::default(),
            version: AtomicU64::new(0),
            rewinds: AtomicU64::new(0),
            losses: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            troubled: AtomicBool::new(false),
            spin: Spin::default(),
            driver: OnceLock::new(),
            library: OnceLock::new(),
            remote: AtomicBool::new(false),
            event: EventFd::new()?,
            lock_fd: AtomicI32::new(lock_fd),
            senders: Mutex::default(),
            senders_total: AtomicU64::new(0),
            requested: Mutex::default(),
        })
    }

    pub fn senders_total(&self) -> u64 {
        self.senders_total.load(Ordering::Relaxed)
    }

    pub fn shared(&self) -> &Shared {
        match &self.home {
            SharedMemory::Segment(segment) => segment,
            SharedMemory::Heap(shared) => shared,
        }
    }

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        // A panic under the lock is a bug that was reported; our code never leaves the queue
        // half-changed, so that going on beats wedging every later call.
        lock(&self.state)
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// End every blocked call. Idempotent.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let mut state = self.lock();
        let decoded: Vec<_> = state.queue.iter().map(Packet::forget_decoded).collect();
        // A local inbound's credit holds its sender, which may be this endpoint itself.
        let local =
            state.inbounds.iter_mut().filter(|inbound| matches!(inbound.via, Via::Local(_)));
        let local: Vec<_> =
            local.map(|inbound| std::mem::replace(&mut inbound.via, Via::Closed)).collect();
        drop(state);
        drop((decoded, local)); // not under the lock: it may run Python
        let shared = self.shared();
        shared.departed.store(1, Ordering::SeqCst);
        shared.set_activity(Activity::Departed);
        self.version.fetch_add(1, Ordering::SeqCst);
        self.ring();
        shared.network.0.ring();
        self.poke();
    }

    /// In a forked child: the endpoint belongs to the parent. Gives up our copy of its lock, which
    /// would make the parent look alive after its death.
    pub fn abandon(&self) {
        self.closed.store(true, Ordering::Release);
        let fd = self.lock_fd.swap(-1, Ordering::AcqRel);
        if fd >= 0 {
            // SAFETY: replaces our copy of the descriptor by one of /dev/null, so that the number
            // stays taken until the mapping's File closes it.
            unsafe {
                let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
                libc::dup3(null, fd, libc::O_CLOEXEC);
                libc::close(null);
            }
        }
    }

    /// Let the network thread look after this sender's arena from now on.
    pub fn tend(&self, sender: Weak<dyn Sender>) {
        let mut senders = lock(&self.senders);
        senders.retain(|sender| sender.strong_count() > 0);
        senders.push(sender);
    }

    // ---- acknowledgements of remote inbounds ----

    /// (uid, account, total received) for each acknowledgement that is due.
    pub fn acks(&self) -> Vec<(u128, usize, u64)> {
        drain(&self.event);
        let mut state = self.lock();
        let mut acks = Vec::new();
        for inbound in std::mem::take(&mut state.due) {
            let inbound = &mut state.inbounds[inbound as usize];
            (inbound.due, inbound.asked) = (false, false);
            for (account, taken) in inbound.taken.into_iter().enumerate() {
                if taken != std::mem::replace(&mut inbound.acknowledged[account], taken) {
                    acks.push((inbound.uid, account, taken));
                }
            }
        }
        acks
    }

    /// The sender of `inbound` waits for room: acknowledge at once what was not acknowledged yet,
    /// or the next message. Whether there was anything to acknowledge.
    pub fn ask(&self, inbound: u32) -> bool {
        let mut state = self.lock();
        let waiting = &mut state.inbounds[inbound as usize];
        waiting.asked = true;
        let news = waiting.taken != waiting.acknowledged;
        if news {
            self.owe(&mut state, inbound);
        }
        news
    }

    /// By account, the cost of all messages that were received from `inbound`.
    pub fn taken(&self, inbound: u32) -> [u64; ACCOUNTS] {
        self.lock().inbounds[inbound as usize].taken
    }

    /// An acknowledgement of `inbound` is due.
    fn owe(&self, state: &mut InboxState, inbound: u32) {
        if !std::mem::replace(&mut state.inbounds[inbound as usize].due, true) {
            state.due.push(inbound);
            self.poke();
        }
    }

    /// Whether the network thread has messages for callbacks.
    pub fn has_undecided(&self) -> bool {
        !self.lock().undecided.is_empty()
    }

    pub fn event_fd(&self) -> i32 {
        self.event.as_raw_fd()
    }

    /// Wake a thread that sleeps on `event_fd`.
    pub fn poke(&self) {
        self.event.ring();
    }

    fn add_inbound(&self, state: &mut InboxState, uid: u128, via: Via) -> u32 {
        let (taken, acknowledged) = Default::default();
        let inbound =
            Inbound { uid, via, arrived: 0, taken, acknowledged, due: false, asked: false };
        state.inbounds.push(inbound);
        self.senders_total.store(state.inbounds.len() as u64, Ordering::Relaxed);
        (state.inbounds.len() - 1) as u32
    }

    /// Let a receive report it.
    fn report(&self, state: &mut InboxState, trouble: Trouble) {
        state.troubles.push(trouble);
        self.troubled.store(true, Ordering::Release);
    }
}

/// Why foreign bytes did not become a packet.
pub enum Unfit {
    Malformed(String),
    NoMemory,
}

/// Copy foreign bytes into a packet.
pub fn packet_from(bytes: &[u8]) -> Result<Packet, Unfit> {
    crate::packet::validate_foreign(bytes).map_err(Unfit::Malformed)?;
    let body = Body::try_copy_of(bytes).ok_or(Unfit::NoMemory)?;
    Packet::new(body).map_err(Unfit::Malformed)
}

const _: () = assert!(SLOTS.is_multiple_of(64));
