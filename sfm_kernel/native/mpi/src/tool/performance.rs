//! Performance variables: their descriptions, and how each is read.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use sfm_native::packet::LIBRARY;
use sfm_native::segment::{Activity, Shared};

use super::categories::Category;
use super::enums::Of;
use crate::comm::Comm;
use crate::counting::{self, Amount, Flow};
use crate::engine::{self, running, Engine};
use crate::handles::*;

/// How a handle's value results from what is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The value that is read.
    Level,
    /// The growth while the handle is started.
    Growth,
    /// The maximum while the handle is started.
    Highest,
}

/// The type of a value for the tool.
#[derive(Clone, Copy)]
pub enum Unit {
    Number,
    /// Read in nanoseconds, returned in seconds.
    Seconds,
    Item(Of),
}

/// The communicator of a handle.
pub type Scope = Option<Arc<Comm>>;

pub struct Variable {
    pub name: &'static str,
    pub about: &'static str,
    pub category: Category,
    pub class: c_int,
    pub verbosity: c_int,
    pub how: How,
    pub unit: Unit,
    pub is_of_comm: bool,
    pub read: fn(&Scope) -> Vec<u64>,
}

const LEVEL: Variable = Variable {
    name: "",
    about: "",
    category: Category::Queue,
    class: MPI_T_PVAR_CLASS_LEVEL,
    verbosity: MPI_T_VERBOSITY_USER_BASIC,
    how: How::Level,
    unit: Unit::Number,
    is_of_comm: false,
    read: |_| vec![0],
};
const COUNTER: Variable = Variable {
    category: Category::Messages,
    class: MPI_T_PVAR_CLASS_COUNTER,
    how: How::Growth,
    ..LEVEL
};
const BYTES: Variable = Variable { class: MPI_T_PVAR_CLASS_AGGREGATE, ..COUNTER };
const COUNTERS: Variable =
    Variable { verbosity: MPI_T_VERBOSITY_TUNER_BASIC, is_of_comm: true, ..COUNTER };
const PACKETS: Variable =
    Variable { category: Category::Packets, verbosity: MPI_T_VERBOSITY_MPIDEV_BASIC, ..COUNTER };

/// Of each: the variable that it is like, where it differs, its name and description, its reading.
macro_rules! variables {
    ($($base:ident $({ $($field:ident: $value:expr),* })?,
       $name:ident: $about:literal, $read:expr;)*) => {
        &[$(Variable {
            name: stringify!($name),
            about: $about,
            read: $read,
            $($($field: $value,)*)?
            ..$base
        }),*]
    };
}

pub static ALL: &[Variable] = variables! {
    COUNTER, messages_sent: "messages that the program has sent, without those of collectives",
        |_| total(|flow| flow.sent.messages);
    BYTES, bytes_sent: "bytes of the messages that the program has sent",
        |_| total(|flow| flow.sent.bytes);
    COUNTER, messages_received:
        "messages that the program has received, without those of collectives",
        |_| total(|flow| flow.received.messages);
    BYTES, bytes_received: "bytes of the messages that the program has received",
        |_| total(|flow| flow.received.bytes);
    COUNTERS, comm_messages_sent:
        "messages that the program has sent to each rank of a communicator",
        |scope| each(scope, |flow| flow.sent.messages);
    COUNTERS { class: MPI_T_PVAR_CLASS_AGGREGATE }, comm_bytes_sent:
        "bytes of the messages that the program has sent to each rank of a communicator",
        |scope| each(scope, |flow| flow.sent.bytes);
    COUNTERS, comm_messages_received:
        "messages that the program has received from each rank of a communicator",
        |scope| each(scope, |flow| flow.received.messages);
    COUNTERS { class: MPI_T_PVAR_CLASS_AGGREGATE }, comm_bytes_received:
        "bytes of the messages that the program has received from each rank of a communicator",
        |scope| each(scope, |flow| flow.received.bytes);
    LEVEL, unexpected_messages:
        "messages of the program that have arrived, and that no receive has taken yet",
        |scope| vec![queued(scope).messages];
    LEVEL, unexpected_bytes:
        "bytes of the messages that have arrived, and that no receive has taken yet",
        |scope| vec![queued(scope).bytes];
    LEVEL { class: MPI_T_PVAR_CLASS_HIGHWATERMARK, how: How::Highest }, unexpected_messages_highest:
        "the largest number of messages that were there at a time without a receive",
        |scope| vec![queued(scope).messages];
    LEVEL { verbosity: MPI_T_VERBOSITY_TUNER_BASIC, is_of_comm: true }, comm_unexpected_messages:
        "messages on a communicator that have arrived, and that no receive has taken yet",
        |scope| vec![queued(scope).messages];
    LEVEL, posted_receives:
        "receives of the program that have begun, and whose message has not come yet",
        |scope| vec![posted(scope)];
    LEVEL { verbosity: MPI_T_VERBOSITY_TUNER_BASIC, is_of_comm: true }, comm_posted_receives:
        "receives on a communicator that have begun, and whose message has not come yet",
        |scope| vec![posted(scope)];
    LEVEL, waiting_sends:
        "messages that wait until their receivers have room, or have received earlier ones",
        |_| of_engine(|engine| (0..engine.size()).map(|rank| waiting(engine, rank)).sum());
    LEVEL { verbosity: MPI_T_VERBOSITY_TUNER_BASIC, is_of_comm: true }, comm_waiting_sends:
        "messages to each process of a communicator that wait for it, on any communicator",
        waiting_for_members;
    LEVEL { verbosity: MPI_T_VERBOSITY_TUNER_BASIC }, unanswered_sends:
        "large and synchronous sends whose receiver has not answered yet",
        |_| of_engine(|engine| engine.unanswered() as u64);
    LEVEL { category: Category::Waiting, class: MPI_T_PVAR_CLASS_STATE,
            unit: Unit::Item(Of::State) }, state:
        "the state of the process; if another thread reads it, the call that blocks",
        |_| vec![running().map_or(Activity::Idle as u64, |it| state(it.core.shared()))];
    COUNTER { category: Category::Waiting }, calls_that_waited:
        "calls that could not return at once", |_| vec![counting::waits().0];
    COUNTER { category: Category::Waiting, class: MPI_T_PVAR_CLASS_TIMER, unit: Unit::Seconds },
        time_waited: "how long calls have waited: seconds", |_| vec![counting::waits().1];
    COUNTER { category: Category::Collectives }, collectives_begun:
        "collective calls, of any kind and on any communicator", |_| vec![counting::collectives()];
    LEVEL { category: Category::Collectives }, collectives_under_way:
        "non-blocking collectives that have begun and not ended",
        |_| of_engine(|engine| engine.running.load(Relaxed) as u64);
    COUNTER { category: Category::Collectives, verbosity: MPI_T_VERBOSITY_TUNER_DETAIL },
        collective_messages_sent: "messages that collectives have sent",
        |_| vec![counting::in_all(true).sent.messages];
    BYTES { category: Category::Collectives, verbosity: MPI_T_VERBOSITY_TUNER_DETAIL },
        collective_bytes_sent: "bytes of the messages that collectives have sent",
        |_| vec![counting::in_all(true).sent.bytes];
    PACKETS, packets_sent:
        "packets sent to other processes: messages, and control messages about them",
        |_| of_segment(|shared| shared.sent.load(Relaxed));
    PACKETS, packets_arrived: "packets that came into the inbox, or to a receive that was posted",
        |_| of_segment(|shared| shared.arrived.load(Relaxed));
    PACKETS, events_traced:
        "events that were written into the trace, which observers draw as a timeline",
        |_| of_segment(|shared| shared.trace.count());
    LEVEL { category: Category::Packets, class: MPI_T_PVAR_CLASS_SIZE }, processes:
        "processes of MPI_COMM_WORLD", |_| of_engine(|engine| engine.size() as u64);
};

