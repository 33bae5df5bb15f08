//! The collective call that a message belongs to. The sender puts it into the message, and a
//! receive of another call fails: the processes do not make the same calls in the same order.

use sfm_native::packet::{Envelope, LIBRARY};

use super::{engine, Note};
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

    /// The standard's name, without v, w and I.
    pub fn name(self) -> &'static str {
        ALL[self as usize].1
    }
}

/// At the end of the program: a sentence about a message of a collective call that was never
/// received.
pub fn unreceived_collective() -> Option<String> {
    let of_collective = |envelope: &Envelope| {
        let note = Note::of(envelope);
        let is_known = || engine().is_known_left(envelope.context, envelope.tag as u32);
        (envelope.context & LIBRARY != 0 && note.what != Message && !is_known()).then_some(note)
    };
    let note =
        engine().core.find_queued(|packet| packet.envelope().as_ref().and_then(of_collective))?;
    Some(format!(
        "{} has called {}, and this process has not: all processes of a communicator make the same \
         collective calls in the same order, with the same root",
        process::named(note.rank),
        note.what.name()
    ))
}
