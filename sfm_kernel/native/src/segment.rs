//! A process's segment: memory that others can read and ring without its help.
//!
//! One small file for each process. Senders set a bit in `arrivals`, announce their ring in
//! `rings`, and ring the bell. The process keeps its state here, so that an observer sees what
//! it does while it hangs, holds the GIL, is stopped, or after it died.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::bell::Bell;
use crate::clock::now;
use crate::code_location::{current, CodeLocation, CodeTable};
use crate::life::Life;
use crate::main_thread::MainThread;
use crate::packet::{context_of, is_answer, with_entries};
use crate::peers::{bump, Peers};
use crate::polls::Polls;
use crate::shm::{Mapping, ShmError};
use crate::sync::Padded;
use crate::text::Text;
use crate::trace::{mark, Event, EventKind, Trace};

/// Processes of one world: one bit each in `arrivals`.
pub const SLOTS: usize = 512;
const MAGIC: u64 = u64::from_le_bytes(*b"SFMSEG\0\x07");

/// Bytes of the texts that Python cuts to fit.
pub const OTHERS_BYTES: usize = 1024;
pub const JUDGEMENT_BYTES: usize = 8192;

/// A process's activity, as its segment publishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Activity {
    Idle = 0,
    Running = 1,
    Receiving = 2,
    Sending = 3,
    Departed = 4,
    Collective = 5,
    /// A notebook waits for a cell on engines.
    Cell = 6,
}

impl Activity {
    /// The names of the states, by their codes.
    pub const NAMES: [&'static str; 7] = [
        "idle",
        "running",
        "blocked in recv",
        "blocked in send",
        "left",
        "blocked in collective",
        "blocked in cell",
    ];

    /// The state's name; None if there is no such state.
    pub fn name(code: u32) -> Option<&'static str> {
        Activity::NAMES.get(code as usize).copied()
    }

    /// Whether this is the state of a blocked call.
    pub fn is_blocked(code: u32) -> bool {
        Activity::name(code).is_some_and(|name| name.starts_with("blocked"))
    }
}

/// In this order: the fields that observers read most often (observed.rs) come first.
#[repr(C)]
pub struct Shared {
    magic: AtomicU64,
    uid: [AtomicU64; 2],
    /// Rung when something arrived for a blocked call, and when a blocked sender may go on.
    pub bell: Padded<Bell>,
    /// Rung when the network thread has work: callbacks, a full ring, an observer's request.
    pub network: Padded<Bell>,
    /// Bit n: the process in slot n has published something since the bit was taken.
    pub arrivals: Padded<[AtomicU64; SLOTS / 64]>,
    /// 1 while the network thread receives for callbacks; senders then ring `network` too.
    pub callbacks: AtomicU32,
    /// 1 while a receiving call sleeps so that `bell` cannot wake it; senders ring `network` too.
    pub driving: AtomicU32,
    /// 1 when a sender's ring is full: the network thread must make room if nobody receives.
    pub pressure: AtomicU32,
    /// 1 once the process has left: sending to it is useless.
    pub departed: AtomicU32,
    /// Held by the network thread.
    pub life: Life,
    pub activity: Padded<AtomicU32>,
    /// Nanoseconds since 1970 at which `activity` got its present value.
    pub since: AtomicU64,
    pub depth: AtomicU64,
    pub bytes: AtomicU64,
    pub sent: AtomicU64,
    pub received: AtomicU64,
    /// Messages that have ever come into the inbox.
    pub arrived: AtomicU64,
    /// The location of the process's last call in its program.
    pub location: AtomicU64,
    /// Grows with each blocked call. The next fields are about the call of this number.
    pub call: AtomicU64,
    /// Nanoseconds since 1970 at which the call ends by itself; 0 if it does not.
    pub until: AtomicU64,
    /// What the call had examined when it went to sleep: `arrived` in a receive, what the peer had
    /// taken in a send; UNSETTLED before that, and if the other side can end the wait by itself.
    pub examined: AtomicU64,
    /// Nanoseconds since 1970 at which the call last began to look whether it can go on. What others
    /// have done since then, it may not have seen, wherever it would find that: memory that
    /// processes share has no counts that observers could compare.
    pub looked: AtomicU64,
    /// The number of a call that is to end with `judgement`: an observer's verdict. With PREPARED,
    /// the call is to wait until the judgement is committed or aborted (observed/judgement.rs); the
    /// bits between are the number of the observer that does so, from OBSERVER_SHIFT on.
    pub judged: AtomicU64,
    /// What the call waits for: in one line, and as JSON; the latter follows after a tenth of a
    /// second.
    pub waits: Text<128>,
    pub facts: Text<256>,
    /// What could go on while the call waits, or after the program's end: threads, callbacks …, as
    /// JSON; empty before that was checked, and while the program runs.
    pub others: Text<{ OTHERS_BYTES / 8 }>,
    pub polls: Polls,
    pub main: MainThread,
    /// An observer requests a new `summary` by writing another number here.
    pub requests: AtomicU32,
    pub info: Text<512>,
    pub summary: Text<2048>,
    pub peers: Peers,
    pub codes: CodeTable,
    pub judgement: Text<{ JUDGEMENT_BYTES / 8 }>,
    pub trace: Trace,
    /// The uid of the ring that the process in slot n sends through.
    rings: [[AtomicU64; 2]; SLOTS],
}

