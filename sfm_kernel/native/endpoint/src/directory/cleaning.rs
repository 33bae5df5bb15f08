//! Removes the files of dead processes, and never those of living ones.
//!
//! A process is dead when no process holds the lock of its segment. A segment appears under its name
//! already locked, so an unlocked one never belongs to a process that is about to join.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::folder::{check_private, check_world, is_alive, is_world, Folder, Locked};
use super::local::MEMBERS;
use super::member::is_hexadecimal;
use super::roots::root;
use super::table::Table;
use crate::error::Result;
use crate::host::Signals;

/// Age of a file that still has its temporary name from which on it is a dead process's.
const UNFINISHED: Duration = Duration::from_secs(60);

/// The suffix of the folder for a world's sites, after the world's name.
pub const SITES: &str = ".sites";

/// The other files of a world's folder than those of its processes, in the order in which they are
/// removed. The key is a secret, and goes before everything. The lock is last: if this process is
/// killed before, `clean` still recognises the world.
const TABLE_FILES: [&str; 6] = ["key", "key.new", "members.json.new", MEMBERS, "relay", LOCK];
const LOCK: &str = "lock";

/// The worlds of this user on this machine in which a process lives, by name. Those whose last
/// process has died are removed.
pub fn worlds() -> Result<Vec<String>> {
    remove_dead()?;
    let top = root()?;
    Ok(folders()?.into_iter().filter(|world| is_inhabited(&top.join(world))).collect())
}

/// Remove the worlds whose last process has died: their keys and messages are nobody's.
///
/// A world that its owner has made for others, as `run` does, stays for as long as the owner lives,
/// which looks at how they ended and then removes it.
pub fn remove_dead() -> Result<()> {
    let top = root()?;
    for world in folders()? {
        let path = top.join(&world);
        if path.join(LOCK).exists() && !owner_of(&world).is_some_and(runs) {
            remove_unused(&path, false);
        }
    }
    Ok(())
}

/// The process that has made a world for others, by the world's name: `kind-PID-…`.
fn owner_of(world: &str) -> Option<libc::pid_t> {
    let (kind, rest) = world.split_once('-')?;
    let (pid, rest) = rest.strip_prefix("alone-").unwrap_or(rest).split_once('-')?;
    let is_made = !kind.is_empty() && kind.bytes().all(|c| c.is_ascii_lowercase());
    let is_number = pid.bytes().all(|c| c.is_ascii_digit());
    let is_hexadecimal = matches!(rest.bytes().next(), Some(b'0'..=b'9' | b'a'..=b'f'));
    (is_made && is_number && is_hexadecimal).then(|| pid.parse().ok()).flatten()
}

/// Whether there is such a process; it may be another one, with the same id.
fn runs(pid: libc::pid_t) -> bool {
    // SAFETY: no preconditions; signal 0 is none.
    let sent = unsafe { libc::kill(pid, 0) } == 0;
    sent || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Remove the files of dead processes; the paths that were removed.
///
/// Worlds in which no process lives are removed completely; from the others, the files of dead
/// processes and their entries in the table. Safe while processes join or leave.
pub fn clean(signals: Signals<'_>) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for world in folders()? {
        removed.extend(clean_world(&world, signals)?);
    }
    for name in folders()? {
        if let Some(world) = name.strip_suffix(SITES) {
            removed.extend(remove_sites(world)?);
        }
    }
    Ok(removed)
}

/// Remove a world in which no process lives; whether it no longer exists.
///
/// If a process lives in the world, or has it open, only the files of dead processes are removed.
/// The caller closes its endpoint and directory first.
pub fn remove_world(world: &str, signals: Signals<'_>) -> Result<bool> {
    check_world(world)?;
    if folders()?.iter().any(|known| known == world) {
        clean_world(world, signals)?;
    }
    Ok(fs::symlink_metadata(root()?.join(world)).is_err())
}

/// The folder for those sites of a world that share this machine; each has a folder in it.
pub fn sites_folder(world: &str) -> Result<PathBuf> {
    check_world(world)?;
    Ok(root()?.join(format!("{world}{SITES}")))
}

/// Remove the sites of a world in which no process lives; the paths that were removed.
pub fn remove_sites(world: &str) -> Result<Vec<PathBuf>> {
    let top = sites_folder(world)?;
    let mut removed = Vec::new();
    if check_private(&top).is_ok() {
        for site in names(&top) {
            removed.extend(remove_unused(&top.join(&site).join(world), false).unwrap_or_default());
            let _ = fs::remove_dir(top.join(site)); // fails if a process lives there
        }
        let _ = fs::remove_dir(top);
    }
    Ok(removed)
}

/// The names of a folder's files.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

/// The folders of the root that may be worlds.
fn folders() -> Result<Vec<String>> {
    let top = root()?;
    if fs::symlink_metadata(&top).is_err() {
        return Ok(Vec::new());
    }
    check_private(&top)?;
    let mut found: Vec<_> = names(&top).into_iter().filter(|name| is_world(name)).collect();
    found.sort();
    Ok(found)
}

/// Whether a process of the world lives on this machine.
pub fn is_inhabited(folder: &Path) -> bool {
    names(folder).iter().any(|file| file.ends_with(".seg") && is_alive(&folder.join(file)))
}