impl Variable {
    /// True if a handle can be started, stopped, reset and written.
    pub fn is_stateful(&self) -> bool {
        self.how != How::Level
    }

    pub fn datatype(&self) -> MPI_Datatype {
        match self.unit {
            Unit::Number => MPI_UNSIGNED_LONG_LONG,
            Unit::Seconds => MPI_DOUBLE,
            Unit::Item(_) => MPI_INT,
        }
    }

    pub fn enumeration(&self) -> Option<Of> {
        match self.unit {
            Unit::Item(of) => Some(of),
            Unit::Number | Unit::Seconds => None,
        }
    }

    pub fn bind(&self) -> c_int {
        if self.is_of_comm {
            MPI_T_BIND_MPI_COMM
        } else {
            MPI_T_BIND_NO_OBJECT
        }
    }
}

fn total(field: fn(&Flow) -> u64) -> Vec<u64> {
    vec![field(&counting::in_all(false))]
}

fn each(scope: &Scope, field: fn(&Flow) -> u64) -> Vec<u64> {
    let flows = |comm: &Arc<Comm>| {
        counting::of_context(engine::messages(comm.context), &comm.peers().members)
    };
    scope.iter().flat_map(flows).map(|flow| field(&flow)).collect()
}

fn of_engine(read: impl FnOnce(&Engine) -> u64) -> Vec<u64> {
    vec![running().map_or(0, read)]
}

fn of_segment(read: impl FnOnce(&Shared) -> u64) -> Vec<u64> {
    of_engine(|engine| read(engine.core.shared()))
}

fn state(shared: &Shared) -> u64 {
    u64::from(shared.activity.0.load(Relaxed))
}

/// True if a context has the program's messages, on the communicator if there is one.
fn is_meant(scope: &Scope, context: u64) -> bool {
    match scope {
        Some(comm) => context == engine::messages(comm.context),
        None => context & LIBRARY == 0,
    }
}

fn queued(scope: &Scope) -> Amount {
    let mut sum = Amount::default();
    let Some(engine) = running() else { return sum };
    engine.core.find_queued(|packet| {
        if is_meant(scope, packet.context()) && packet.envelope().is_some() {
            sum.messages += 1;
            sum.bytes += engine::found(packet).bytes();
        }
        None::<()>
    });
    sum
}

fn posted(scope: &Scope) -> u64 {
    running().map_or(0, |engine| engine.core.posted(|context| is_meant(scope, context)) as u64)
}

fn waiting(engine: &Engine, rank: usize) -> u64 {
    engine.waiting_for(rank) as u64
}

fn waiting_for_members(scope: &Scope) -> Vec<u64> {
    let (Some(engine), Some(comm)) = (running(), scope) else { return Vec::new() };
    comm.peers().members.iter().map(|rank| waiting(engine, *rank as usize)).collect()
}
