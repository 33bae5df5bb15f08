//! Events: a tool's callbacks run for each message that was sent or received.
//!
//! Messages arrive under locks, and in any thread. So an event is queued with its time, and the
//! next `advance` delivers it outside all locks, where a tool may call anything. If the queue is
//! full, events are dropped, and the tool gets their number.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use sfm_endpoint::callers::kept;
use sfm_native::packet::LIBRARY;
use sfm_native::sync::lock;

use super::performance::Scope;
use super::registry::Registry;
use crate::counting::{Happened, Watch};
use crate::engine;
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;

/// Name and description; the elements of both are rank, tag and bytes.
pub const ALL: [(Happened, &str, &str); 2] = [
    (
        Happened::Sent,
        "message_sent",
        "the program has sent a message: its destination, tag and \
        bytes",
    ),
    (
        Happened::Received,
        "message_received",
        "the program has received a message: its source, tag and bytes",
    ),
];
pub const ELEMENTS: [(MPI_Datatype, MPI_Aint); 3] =
    [(MPI_INT, 0), (MPI_INT, 4), (MPI_UNSIGNED_LONG_LONG, 8)];
/// Name and description of the only source of events.
pub const SOURCE: (&str, &str) = ("engine", "messages; its clock is the machine's monotonic one");
pub const TICKS_PER_SECOND: MPI_Count = 1_000_000_000;
/// The largest number of events in a registration's queue.
const MOST: usize = 4096;

/// The data of an event, as MPI_T_event_copy copies it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Data {
    pub rank: c_int,
    pub tag: c_int,
    pub bytes: u64,
}

pub struct Instance {
    pub time: MPI_Count,
    pub data: Data,
}

#[derive(Clone, Copy)]
struct Callback {
    function: MPI_T_event_cb_function,
    user_data: usize,
}

pub struct Registration {
    kind: Happened,
    scope: Scope,
    state: Mutex<EventQueue>,
}

#[derive(Default)]
struct EventQueue {
    /// By the level of safety that each promises.
    callbacks: [Option<Callback>; 4],
    dropped_handler: MPI_T_event_dropped_cb_function,
    waiting: VecDeque<Instance>,
    dropped: MPI_Count,
    watch: Option<Watch>,
}

static REGISTRATIONS: Registry<Registration> = Registry::new();
static INSTANCES: Registry<Instance> = Registry::new();
/// Held by the thread that delivers events.
static DELIVERING: Mutex<()> = Mutex::new(());

impl Registration {
    fn state(&self) -> MutexGuard<'_, EventQueue> {
        lock(&self.state)
    }
}

pub fn clear() {
    REGISTRATIONS.clear();
}

pub fn open(kind: Happened, scope: Scope) -> MPI_T_event_registration {
    REGISTRATIONS.insert(Registration { kind, scope, state: Mutex::default() })
}

pub fn get(handle: MPI_T_event_registration) -> Answer<Arc<Registration>> {
    REGISTRATIONS.get(handle).ok_or_else(|| {
        let text = "argument event_registration is not a registration, or was freed";
        fail(MPI_T_ERR_INVALID_HANDLE, text)
    })
}

pub fn instance(handle: MPI_T_event_instance) -> Answer<Arc<Instance>> {
    INSTANCES.get(handle).ok_or_else(|| {
        let text =
            "argument event_instance is not an event: each lasts as long as the callback that \
            gets it";
        fail(MPI_T_ERR_INVALID_HANDLE, text)
    })
}

/// Free a registration; the tool's callback runs when no more events will come.
pub unsafe fn close(
    handle: MPI_T_event_registration,
    user_data: *mut c_void,
    callback: MPI_T_event_free_cb_function,
) -> Answer {
    get(handle)?;
    REGISTRATIONS.remove(handle);
    if let Some(callback) = callback {
        kept(|| callback(handle, MPI_T_CB_REQUIRE_NONE, user_data));
    }
    Ok(())
}

