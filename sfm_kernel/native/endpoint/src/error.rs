//! Errors. Each text says what happened, to whom, and what to do next.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use sfm_native::shm::ShmError;

/// The kinds of errors; as Python's classes in `sfm_kernel/errors.py`, as far as those exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An argument makes no sense.
    Argument,
    /// No matching message is queued.
    WouldBlock,
    /// No message came in time.
    TimedOut,
    /// A process that the call depends on has died or left.
    PeerLost,
    /// The peer lives, but could not read what was sent.
    MessagesLost,
    MessageTooLarge,
    /// The endpoint was closed, or belongs to the parent of a forked process.
    Closed,
    /// An observer has proved that nothing can end the call.
    Deadlock,
    /// The program has asked the call to end.
    Interrupted,
    SegmentFull,
    /// Bytes of a sender made no sense.
    Packet,
    UnknownName,
    BadName,
    NameInUse,
    WorldFull,
    WorldGone,
    WorldAccess,
    /// Anything else about a world.
    World,
    /// The system refused something.
    System,
}

impl Kind {
    /// Those of worlds and directories, with Python's names, which directory servers use, too.
    const NAMES: [(Kind, &str); 7] = [
        (Kind::BadName, "BadName"),
        (Kind::NameInUse, "NameInUse"),
        (Kind::WorldFull, "WorldFull"),
        (Kind::WorldGone, "WorldGone"),
        (Kind::WorldAccess, "WorldAccess"),
        (Kind::World, "WorldError"),
        (Kind::Closed, "EndpointClosed"),
    ];

    /// The kind of worlds' errors with this name; that of all of them if there is none.
    pub fn named(name: &str) -> Kind {
        let found = Kind::NAMES.into_iter().find(|(_, its)| *its == name);
        found.map_or(Kind::World, |(kind, _)| kind)
    }

    /// Its name in Python, if it is one of a world's errors.
    pub fn name(self) -> Option<&'static str> {
        Kind::NAMES.into_iter().find(|(kind, _)| *kind == self).map(|(_, name)| name)
    }
}

#[derive(Clone, Debug)]
pub struct Error {
    pub kind: Kind,
    pub text: String,
    pub detail: Detail,
}

/// What a program may want to know of an error beside its text.
#[derive(Clone, Debug, Default)]
pub enum Detail {
    #[default]
    None,
    /// The system's number for it.
    Errno(i32),
    Full(Box<Room>),
}

/// What is missing for a file: bytes needed, free, and in all, in this folder.
#[derive(Clone, Debug)]
pub struct Room {
    pub needed: u64,
    pub free: u64,
    pub limit: u64,
    pub folder: PathBuf,
}

pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl Error {
    pub fn new(kind: Kind, text: impl Into<String>) -> Error {
        Error { kind, text: text.into(), detail: Detail::None }
    }

    /// `peer`: as observers show it, a name in quotes or a rank.
    pub fn peer_lost(peer: &str, detail: &str) -> Error {
        let blank = if detail.is_empty() { "" } else { " " };
        let text = format!(
            "process {peer} has ended{blank}{detail}. What it sent before is still received; restart \
             it, and it takes its old name and rank"
        );
        Error::new(Kind::PeerLost, text)
    }

    pub fn messages_lost(peer: &str) -> Error {
        let text = format!(
            "process {peer} could not read what this one has sent it, and has lost what it had not \
             received: the memory between them was damaged. What is sent from now on arrives"
        );
        Error::new(Kind::MessagesLost, text)
    }

    pub fn too_large(peer: &str, bytes: usize) -> Error {
        let text = format!(
            "process {peer} has no memory for a message of {bytes} bytes: send it in smaller \
             pieces, or give that process more memory"
        );
        Error::new(Kind::MessageTooLarge, text)
    }

    pub fn closed() -> Error {
        let text = "this endpoint is closed, or belongs to the process that has forked this one: \
                    join the world again";
        Error::new(Kind::Closed, text)
    }

    pub fn full(needed: u64, free: u64, limit: u64, folder: &Path) -> Error {
        let text = format!(
            "{} has {free} of {limit} bytes free and {needed} are needed. Run `python -m \
             sfm_kernel clean`, enlarge it (docker run --shm-size=1g), or set SFM_DIR to a folder \
             with more room",
            folder.display()
        );
        let detail =
            Detail::Full(Box::new(Room { needed, free, limit, folder: folder.to_owned() }));
        Error { detail, ..Error::new(Kind::SegmentFull, text) }
    }

    /// An error of the system. One that a limit has caused names the limit, as `limit_named` does in
    /// `sfm_kernel/errors.py`.
    pub fn system(detail: &str, error: &io::Error) -> Error {
        let advice = match error.raw_os_error() {
            Some(libc::EMFILE) => {
                ": raise the limit (`ulimit -n 4096`) in the shell that starts it"
            }
            Some(libc::EFBIG) => {
                ": raise the limit (`ulimit -f unlimited`) in the shell that starts it"
            }
            _ => "",
        };
        let number = error.raw_os_error().map_or(Detail::None, Detail::Errno);
        let text = format!("{detail}: {}{advice}", reason(error));
        Error { detail: number, ..Error::new(Kind::System, text) }
    }

    /// An error of the system, or of a file in shared memory.
    pub fn shared(failure: ShmError, folder: &Path) -> Error {
        match failure {
            ShmError::Full { needed, free, limit } => Error::full(needed, free, limit, folder),
            ShmError::Io(error) => Error::system(&folder.display().to_string(), &error),
            ShmError::Invalid(why) => Error::new(Kind::World, why),
        }
    }
}

/// What the system says of an error, without its number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => text.trim_end_matches(&format!(" (os error {number})")).to_owned(),
        None => text,
    }
}
