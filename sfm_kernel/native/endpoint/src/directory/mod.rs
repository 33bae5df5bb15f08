//! The directory of a world on this machine: a table in a file, as in `sfm_kernel/directory/local.py`.
//!
//! Readers need no lock, because the file is replaced as a whole. Writers take the folder's lock.

mod folder;
mod roots;
mod sha256;
mod site;
mod table;

use std::path::{Path, PathBuf};

use self::folder::Folder;
pub use self::folder::{is_alive, Stamp};
pub use self::table::{JoinRequest, Member};
use self::table::{Newcomer, Table};
use crate::error::{Error, Kind, Result};
use crate::random;

const MEMBERS: &str = "members.json";
const KEY: &str = "key";
const KEY_BYTES: usize = 32;

pub struct Directory {
    folder: Folder,
}

/// The table, and the stamp of the file that it was read from.
pub struct Seen {
    pub stamp: Option<Stamp>,
    pub members: Vec<Member>,
    pub departed: Vec<Member>,
}

impl Directory {
    /// Open the world's directory; make it if it does not exist.
    pub fn open(world: &str) -> Result<Directory> {
        if std::env::var_os("SFM_DIRECTORY").is_some_and(|url| !url.is_empty()) {
            let text = "SFM_DIRECTORY names the directory of a world that spans machines, which \
                        programs in C cannot join yet: unset it, or let a Python process of this \
                        machine talk to the others";
            return Err(Error::new(Kind::World, text));
        }
        let directory = Directory { folder: Folder::open(world)? };
        directory.make_key()?;
        Ok(directory)
    }

    /// Make the world's key, with which its connections between machines would be made.
    fn make_key(&self) -> Result<()> {
        let mut key = self.folder.read(KEY)?;
        if key.is_none() {
            let locked = self.folder.locked()?;
            key = self.folder.read(KEY)?; // another process may have been faster
            if key.is_none() {
                let failed = |error| Error::system("the system gives no random numbers", &error);
                let halves = [random().map_err(failed)?, random().map_err(failed)?];
                return self.folder.write(KEY, &halves.map(u128::to_le_bytes).concat(), &locked);
            }
        }
        match key.map_or(0, |key| key.len()) {
            KEY_BYTES => Ok(()),
            length => {
                let path = self.path().join(KEY);
                let text =
                    format!("{} is damaged: {length} bytes, not {KEY_BYTES}", path.display());
                Err(Error::new(Kind::WorldAccess, text))
            }
        }
    }

    pub fn world(&self) -> &str {
        &self.folder.world
    }

    /// The folder of the world's segments and rings.
    pub fn path(&self) -> &Path {
        &self.folder.path
    }

    pub fn join(&self, uid: u128, segment: PathBuf, request: &JoinRequest) -> Result<Member> {
        let host = host();
        let newcomer = Newcomer {
            uid: format!("{uid:032x}"),
            pid: std::process::id().into(),
            site: site::this_site(&host)?,
            host,
            segment: segment.to_string_lossy().into_owned(),
        };
        let locked = self.folder.locked()?;
        let mut table = self.table()?;
        let member =
            table.admit(newcomer, request, |member| is_alive(Path::new(&member.segment)))?;
        self.folder.write(MEMBERS, &table.dumps(), &locked)?;
        Ok(member)
    }

    /// Remove the entry; harmless if there is none or the world is gone.
    pub fn leave(&self, uid: &str) -> Result<()> {
        let locked = self.folder.locked()?;
        let mut table = self.table()?;
        if table.remove(uid) {
            self.folder.write(MEMBERS, &table.dumps(), &locked)
        } else {
            Ok(())
        }
    }

    /// The stamp of the table's file: cheap, for callers that ask often.
    pub fn stamp(&self) -> Option<Stamp> {
        self.folder.stamp(MEMBERS)
    }

    /// All entries by slot, including the dead that nobody has replaced, and the latest departed
    /// members.
    pub fn seen(&self) -> Result<Seen> {
        // The stamp is older than the table or as old: a newer one is noticed next time.
        let stamp = self.stamp();
        let Table { members, departed, .. } = self.table()?;
        Ok(Seen { stamp, members, departed })
    }

    fn table(&self) -> Result<Table> {
        self.folder.read(MEMBERS)?.map_or_else(|| Ok(Table::default()), |text| Table::loads(&text))
    }

    /// Release the folder, after leaving.
    pub fn close(self) {
        self.folder.close(|table| Table::loads(table).is_ok_and(|table| table.members.is_empty()));
    }
}

fn host() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the buffer is ours; one byte is left for the end of the text.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&name[..end]).into_owned()
}