fn safety(level: MPI_T_cb_safety) -> Answer<usize> {
    let levels = [
        MPI_T_CB_REQUIRE_NONE,
        MPI_T_CB_REQUIRE_MPI_RESTRICTED,
        MPI_T_CB_REQUIRE_THREAD_SAFE,
        MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
    ];
    levels.iter().position(|known| *known == level).ok_or_else(|| {
        let text = format!("argument cb_safety is {level}; give one of MPI_T_CB_REQUIRE_...");
        fail(MPI_T_ERR_INVALID, text)
    })
}

/// Err if the registration has no callback of this safety level.
pub fn has_callback(handle: MPI_T_event_registration, level: MPI_T_cb_safety) -> Answer {
    let (registration, level) = (get(handle)?, safety(level)?);
    let has = registration.state().callbacks[level].is_some();
    has.then_some(()).ok_or_else(no_callback)
}

fn no_callback() -> Failure {
    fail(MPI_T_ERR_INVALID, "the registration has no callback of this safety")
}

/// Set or remove the callback.
pub fn set_callback(
    handle: MPI_T_event_registration,
    level: MPI_T_cb_safety,
    function: MPI_T_event_cb_function,
    user_data: *mut c_void,
) -> Answer {
    let (registration, level) = (get(handle)?, safety(level)?);
    let mut state = registration.state();
    let callback = Callback { function, user_data: user_data as usize };
    state.callbacks[level] = function.is_some().then_some(callback);
    let is_needed = state.callbacks.iter().any(Option::is_some);
    if is_needed != state.watch.is_some() {
        state.watch = is_needed.then(|| Watch::new(&super::TOOLS));
    }
    Ok(())
}

pub fn set_dropped_handler(
    handle: MPI_T_event_registration,
    handler: MPI_T_event_dropped_cb_function,
) -> Answer {
    get(handle)?.state().dropped_handler = handler;
    Ok(())
}

/// The time by the source's clock.
pub fn now() -> MPI_Count {
    sfm_native::clock::monotonic() as MPI_Count
}

/// Queue an event on a context, with a process of the world.
pub fn raise(kind: Happened, context: u64, rank: usize, tag: c_int, bytes: usize) {
    if context & LIBRARY != 0 {
        return;
    }
    for (_, registration) in REGISTRATIONS.all() {
        let Some(comm) = registration
            .scope
            .as_ref()
            .filter(|comm| registration.kind == kind && engine::messages(comm.context) == context)
        else {
            continue;
        };
        let index = comm.peers().members.iter().position(|member| *member as usize == rank);
        let mut state = registration.state();
        if state.watch.is_none() {
            continue;
        }
        if state.waiting.len() >= MOST {
            state.dropped += 1;
            continue;
        }
        let rank = index.map_or(MPI_PROC_NULL, |index| index as c_int);
        let data = Data { rank, tag, bytes: bytes as u64 };
        state.waiting.push_back(Instance { time: now(), data });
    }
}

/// Deliver the queued events to the tools' callbacks, which may call MPI.
pub fn deliver() {
    let Ok(_delivering) = DELIVERING.try_lock() else { return };
    for (handle, registration) in REGISTRATIONS.all() {
        let handle = handle as MPI_T_event_registration;
        loop {
            let (dropped, next) = {
                let mut state = registration.state();
                let dropped = std::mem::take(&mut state.dropped);
                let dropped = state.dropped_handler.filter(|_| dropped > 0).map(|to| (to, dropped));
                // The one with the fewest promises: here it may call anything.
                let callback = state.callbacks.iter().flatten().next().copied();
                let instance = state.waiting.pop_front();
                (dropped, callback.zip(instance))
            };
            // SAFETY: the tool gave these functions for this use.
            unsafe {
                if let Some((handler, count)) = dropped {
                    let data =
                        next.as_ref().map_or(0, |(callback, _)| callback.user_data) as *mut c_void;
                    kept(|| handler(count, handle, 0, MPI_T_CB_REQUIRE_NONE, data));
                }
                let Some((Callback { function: Some(function), user_data }, instance)) = next
                else {
                    break;
                };
                let instance = INSTANCES.insert(instance);
                let data = user_data as *mut c_void;
                kept(|| function(instance, handle, MPI_T_CB_REQUIRE_NONE, data));
                INSTANCES.remove(instance);
            }
            if REGISTRATIONS.get(handle).is_none() {
                break; // the tool has freed it meanwhile
            }
        }
    }
}
