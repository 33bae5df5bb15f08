//! The directory: the members of a world, their addresses, and which of them have died.
//!
//! ```text
//! member    its entries, and a process's request for one
//! site      the names of sites
//! table     the members, and the rank and name of a newcomer
//! roots     the folder of a user's worlds on this machine
//! folder    the folders of worlds, and their locks
//! local     the directory in a folder
//! cleaning  removes the files of dead processes
//! client    asks the directory server of a world of several machines
//! remote    the directory that such a server keeps
//! ```

pub mod cleaning;
pub mod client;
pub mod folder;
pub mod local;
pub mod member;
pub mod remote;
pub mod roots;
pub mod site;
pub mod table;

use std::collections::HashMap;
use std::path::Path;

pub use self::folder::{is_alive, Stamp};
pub use self::local::Local;
pub use self::member::{Gateway, JoinRequest, Member};
pub use self::remote::{Remote, Watcher};
use crate::error::Result;
use crate::host::Signals;

/// The list of a world's members.
pub trait Directory: Send + Sync {
    fn world(&self) -> &str;

    /// The world's folder on this machine (0700), where segments and rings live.
    fn folder(&self) -> &Path;

    /// The world's secret, from which all other keys are derived.
    fn key(&self) -> &[u8];

    /// Enter a process; the entry, with its slot, rank and name: see `Table::admit`.
    fn join(&self, request: &JoinRequest, signals: Signals<'_>) -> Result<Member>;

    /// Remove the entry of this process, or of one that has died; harmless if it or the world no
    /// longer exists.
    fn leave(&self, uid: &str, signals: Signals<'_>) -> Result<()>;

    /// What distinguishes the present entries from earlier ones; None if there are none. Cheap.
    fn stamp(&self) -> Option<Stamp>;

    /// The entries. `fresh`: as of now; otherwise those that this client knows, where a process that
    /// has just joined may be missing.
    fn seen(&self, fresh: bool, signals: Signals<'_>) -> Result<Seen>;

    /// Whether this incarnation still runs and has not left; cheap enough for every 100 ms.
    /// What `signals` returns ends the question, not the caller.
    fn alive(&self, member: &Member, signals: Signals<'_>) -> bool;

    /// The reason why a process is no longer in the world, or this one, for an error; empty if it
    /// left or died by itself.
    fn why_departed(&self, _uid: &str) -> &'static str {
        ""
    }

    /// Call `changed` now, and whenever the gateways change or a member joins, leaves or dies. Does
    /// nothing in a world of one machine, which has no gateways, and whose members read the table
    /// themselves.
    fn watch(&self, _changed: Watcher) {}

    /// Release the client's resources. Does not leave. Idempotent.
    fn close(&self);
}

/// The entries of a directory.
pub struct Seen {
    pub stamp: Option<Stamp>,
    /// By slot, including dead members that nobody has replaced.
    pub members: Vec<Member>,
    /// Members that left lately, the last of each name; without the dead that were replaced.
    pub departed: Vec<Member>,
}

/// What a directory has seen since it reported last.
pub struct Changes {
    /// The world's, as they are now.
    pub gateways: Vec<Gateway>,
    /// All entries, as they are now.
    pub members: Vec<Member>,
    /// Uids of members that have left or died meanwhile, and why: see `Directory::why_departed`.
    pub departed: HashMap<String, String>,
}

/// The name of this machine.
pub fn host() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the buffer is ours; one byte is left for the end of the text.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&name[..end]).into_owned()
}
