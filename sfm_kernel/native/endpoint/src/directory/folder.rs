//! A world's folder, held open: the rules of `sfm_kernel/directory/folders.py`.
//!
//! Each user of the folder holds a shared lock on it, so that it is never removed while it is used;
//! its table changes under an exclusive lock on the file `lock`. Both are flocks: the kernel drops
//! them with the process.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sfm_native::shm::room;

use super::roots::{root, unusable, user};
use crate::error::{Error, Kind, Result};

/// Time to wait for a lock that others hold for about a millisecond.
const PATIENCE: Duration = Duration::from_secs(10);

/// Distinguishes one version of a file from the next.
pub type Stamp = (u64, i64, i64);

pub struct Folder {
    pub world: String,
    pub path: PathBuf,
    /// Locked as long as it is open.
    file: File,
}

/// The right to change the world's table.
pub struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Not only closed: a child that was forked meanwhile has a copy of the descriptor. SAFETY:
        // a descriptor of ours.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}

impl Folder {
    /// Open the world's folder; make it if it does not exist.
    pub fn open(world: &str) -> Result<Folder> {
        check_world(world)?;
        let mut top = root()?;
        for _ in 0..2 {
            make(&top).map_err(|error| unusable(&top, &error))?;
            top = root()?; // another folder, if another process has made that one first
        }
        check_private(&top)?;
        remove_dead(&top);
        let path = top.join(world);
        loop {
            make(&path).map_err(|error| failed(&path, &error))?;
            let opened = check_private(&path).and_then(|()| {
                let file = File::options().read(true).custom_flags(libc::O_DIRECTORY).open(&path);
                file.map_err(|error| failed(&path, &error))
            });
            let file = match opened {
                Ok(file) => file,
                // Another process has removed it in between.
                Err(_) if fs::symlink_metadata(&path).is_err_and(is_missing) => continue,
                Err(error) => return Err(error),
            };
            lock(&file, libc::LOCK_SH, &path)?;
            if is_same(&file, &path) {
                let folder = Folder { world: world.to_owned(), path, file };
                folder.lock_file()?; // the mark by which `clean` knows a world
                return Ok(folder);
            }
        }
    }

    fn lock_file(&self) -> Result<File> {
        let path = self.path.join("lock");
        private().append(true).create(true).open(&path).map_err(|error| failed(&path, &error))
    }

    /// Fail if the folder was removed.
    fn check(&self) -> Result<()> {
        if is_same(&self.file, &self.path) {
            return Ok(());
        }
        let (world, path) = (&self.world, self.path.display());
        let text =
            format!("world {world:?} does not exist any more (no {path}). Start or join it first");
        Err(Error::new(Kind::WorldGone, text))
    }

    /// The exclusive right to change the world's table.
    pub fn locked(&self) -> Result<Locked> {
        self.check()?;
        let file = self.lock_file()?;
        lock(&file, libc::LOCK_EX, &self.path.join("lock"))?;
        Ok(Locked(file))
    }

    /// The content of a file of the folder; None if there is none.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.path.join(name);
        let content = match private().read(true).open(&path) {
            Ok(mut file) => {
                let status = file.metadata().map_err(|error| failed(&path, &error))?;
                check_mode(&status, &path)?;
                let mut content = Vec::new();
                file.read_to_end(&mut content).map_err(|error| failed(&path, &error))?;
                Some(content)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&path, &error)),
        };
        self.check()?;
        Ok(content)
    }

    /// A stamp that changes when the file is replaced; None if there is none.
    pub fn stamp(&self, name: &str) -> Option<Stamp> {
        let status = fs::symlink_metadata(self.path.join(name)).ok()?;
        Some((status.ino(), status.mtime(), status.mtime_nsec()))
    }

    /// Replace a file's whole content.
    pub fn write(&self, name: &str, content: &[u8], _by_right: &Locked) -> Result<()> {
        let (path, fresh) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let written = private()
            .write(true)
            .create(true)
            .truncate(true) // a dead writer's leftover
            .open(&fresh)
            .and_then(|mut file| file.write_all(content))
            .and_then(|()| fs::rename(&fresh, &path));
        written.map_err(|error| match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                let (free, limit) = room(&self.path).unwrap_or_default();
                Error::full(content.len() as u64, free, limit, &self.path)
            }
            _ => failed(&path, &error),
        })
    }

    /// Release the folder. The last process to release a world that all have left removes it; a
    /// world whose processes died stays until the next process joins a world: one can still see how
    /// they ended.
    pub fn close(self, is_empty_table: impl Fn(&[u8]) -> bool) {
        let Folder { path, file, .. } = self;
        drop(file);
        let _ = remove_unused(&path, &is_empty_table);
    }
}

/// Remove the worlds whose last process has died, as `remove_dead` does in
/// `sfm_kernel/directory/cleaning.py`, which gives the reasons.
fn remove_dead(top: &Path) {
    let Ok(entries) = fs::read_dir(top) else { return };
    for entry in entries.flatten() {
        let owner = entry.file_name().to_str().and_then(owner_of);
        if !owner.is_some_and(runs) {
            let _ = remove_unused(&entry.path(), &|_| true); // another process may be faster
        }
    }
}