/// In `judged`: not all processes of the deadlock have their judgement yet.
pub const PREPARED: u64 = 1 << 63;
/// In `judged`: the bits from this one on, up to PREPARED, are the number of an observer.
pub const OBSERVER_SHIFT: u32 = 48;

/// The number of the call in `judged`.
pub fn judged_call(judged: u64) -> u64 {
    judged & ((1 << OBSERVER_SHIFT) - 1)
}

/// In `examined`: nothing is known.
pub const UNSETTLED: u64 = u64::MAX;
/// In `examined`: nothing that arrives in the inbox decides this wait.
pub const INBOX_IRRELEVANT: u64 = u64::MAX - 1;

pub type Segment = Mapping<Shared>;

pub fn create(path: &Path, uid: u128, info: &str) -> Result<Segment, ShmError> {
    Mapping::create(path, std::mem::size_of::<Shared>(), 0, |shared: &Segment| {
        shared.init(uid);
        shared.info.write(info);
    })
}

/// Map another process's segment. That this succeeds is the proof that memory is shared.
pub fn open(path: &Path, uid: Option<u128>) -> Result<Segment, ShmError> {
    let segment: Segment = Mapping::open(path, 0)?;
    if !segment.is_known() {
        return Err(ShmError::Invalid(format!("{} is no segment of this version", path.display())));
    }
    if uid.is_some_and(|uid| segment.uid() != uid) {
        return Err(ShmError::Invalid(format!("{} belongs to another process", path.display())));
    }
    Ok(segment)
}

/// A sender's segment; that of a guest from another world has a different name here.
pub fn segment_of(folder: &Path, uid: u128) -> PathBuf {
    let guest = folder.join(format!("{uid:032x}.guest"));
    if guest.exists() {
        return guest;
    }
    folder.join(format!("{uid:032x}.seg"))
}

fn split(uid: u128) -> [u64; 2] {
    [uid as u64, (uid >> 64) as u64]
}

fn join(halves: &[AtomicU64; 2]) -> u128 {
    let [low, high] = [halves[0].load(Ordering::Acquire), halves[1].load(Ordering::Acquire)];
    u128::from(low) | u128::from(high) << 64
}

impl Shared {
    pub fn init(&self, uid: u128) {
        for (word, half) in self.uid.iter().zip(split(uid)) {
            word.store(half, Ordering::Relaxed);
        }
        self.set_activity(Activity::Running);
        self.magic.store(MAGIC, Ordering::Release);
    }

    pub fn uid(&self) -> u128 {
        join(&self.uid)
    }

    /// Whether it is a segment, and of this version.
    pub fn is_known(&self) -> bool {
        self.magic.load(Ordering::Acquire) == MAGIC
    }

    /// Announce the ring of the sender in `slot`; before its first `announce_arrival`.
    pub fn announce_ring(&self, slot: usize, uid: u128) {
        for (word, half) in self.rings[slot].iter().zip(split(uid)) {
            word.store(half, Ordering::Release);
        }
    }

    pub fn ring_of(&self, slot: usize) -> u128 {
        join(&self.rings[slot])
    }

    /// Announce to the owner that `slot` has published something, and wake it.
    pub fn announce_arrival(&self, slot: usize) {
        // SYNC POINT segment/arrivals: the bit is set before the bell is rung; the owner takes
        // the bits after it has read the bell's word.
        self.arrivals.0[slot / 64].fetch_or(1 << (slot % 64), Ordering::SeqCst);
        self.wake();
    }

