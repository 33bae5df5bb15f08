//! The collective call that a message belongs to, and those of its arguments that all processes
//! give alike. The sender puts both into the message, and a receive of another call fails: the
//! processes do not make the same calls in the same order.

use sfm_native::packet::{Envelope, LIBRARY};

use super::report::Arguments;
use super::{engine, messages_of_collectives, origin, Note};
use crate::collective::mismatch::call_text;
use crate::comm;
use crate::handles::c_int;
use crate::op::{self, Op};
use crate::process;

/// Fits into eight bits of a message's note.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum What {
    /// None: one of the program's own messages.
    Message,
    /// Any call that makes a communicator.
    Making,
    Barrier,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
    Exscan,
    NeighborAllgather,
    NeighborAlltoall,
    Finalize,
    /// Any collective call of a file.
    File,
    /// Any call that makes a window.
    Window,
    Fence,
    WinFree,
}

use What::*;

const ALL: [(What, &str); 20] = [
    (Message, "no collective"),
    (Making, "a function that makes a communicator"),
    (Barrier, "MPI_Barrier"),
    (Bcast, "MPI_Bcast"),
    (Gather, "MPI_Gather"),
    (Scatter, "MPI_Scatter"),
    (Allgather, "MPI_Allgather"),
    (Alltoall, "MPI_Alltoall"),
    (Reduce, "MPI_Reduce"),
    (Allreduce, "MPI_Allreduce"),
    (ReduceScatter, "MPI_Reduce_scatter"),
    (Scan, "MPI_Scan"),
    (Exscan, "MPI_Exscan"),
    (NeighborAllgather, "MPI_Neighbor_allgather"),
    (NeighborAlltoall, "MPI_Neighbor_alltoall"),
    (Finalize, "MPI_Finalize"),
    (File, "a function that all processes of a file call"),
    (Window, "a function that makes a window"),
    (Fence, "MPI_Win_fence"),
    (WinFree, "MPI_Win_free"),
];

impl What {
    /// The call with this number.
    pub fn of(number: u8) -> What {
        ALL.get(usize::from(number)).map_or(Message, |(what, _)| *what)
    }

    /// The call of mpi4py's method for objects.
    pub fn of_method(method: &str) -> What {
        let is_it = |what: &What| what.method() == method;
        ALL.iter().map(|(what, _)| *what).find(is_it).unwrap_or(Message)
    }

    /// mpi4py's method for objects: `allreduce`.
    pub fn method(self) -> String {
        self.name().trim_start_matches("MPI_").to_lowercase()
    }

    /// The standard's name of the non-blocking form: `MPI_Ibarrier`.
    pub fn begun(self) -> String {
        match self.name().strip_prefix("MPI_") {
            Some(name) => format!("MPI_I{}", name.to_lowercase()),
            None => self.name().into(),
        }
    }

    /// The standard's name, without v, w and I.
    pub fn name(self) -> &'static str {
        ALL[self as usize].1
    }
}

/// The root and the predefined operation of a collective call. 0 stands for what the call does not
/// have, or what cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Alike(u32);

impl Alike {
    /// The bits that are used.
    pub const BITS: u32 = 17;
    const OP_BITS: u32 = 4;

    pub fn new(root: Option<usize>, op: Option<&Op>) -> Alike {
        // A larger root does not fit.
        let root = root.map_or(0, |root| root + 1);
        let root = if root >> (Self::BITS - Self::OP_BITS) == 0 { root as u32 } else { 0 };
        Alike(root << Self::OP_BITS | op.map_or(0, Op::number))
    }

    /// As a number, and back; any further bits are ignored.
    pub fn word(self) -> u32 {
        self.0
    }

    pub fn of(word: u32) -> Alike {
        Alike(word & ((1 << Self::BITS) - 1))
    }

    fn root(self) -> u32 {
        self.0 >> Self::OP_BITS
    }

    fn op(self) -> u32 {
        self.0 & ((1 << Self::OP_BITS) - 1)
    }

    /// True if two calls cannot be the same.
    pub fn differs(self, other: Alike) -> bool {
        let differ = |one: u32, two: u32| one != two && one != 0 && two != 0;
        differ(self.root(), other.root()) || differ(self.op(), other.op())
    }

    pub fn arguments(self) -> Arguments {
        let op = op::name_of(self.op()).map(|name| ("op", name.to_owned()));
        let root = self.root().checked_sub(1).map(|root| ("root", root.to_string()));
        op.into_iter().chain(root).collect()
    }
}

/// At the end of the program: a sentence about a collective call of another process that this one
/// has not made, or has made differently. All calls have returned nevertheless.
pub fn unreceived_collective() -> Option<String> {
    unreceived_message().or_else(unread_post)
}

fn unreceived_message() -> Option<String> {
    let of_collective = |envelope: &Envelope| {
        let note = Note::of(envelope);
        let is_known = || engine().is_known_left(envelope.context, envelope.tag as u32);
        let is_one = envelope.context & LIBRARY != 0 && note.what != Message && !is_known();
        is_one.then_some((note, envelope.context, envelope.tag as c_int))
    };
    let (note, context, tag) =
        engine().core.find_queued(|packet| packet.envelope().as_ref().and_then(of_collective))?;
    let comm = comm::of_messages(messages_of_collectives(context));
    let made = comm.iter().flat_map(|comm| comm.history.latest(comm));
    let here = made.filter(|(number, _)| *number == tag as u64).map(|(_, call)| call).next();
    let here = here.map_or("has not".into(), |call| {
        format!("has called {}{}", call.text, origin::in_words(&call.code, call.line))
    });
    // mpi4py broadcasts on its own communicator in this method alone.
    let theirs = match comm::are_internal(messages_of_collectives(context)) {
        true => "allreduce".into(),
        false => call_text(note.what.name(), note.alike()),
    };
    let at = origin::of_message(note.rank, context, tag);
    Some(difference(note.rank, &theirs, &at, &here))
}

fn unread_post() -> Option<String> {
    let unread = |comm: std::sync::Arc<comm::Comm>| comm.meetings.unread(&comm);
    let (process, (what, alike), at) = comm::all().into_iter().find_map(unread)?;
    Some(difference(process, &call_text(what.name(), alike), &at, "has not"))
}

fn difference(process: usize, theirs: &str, at: &str, here: &str) -> String {
    format!(
        "{} has called {theirs}{at}, and this process {here}: all processes of a communicator make \
         the same collective calls in the same order, with the same root",
        process::named(process)
    )
}