/// A file that is named after a process, `uid.kind`, or after two, `uid-receiver.kind`.
struct Owned<'a> {
    uid: &'a str,
    receiver: Option<&'a str>,
    kind: &'a str,
}

impl Owned<'_> {
    fn of(file: &str) -> Option<Owned<'_>> {
        let (owners, kind) = file.split_once('.')?;
        let (uid, receiver) = match owners.split_once('-') {
            Some((uid, receiver)) => (uid, Some(receiver)),
            None => (owners, None),
        };
        let is_word = !kind.is_empty() && kind.chars().all(|c| c.is_alphanumeric() || c == '_');
        let are_uids =
            [Some(uid), receiver].into_iter().flatten().all(|uid| is_hexadecimal(uid, 32));
        (is_word && are_uids).then_some(Owned { uid, receiver, kind })
    }
}

/// Remove the files of dead processes, except the segments of the uids to keep; the paths that were
/// removed. Only under the folder's lock. A ring is removed with its receiver: a living receiver
/// still reads what a dead sender wrote.
pub fn sweep(folder: &Path, keep: &HashSet<String>) -> Vec<PathBuf> {
    let mut known: HashMap<String, bool> = HashMap::new();
    let mut lives = |uid: &str| {
        *known.entry(uid.to_owned()).or_insert_with(|| {
            let guest = folder.join(format!("{uid}.guest")); // a link to a segment elsewhere
            let segment = folder.join(format!("{uid}.seg"));
            is_alive(if guest.exists() { &guest } else { &segment })
        })
    };
    let mut is_orphaned = |owned: Owned<'_>, path: &Path| match (owned.kind, owned.receiver) {
        ("tree", _) => !lives(owned.uid), // made for a group; named after its first member
        ("new", Some(_)) => !lives(owned.uid),
        ("new", None) => is_old(path), // not yet locked
        (kind, receiver) => {
            let owner = receiver.unwrap_or(owned.uid);
            !lives(owner) && (kind == "ring" || !keep.contains(owner))
        }
    };
    let mut removed = Vec::new();
    for file in names(folder) {
        let path = folder.join(&file);
        let is_nobodys = Owned::of(&file).is_some_and(|owned| is_orphaned(owned, &path));
        if is_nobodys && fs::remove_file(&path).is_ok() {
            removed.push(path); // otherwise its owner was faster
        }
    }
    removed
}

fn is_old(path: &Path) -> bool {
    let age = fs::metadata(path).and_then(|status| status.modified()).map(|at| at.elapsed());
    age.is_ok_and(|age| age.is_ok_and(|age| age > UNFINISHED))
}

fn clean_world(world: &str, signals: Signals<'_>) -> Result<Vec<PathBuf>> {
    let path = root()?.join(world);
    let files = names(&path);
    if !path.is_dir() || (!files.is_empty() && !files.iter().any(|file| file == LOCK)) {
        return Ok(Vec::new()); // no world: SFM_DIR may hold other things
    }
    if let Some(removed) = remove_unused(&path, false) {
        return Ok(removed);
    }
    // A process uses it.
    let mut removed = Vec::new();
    if let Ok(folder) = Folder::open(world, false, signals) {
        if let Ok(locked) = folder.locked(signals) {
            removed = sweep(&path, &HashSet::new());
            forget_dead(&folder, &locked)?;
        }
    }
    // A process that left meanwhile may have found the folder open, by this one.
    removed.extend(remove_unused(&path, false).unwrap_or_default());
    Ok(removed)
}

/// Remove the dead from a world's table.
fn forget_dead(folder: &Folder, locked: &Locked) -> Result<()> {
    let Some(content) = folder.read(MEMBERS)? else {
        return Ok(()); // a directory server keeps this world's table
    };
    let mut table = Table::loads(&content)?;
    let dead = table.members.iter().filter(|member| !is_alive(Path::new(&member.segment)));
    for uid in dead.map(|member| member.uid.clone()).collect::<Vec<_>>() {
        table.remove(&uid);
    }
    folder.write(MEMBERS, &table.dumps(), locked)
}

/// Remove a world's folder; None, and nothing is removed, while a process has it open.
///
/// `only_if_left`: also None unless processes have joined, and all of them have left.
pub fn remove_unused(path: &Path, only_if_left: bool) -> Option<Vec<PathBuf>> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let (Ok(()), Ok(folder)) = (check_private(path), opened) else { return Some(Vec::new()) };
    // SAFETY: a descriptor of ours.
    if unsafe { libc::flock(folder.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0
        || is_inhabited(path)
        || (only_if_left && !is_left(path))
    {
        return None;
    }
    let files = names(path);
    let [key, others @ ..] = TABLE_FILES;
    let of_processes = files.iter().map(String::as_str).filter(|file| Owned::of(file).is_some());
    let ours = [key].into_iter().chain(of_processes).chain(others);
    let removed = ours
        .filter(|ours| files.iter().any(|file| file == ours))
        .try_for_each(|file| fs::remove_file(path.join(file)))
        .and_then(|()| fs::remove_dir(path));
    // It fails if another process was faster, or if the user has put another file there.
    Some(removed.map_or(Vec::new(), |()| vec![path.to_owned()]))
}

/// Whether processes have joined, and all have left.
fn is_left(path: &Path) -> bool {
    fs::read(path.join(MEMBERS))
        .is_ok_and(|text| Table::loads(&text).is_ok_and(|table| table.members.is_empty()))
}
