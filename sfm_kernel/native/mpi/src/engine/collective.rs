//! The collective call that a message belongs to, and those of its arguments that all processes
//! give alike. The sender puts both into the message, and a receive of another call fails: the
//! processes do not make the same calls in the same order.

use sfm_endpoint::{callers, sites};

use crate::op::Op;

macro_rules! collectives {
    ($($(#[$about:meta])* $name:ident: $text:literal,)*) => {
        /// Fits into six bits (`history`) of the eight of a message's note.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Collective {
            $($(#[$about])* $name,)*
        }

        /// Each with its name in the standard, or in words.
        const ALL: &[(Collective, &str)] = &[$((Collective::$name, $text),)*];
    };
}

collectives! {
    /// None: one of the program's own messages.
    Message: "no collective",
    /// A call that makes a communicator, if nothing else is known (`exactly`).
    Making: "a function that makes a communicator",
    Barrier: "MPI_Barrier", Bcast: "MPI_Bcast", Gather: "MPI_Gather", Scatter: "MPI_Scatter",
    Allgather: "MPI_Allgather", Alltoall: "MPI_Alltoall", Reduce: "MPI_Reduce",
    Allreduce: "MPI_Allreduce", ReduceScatter: "MPI_Reduce_scatter", Scan: "MPI_Scan",
    Exscan: "MPI_Exscan", NeighborAllgather: "MPI_Neighbor_allgather",
    NeighborAlltoall: "MPI_Neighbor_alltoall", Finalize: "MPI_Finalize",
    /// The same for a collective call of a file.
    File: "a function that all processes of a file call",
    /// The same for a call that makes a window.
    Window: "a function that makes a window",
    Fence: "MPI_Win_fence", WinFree: "MPI_Win_free", CommDup: "MPI_Comm_dup",
    CommSplit: "MPI_Comm_split", CommSplitType: "MPI_Comm_split_type",
    CommCreate: "MPI_Comm_create", CommCreateGroup: "MPI_Comm_create_group",
    CommCreateFromGroup: "MPI_Comm_create_from_group", IntercommCreate: "MPI_Intercomm_create",
    IntercommFromGroups: "MPI_Intercomm_create_from_groups", IntercommMerge: "MPI_Intercomm_merge",
    CartCreate: "MPI_Cart_create", CartSub: "MPI_Cart_sub", GraphCreate: "MPI_Graph_create",
    DistGraphCreate: "MPI_Dist_graph_create", DistGraphAdjacent: "MPI_Dist_graph_create_adjacent",
    CommSpawn: "MPI_Comm_spawn", CommAccept: "MPI_Comm_accept", CommConnect: "MPI_Comm_connect",
    FileOpen: "MPI_File_open", FileClose: "MPI_File_close", FileSetView: "MPI_File_set_view",
    FileSetSize: "MPI_File_set_size", FilePreallocate: "MPI_File_preallocate",
    FileSetAtomicity: "MPI_File_set_atomicity", FileSetInfo: "MPI_File_set_info",
    FileSync: "MPI_File_sync", FileSeekShared: "MPI_File_seek_shared",
    FileReadAll: "MPI_File_read_all", FileReadAtAll: "MPI_File_read_at_all",
    FileReadOrdered: "MPI_File_read_ordered", FileWriteAll: "MPI_File_write_all",
    FileWriteAtAll: "MPI_File_write_at_all", FileWriteOrdered: "MPI_File_write_ordered",
    WinCreate: "MPI_Win_create", WinAllocate: "MPI_Win_allocate",
    WinAllocateShared: "MPI_Win_allocate_shared", WinCreateDynamic: "MPI_Win_create_dynamic",
}

use Collective::*;

impl Collective {
    /// The call with this number.
    pub fn of(number: u8) -> Collective {
        ALL.get(usize::from(number)).map_or(Message, |(what, _)| *what)
    }

    /// The call of mpi4py's method for objects.
    pub fn of_method(method: &str) -> Collective {
        let is_it = |what: &Collective| what.method() == method;
        ALL.iter().map(|(what, _)| *what).find(is_it).unwrap_or(Message)
    }

    /// The call more exactly, by the function that the program is in: all processes call the same one
    /// to make a communicator or a window, or use a file.
    pub fn exactly(self) -> Collective {
        let (Making | File | Window) = self else { return self };
        // Forms that match each other, as far as the standard says.
        let name = callers::name().trim_end_matches("_c").replace("_with_info", "");
        let name = name.replace("_idup", "_dup").replace("_multiple", "");
        let name = name.replace("_iread", "_read").replace("_iwrite", "_write");
        let name = name.trim_end_matches("_begin");
        ALL.iter().find(|(_, known)| *known == name).map_or(self, |(what, _)| *what)
    }

    /// mpi4py's method for objects: `allreduce`.
    pub fn method(self) -> String {
        self.name().trim_start_matches("MPI_").to_lowercase()
    }

    /// The standard's name of the non-blocking form: `MPI_Ibarrier`.
    pub fn begun(self) -> String {
        match self.name().strip_prefix("MPI_") {
            Some("Comm_dup") => "MPI_Comm_idup".into(),
            Some(name) => format!("MPI_I{}", name.to_lowercase()),
            None => self.name().into(),
        }
    }

    /// The standard's name, without v, w and I.
    pub fn name(self) -> &'static str {
        ALL[self as usize].1
    }
}

/// How mpi4py passes the data of a collective call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
enum Passes {
    /// As an array, `Bcast`.
    Arrays = 1,
    /// As a pickled object, `bcast`, for which it makes two calls of MPI.
    Objects = 2,
}

impl Passes {
    /// How the program's call of this number passes it; None if that is not known.
    fn of(what: Collective, site: u32) -> Option<Passes> {
        let (Bcast | Gather | Scatter | Allgather | Alltoall | NeighborAllgather
        | NeighborAlltoall) = what
        else {
            return None;
        };
        let (_, method) = sites::get(site)?.call.rsplit_once('.')?;
        let name = what.name().strip_prefix("MPI_")?;
        let is_it = method.get(..name.len())?.eq_ignore_ascii_case(name);
        let is_lower = method.as_bytes()[0].is_ascii_lowercase();
        is_it.then_some(if is_lower { Passes::Objects } else { Passes::Arrays })
    }
}

/// Whether two values differ, of which 0 stands for an unknown one.
fn differ(one: u32, two: u32) -> bool {
    one != two && one != 0 && two != 0
}

/// The root and the predefined operation of a collective call, and whether mpi4py passes objects. 0
/// stands for what the call does not have, or what cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Alike(u32);

impl Alike {
    /// The bits that are used.
    pub const BITS: u32 = 17;
    const OP_BITS: u32 = 4;
    const PASSES_BITS: u32 = 2;
    const ROOT_AT: u32 = Self::OP_BITS + Self::PASSES_BITS;
    /// The bits that tell how the data is passed.
    pub const PASSES: u32 = ((1 << Self::PASSES_BITS) - 1) << Self::OP_BITS;

    /// The root of a process of an intercommunicator that has no part in the call.
    pub const NO_ROOT: u32 = (1 << (Self::BITS - Self::ROOT_AT)) - 1;

    /// `root`: as `Comm::root_for_all` has it.
    pub fn new(root: Option<usize>, op: Option<&Op>) -> Alike {
        // A larger root does not fit.
        let root = root.map_or(0, |root| root + 1);
        let root = if root < Self::NO_ROOT as usize { root as u32 } else { 0 };
        Alike(root << Self::ROOT_AT | op.map_or(0, Op::number))
    }

    /// Of a process that gives MPI_PROC_NULL as the root.
    pub fn without_part() -> Alike {
        Alike(Self::NO_ROOT << Self::ROOT_AT)
    }

    /// The same with how mpi4py passes the data of this call of the program.
    pub fn passed(self, what: Collective, site: u32) -> Alike {
        let passes = Passes::of(what, site).map_or(0, |passes| passes as u32);
        Alike(self.0 | passes << Self::OP_BITS)
    }

    /// As a number, and back; any further bits are ignored.
    pub fn word(self) -> u32 {
        self.0
    }

    pub fn of(word: u32) -> Alike {
        Alike(word & ((1 << Self::BITS) - 1))
    }

    /// The root plus one.
    pub fn root(self) -> u32 {
        self.0 >> Self::ROOT_AT
    }

    pub fn op(self) -> u32 {
        self.0 & ((1 << Self::OP_BITS) - 1)
    }

    fn passes(self) -> u32 {
        (self.0 & Self::PASSES) >> Self::OP_BITS
    }

    /// True if mpi4py passes pickled objects.
    pub fn are_objects(self) -> bool {
        self.passes() == Passes::Objects as u32
    }

    /// True if one passes objects, and the other arrays.
    pub fn passes_otherwise(self, other: Alike) -> bool {
        differ(self.passes(), other.passes())
    }

    /// True if two calls cannot be the same.
    pub fn differs(self, other: Alike) -> bool {
        let have_part = self.root() != Self::NO_ROOT && other.root() != Self::NO_ROOT;
        have_part && differ(self.root(), other.root())
            || differ(self.op(), other.op())
            || self.passes_otherwise(other)
    }
}

/// The number of a call in the program and `Alike`, in the 28 bits that a message has for them.
pub fn mark(site: u32, alike: Alike) -> u32 {
    site << Alike::BITS | alike.word()
}

/// The number of the call in the program, from a message's mark.
pub fn site_of(mark: u32) -> u32 {
    mark >> Alike::BITS
}
