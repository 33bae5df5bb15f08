//! Counters, which run while a tool needs them. Otherwise a message pays for reading one number.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use sfm_native::packet::LIBRARY;
use sfm_native::sync::lock;

/// The number of tool handles that need the counters.
static WATCHES: AtomicUsize = AtomicUsize::new(0);

#[inline]
pub fn is_on() -> bool {
    WATCHES.load(Relaxed) > 0
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happened {
    Sent,
    Received,
}

/// What tools do while the counters run.
pub struct Tools {
    /// A message of this context was sent to this process, or received from it, with a tag and so
    /// many bytes.
    pub happened: fn(Happened, u64, usize, i32, usize),
    /// Called when the program makes progress, outside of all locks.
    pub update: fn(),
    /// Called when messages may have been taken in.
    pub update_high_water: fn(),
}

static TOOLS: OnceLock<&Tools> = OnceLock::new();

/// Let the tools act.
pub fn tell(act: impl FnOnce(&Tools)) {
    if let Some(tools) = TOOLS.get() {
        act(tools);
    }
}

/// Keeps the counters running as long as it lives.
pub struct Watch(());

impl Watch {
    pub fn new(tools: &'static Tools) -> Watch {
        let _ = TOOLS.set(tools); // there is one
        WATCHES.fetch_add(1, Relaxed);
        Watch(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHES.fetch_sub(1, Relaxed);
    }
}

/// Messages and bytes.
#[derive(Clone, Copy, Default)]
pub struct Amount {
    pub messages: u64,
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes as u64;
    }
}

/// The messages between this process and another.
#[derive(Clone, Copy, Default)]
pub struct Flow {
    pub sent: Amount,
    pub received: Amount,
}

/// By context and rank in the world.
static FLOWS: Mutex<BTreeMap<(u64, usize), Flow>> = Mutex::new(BTreeMap::new());
static COLLECTIVES: AtomicU64 = AtomicU64::new(0);
static WAITS: AtomicU64 = AtomicU64::new(0);
static NANOSECONDS_WAITED: AtomicU64 = AtomicU64::new(0);

fn flows<T>(use_: impl FnOnce(&mut BTreeMap<(u64, usize), Flow>) -> T) -> T {
    use_(&mut lock(&FLOWS))
}

/// Count a message that is sent, or waits to be sent.
#[cold]
pub fn sent(context: u64, rank: usize, tag: i32, bytes: usize) {
    flows(|all| all.entry((context, rank)).or_default().sent.add(bytes));
    tell(|tools| (tools.happened)(Happened::Sent, context, rank, tag, bytes));
}

/// Count a message that a receive has got. The caller may hold the lock of the core's queue.
#[cold]
pub fn received(context: u64, rank: usize, tag: i32, bytes: usize) {
    flows(|all| all.entry((context, rank)).or_default().received.add(bytes));
    tell(|tools| (tools.happened)(Happened::Received, context, rank, tag, bytes));
}

#[cold]
pub fn collective() {
    COLLECTIVES.fetch_add(1, Relaxed);
}

/// Count a call that had to wait.
#[cold]
pub fn waited(time: Duration) {
    WAITS.fetch_add(1, Relaxed);
    NANOSECONDS_WAITED.fetch_add(time.as_nanos() as u64, Relaxed);
}

pub fn collectives() -> u64 {
    COLLECTIVES.load(Relaxed)
}

/// The number of waits, and their total in nanoseconds.
pub fn waits() -> (u64, u64) {
    (WAITS.load(Relaxed), NANOSECONDS_WAITED.load(Relaxed))
}

/// The messages of a context, by the number of the other process.
pub fn of_context(context: u64, members: &[i32]) -> Vec<Flow> {
    flows(|all| {
        let of = |rank: &i32| all.get(&(context, *rank as usize)).copied().unwrap_or_default();
        members.iter().map(of).collect()
    })
}

/// The sum of all messages of the program, or of all messages of its collectives.
pub fn in_all(of_collectives: bool) -> Flow {
    let mut sum = Flow::default();
    flows(|all| {
        let counts = |context: u64| (context & LIBRARY != 0) == of_collectives;
        for (_, flow) in all.iter().filter(|((context, _), _)| counts(*context)) {
            for (sum, amount) in [(&mut sum.sent, flow.sent), (&mut sum.received, flow.received)] {
                sum.messages += amount.messages;
                sum.bytes += amount.bytes;
            }
        }
    });
    sum
}
