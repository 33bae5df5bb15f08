//! The directory of a world on one machine: a table in a file, no server.
//!
//! Readers need no lock, because the file is replaced atomically. Writers take the folder's lock; a
//! writer that is killed at any instruction leaves the old table or the new one.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sfm_native::sync::lock;

use super::cleaning::{remove_unused, sweep};
use super::folder::{is_alive, Folder, Stamp};
use super::member::{JoinRequest, Member};
use super::table::Table;
use super::{Directory, Seen};
use crate::error::{Error, Kind, Result};
use crate::host::Signals;
use crate::random;

pub const MEMBERS: &str = "members.json";
const KEY: &str = "key";
const KEY_BYTES: usize = 32;

/// Cost: opening 0.1 ms, `join` and `leave` 0.2–1.5 ms, `seen` 0.1 ms, `alive` 10 µs.
pub struct Local {
    folder: Folder,
    key: Vec<u8>,
    /// The uids in the table of this stamp.
    listed: Mutex<(Option<Stamp>, HashSet<String>)>,
}

impl Local {
    /// Open the world's directory. `create`: make it, if it does not exist; otherwise it fails then.
    pub fn open(world: &str, create: bool, signals: Signals<'_>) -> Result<Local> {
        let folder = Folder::open(world, create, signals)?;
        let key = read_key(&folder, create, signals)?;
        Ok(Local { folder, key, listed: Mutex::default() })
    }

    /// The path of the file that lists the members.
    pub fn table_path(&self) -> PathBuf {
        self.folder.path.join(MEMBERS)
    }

    fn table(&self) -> Result<Table> {
        self.folder.read(MEMBERS)?.map_or_else(|| Ok(Table::default()), |text| Table::loads(&text))
    }

    /// Whether the table has this uid; read again only if it was replaced, because waiting calls ask
    /// often.
    fn lists(&self, uid: &str) -> bool {
        let Some(stamp) = self.folder.stamp(MEMBERS) else { return false };
        let mut listed = lock(&self.listed);
        if listed.0 != Some(stamp) {
            match self.table() {
                // The stamp is at most as new as the table: a newer table is noticed next time.
                Ok(table) => {
                    *listed =
                        (Some(stamp), table.members.into_iter().map(|member| member.uid).collect())
                }
                Err(failure) if failure.kind == Kind::System => {} // no descriptor is left
                Err(_) => return false,
            }
        }
        listed.1.contains(uid)
    }
}

fn read_key(folder: &Folder, create: bool, signals: Signals<'_>) -> Result<Vec<u8>> {
    let mut key = folder.read(KEY)?;
    if key.is_none() && create {
        let locked = folder.locked(signals)?;
        key = folder.read(KEY)?; // another process may have been faster
        if key.is_none() {
            let failed = |error| Error::system("the system gives no random numbers", &error);
            let halves = [random().map_err(failed)?, random().map_err(failed)?];
            let fresh = halves.map(u128::to_le_bytes).concat();
            folder.write(KEY, &fresh, &locked)?;
            key = Some(fresh);
        }
    }
    let key = key.ok_or_else(|| folder.missing())?;
    if key.len() != KEY_BYTES {
        let (path, length) = (folder.path.join(KEY), key.len());
        let text = format!("{} is damaged: {length} bytes, not {KEY_BYTES}", path.display());
        return Err(Error::new(Kind::WorldAccess, text));
    }
    Ok(key)
}

impl Directory for Local {
    fn world(&self) -> &str {
        &self.folder.world
    }

    fn folder(&self) -> &Path {
        &self.folder.path
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    /// Also removes the files of dead processes.
    fn join(&self, request: &JoinRequest, signals: Signals<'_>) -> Result<Member> {
        request.check()?;
        let locked = self.folder.locked(signals)?;
        let mut table = self.table()?;
        let member = table.admit(request, |member| is_alive(Path::new(&member.segment)))?;
        self.folder.write(MEMBERS, &table.dumps(), &locked)?;
        // Dead processes in the table keep their segments: observers show how they ended.
        sweep(&self.folder.path, &table.members.into_iter().map(|member| member.uid).collect());
        Ok(member)
    }

    fn leave(&self, uid: &str, signals: Signals<'_>) -> Result<()> {
        let removed = self.folder.locked(signals).and_then(|locked| {
            let mut table = self.table()?;
            match table.remove(uid) {
                true => self.folder.write(MEMBERS, &table.dumps(), &locked),
                false => Ok(()),
            }
        });
        match removed {
            Err(failure) if matches!(failure.kind, Kind::WorldGone | Kind::Closed) => Ok(()),
            removed => removed,
        }
    }

    fn stamp(&self) -> Option<Stamp> {
        self.folder.stamp(MEMBERS)
    }

    fn seen(&self, _fresh: bool, _signals: Signals<'_>) -> Result<Seen> {
        // The stamp is older than the table or as old: a newer one is noticed next time.
        let stamp = self.stamp();
        let Table { members, departed, .. } = self.table()?;
        Ok(Seen { stamp, members, departed })
    }

    /// Whether it holds its segment's lock and has not left.
    fn alive(&self, member: &Member, _signals: Signals<'_>) -> bool {
        is_alive(Path::new(&member.segment)) && self.lists(&member.uid)
    }

    /// The last process to close a world that all have left removes it. A world whose processes died
    /// stays until a process joins a world, or an observer asks which there are: it can be seen how
    /// they ended.
    fn close(&self) {
        if self.folder.close() {
            remove_unused(&self.folder.path, true);
        }
    }
}