/// The process that has made a world for others, by the world's name: `kind-PID-…`.
fn owner_of(world: &str) -> Option<libc::pid_t> {
    let (kind, rest) = world.split_once('-')?;
    let (pid, rest) = rest.strip_prefix("alone-").unwrap_or(rest).split_once('-')?;
    let is_made = !kind.is_empty() && kind.bytes().all(|c| c.is_ascii_lowercase());
    let is_number = pid.bytes().all(|c| c.is_ascii_digit());
    let is_hexadecimal = matches!(rest.bytes().next(), Some(b'0'..=b'9' | b'a'..=b'f'));
    if is_made && is_number && is_hexadecimal {
        pid.parse().ok()
    } else {
        None
    }
}

fn runs(pid: libc::pid_t) -> bool {
    // SAFETY: no preconditions; signal 0 is none.
    let sent = unsafe { libc::kill(pid, 0) } == 0;
    sent || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// The other files of a world's folder than those of its processes. The key, a secret, goes first,
/// and the mark of a world last.
const TABLE_FILES: [&str; 6] =
    ["key", "key.new", "members.json.new", "members.json", "relay", "lock"];

fn remove_unused(path: &Path, is_empty_table: &impl Fn(&[u8]) -> bool) -> io::Result<()> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // SAFETY: a descriptor of ours.
    if unsafe { libc::flock(folder.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        return Ok(()); // another process uses it
    }
    let names: Vec<_> = fs::read_dir(path)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let lives = |name: &String| name.ends_with(".seg") && is_alive(&path.join(name));
    if names.iter().any(lives)
        || !fs::read(path.join("members.json")).is_ok_and(|table| is_empty_table(&table))
    {
        return Ok(());
    }
    let [key, others @ ..] = TABLE_FILES;
    let of_processes = names.iter().map(String::as_str).filter(|name| is_of_process(name));
    for name in [key].into_iter().chain(of_processes).chain(others) {
        if names.iter().any(|known| known == name) {
            fs::remove_file(path.join(name))?;
        }
    }
    fs::remove_dir(path)
}

/// Whether a file is named after a process: `uid.kind`, or `uid-uid.kind` between two.
fn is_of_process(name: &str) -> bool {
    let is_uid = |text: &str| {
        text.len() == 32 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    };
    let Some((owners, kind)) = name.split_once('.') else { return false };
    let is_word = kind.chars().all(|c| c.is_alphanumeric() || c == '_');
    !kind.is_empty() && is_word && owners.splitn(2, '-').all(is_uid)
}

/// Whether the process that made the segment runs: it holds the file's lock. A missing segment
/// belongs to a process that left. A segment that cannot be opened (no descriptor is left) proves
/// nothing, and its owner counts as alive.
pub fn is_alive(segment: &Path) -> bool {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    match OpenOptions::new().read(true).custom_flags(flags).open(segment) {
        Err(error) => {
            !matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP))
        }
        // Shared, so that two processes which ask at once do not take each other for the owner.
        // SAFETY: a descriptor of ours.
        Ok(file) => unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) != 0 },
    }
}

fn check_world(world: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=64).contains(&world.len()) && world.chars().all(fits) && !world.starts_with('.') {
        return Ok(());
    }
    let rule = "use 1 to 64 letters, digits, '.', '_' or '-', not '.' first";
    Err(Error::new(Kind::BadName, format!("world name {world:?}: {rule}")))
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options
}

fn is_missing(error: io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::system(&path.display().to_string(), error)
}

fn make(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Check that the folder is the user's own and closed to others.
fn check_private(path: &Path) -> Result<()> {
    let status = fs::symlink_metadata(path).map_err(|error| failed(path, &error))?;
    if !status.is_dir() {
        let text = format!("{} must be a folder, not a link or a file. Remove it", path.display());
        return Err(Error::new(Kind::WorldAccess, text));
    }
    check_mode(&status, path)
}

fn check_mode(status: &Metadata, path: &Path) -> Result<()> {
    let (path, owner, this_user) = (path.display(), status.uid(), user());
    let text = if owner != this_user {
        let next = "Set SFM_DIR to a folder of your own";
        format!("{path} belongs to user {owner}, not to you ({this_user}). {next}")
    } else if status.mode() & 0o077 != 0 {
        format!(
            "{path} is open to other users (mode {:o}). Messages are private: run chmod go= {path}, \
             or set SFM_DIR to another folder",
            status.mode() & 0o7777
        )
    } else {
        return Ok(());
    };
    Err(Error::new(Kind::WorldAccess, text))
}

fn is_same(file: &File, path: &Path) -> bool {
    let (Ok(this), Ok(other)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (this.dev(), this.ino()) == (other.dev(), other.ino())
}

/// Lock; with a time limit, since a holder may have been stopped inside.
fn lock(file: &File, operation: i32, path: &Path) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = Duration::from_micros(500);
    loop {
        // SAFETY: a descriptor that we own.
        if unsafe { libc::flock(file.as_raw_fd(), operation | libc::LOCK_NB) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            ErrorKind::Interrupted => continue,
            ErrorKind::WouldBlock => {}
            _ => return Err(failed(path, &error)),
        }
        if Instant::now() > deadline {
            let (path, seconds) = (path.display(), PATIENCE.as_secs());
            let text = format!(
                "{path} is locked for {seconds} s by a process that does not go on (find it with: \
                 fuser {path}). Continue or kill it"
            );
            return Err(Error::new(Kind::WorldGone, text));
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(20));
    }
}