    /// Make the owner check its wait again.
    pub fn wake(&self) {
        self.bell.0.ring();
        // SYNC POINT core/driving: with the flag's owner, which checks for arrivals after it has
        // set the flag.
        if self.callbacks.load(Ordering::SeqCst) | self.driving.load(Ordering::SeqCst) != 0 {
            self.network.0.ring();
        }
    }

    /// A sender sleeps for room in its ring.
    pub fn announce_pressure(&self) {
        self.pressure.store(1, Ordering::SeqCst);
        self.network.0.ring();
    }

    pub fn has_arrivals(&self) -> bool {
        self.arrivals.0.iter().any(|word| word.load(Ordering::SeqCst) != 0)
    }

    pub fn activity_is(&self, activity: Activity) -> bool {
        self.activity.0.load(Ordering::Acquire) == activity as u32
    }

    pub fn set_activity(&self, activity: Activity) {
        self.since.store(now(), Ordering::Relaxed);
        self.activity.0.store(activity as u32, Ordering::Release);
        self.record(Event { number: activity as u64, ..Event::of(EventKind::Activity) }, &[]);
    }

    /// Record an event at this thread's location; `about`: attributes, encoded.
    pub fn record(&self, event: Event, about: &[u8]) {
        let location = current();
        // A blocked call's location stays published while another thread sends.
        let blocked = Activity::is_blocked(self.activity.0.load(Ordering::Relaxed));
        if event.kind == EventKind::Activity || !blocked {
            self.location.store(location, Ordering::Relaxed);
        }
        self.codes.note(location);
        self.trace.record(Event { location, ..event }, about);
    }

    /// A message has gone to `peer`, the `number`th; `front`: its first bytes.
    pub fn record_sent(&self, peer: u64, number: u64, bytes: usize, front: &[u8]) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let kind = if is_answer(context_of(front)) { EventKind::AckSent } else { EventKind::Sent };
        let (bytes, context) = (bytes as u64, mark(context_of(front)));
        let event = Event { peer, number, bytes, context, ..Event::of(kind) };
        with_entries(front, |entries| self.record(event, entries));
    }

    /// A message of `peer` has left the inbox. By one thread at a time.
    pub fn record_received(&self, peer: u64, number: u64, bytes: usize, context: u64) {
        bump(&self.received, 1);
        let kind = if is_answer(context) { EventKind::AckReceived } else { EventKind::Received };
        let (bytes, context) = (bytes as u64, mark(context));
        let event = Event { peer, number, bytes, context, ..Event::of(kind) };
        self.record(event, &[]);
    }

    /// The program's variables at a call in `location`, see `EventKind`.
    pub fn record_variables(&self, location: CodeLocation, number: u64) {
        self.codes.note(location);
        self.trace.record(Event { number, location, ..Event::of(EventKind::Variables) }, &[]);
    }

    /// A call blocks from now on. Returns its number.
    pub fn begin_call(&self, activity: Activity, waits: &str, facts: &str, until: u64) -> u64 {
        self.examined.store(UNSETTLED, Ordering::Relaxed);
        let call = self.call.fetch_add(1, Ordering::AcqRel) + 1;
        self.others.write("");
        self.facts.write(facts);
        self.waits.write(waits);
        self.until.store(until, Ordering::Relaxed);
        self.set_activity(activity);
        call
    }

    /// A call has asked for a message and found none. True if `publish_polls` is to be called.
    pub fn polled(&self) -> bool {
        self.polls.failed(self.requests.load(Ordering::Relaxed))
    }

    /// Publish what this thread's unsuccessful call, at its current location, has asked for, as
    /// JSON.
    pub fn publish_polls(&self, about: &str) {
        let location = current();
        self.codes.note(location);
        self.polls.publish(self.requests.load(Ordering::Relaxed), location, about);
    }

    /// The call has ended.
    pub fn end_call(&self) {
        // Until it is known that nothing else goes on, observers must conclude nothing.
        self.examined.store(UNSETTLED, Ordering::Release);
        self.others.write("");
        self.set_activity(Activity::Running);
        self.waits.write("");
        self.facts.write("");
    }

    pub fn set_depth(&self, depth: usize, bytes: u64) {
        self.depth.store(depth as u64, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}
