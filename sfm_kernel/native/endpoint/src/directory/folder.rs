//! The folders of worlds on this machine, with their segments, rings and tables.
//!
//! `root()/WORLD/` is private to the user. A process that uses it holds a shared lock on the folder
//! itself, so that it is never removed while it is in use; its table changes under an exclusive lock
//! on the file `lock`. Both are flocks: the kernel drops them with the process, so a process killed
//! at any instruction leaves nothing locked. (flock, unlike a POSIX record lock, is not lost when
//! another module of the same process closes the same file.)

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, RawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use sfm_native::shm::room;

use super::roots::{root, unusable, user};
use crate::error::{Error, Kind, Result};
use crate::host::Signals;
use crate::wait_facts::quoted;

/// Time to wait for a lock, which others hold for about a millisecond.
const PATIENCE: Duration = Duration::from_secs(10);

const CLOSED: RawFd = -1;

/// Distinguishes one version of a file from the next.
pub type Stamp = (u64, i64, i64);

/// A world's folder, held open: no process removes it meanwhile.
pub struct Folder {
    pub world: String,
    pub path: PathBuf,
    /// Its descriptor, or `CLOSED`. Not behind a lock, which a forked child might find taken.
    fd: AtomicI32,
}

/// The exclusive right to change the world's table.
pub struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing is not enough: a child that was forked meanwhile has a copy of the descriptor.
        // SAFETY: a descriptor of ours.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}

impl Folder {
    /// Open the world's folder. `create`: make it, if it does not exist; otherwise it fails then.
    pub fn open(world: &str, create: bool, signals: Signals<'_>) -> Result<Folder> {
        check_world(world)?;
        let top = if create { make_root()? } else { root()? };
        let path = top.join(world);
        let folder = Folder { world: world.to_owned(), path, fd: AtomicI32::new(CLOSED) };
        let path = &folder.path;
        if !create && fs::symlink_metadata(path).is_err_and(is_missing) {
            return Err(folder.missing());
        }
        check_private(&top)?;
        loop {
            if create {
                make_folder(path).map_err(|error| failed(path, &error))?;
            }
            let opened = check_private(path).and_then(|()| {
                let file = File::options().read(true).custom_flags(libc::O_DIRECTORY).open(path);
                file.map_err(|error| failed(path, &error))
            });
            let file = match opened {
                Ok(file) => file,
                Err(_) if fs::symlink_metadata(path).is_err_and(is_missing) => {
                    if create {
                        continue; // another process removed it in between
                    }
                    return Err(folder.missing());
                }
                Err(error) => return Err(error),
            };
            lock(&file, libc::LOCK_SH, path, PATIENCE, signals)?;
            if is_same(&file, path) {
                if create {
                    folder.lock_file()?; // the mark by which `clean` knows a world
                }
                folder.fd.store(file.into_raw_fd(), Ordering::Release);
                return Ok(folder);
            }
        }
    }

    fn lock_file(&self) -> Result<File> {
        let path = self.path.join("lock");
        private().append(true).create(true).open(&path).map_err(|error| failed(&path, &error))
    }

    /// The error for a world that does not exist.
    pub fn missing(&self) -> Error {
        let (world, path) = (quoted(&self.world), self.path.display());
        let text = format!(
            "world {world} does not exist on this machine (no {path}). Start or join it first; \
             with a directory server, give its url and key"
        );
        Error::new(Kind::WorldGone, text)
    }

    /// Whether the folder is still the one that was opened.
    pub fn exists(&self) -> bool {
        let fd = self.fileno();
        // SAFETY: a descriptor of ours, which the file does not close; of one that another thread
        // has just closed, the system says so.
        fd != CLOSED && is_same(&ManuallyDrop::new(unsafe { File::from_raw_fd(fd) }), &self.path)
    }

    /// Fail if the folder was removed, or this is closed.
    pub fn check(&self) -> Result<()> {
        if self.exists() {
            Ok(())
        } else if self.fileno() == CLOSED {
            Err(Error::new(Kind::Closed, "this directory was closed"))
        } else {
            Err(self.missing())
        }
    }

    /// The exclusive right to change the world's table.
    pub fn locked(&self, signals: Signals<'_>) -> Result<Locked> {
        self.check()?;
        let file = self.lock_file()?;
        lock(&file, libc::LOCK_EX, &self.path.join("lock"), PATIENCE, signals)?;
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

    /// The descriptor of the folder, which keeps it from being removed; -1 if it is closed.
    pub fn fileno(&self) -> RawFd {
        self.fd.load(Ordering::Acquire)
    }

    /// Close the folder; whether it was open.
    pub fn close(&self) -> bool {
        let fd = self.fd.swap(CLOSED, Ordering::AcqRel);
        if fd != CLOSED {
            // SAFETY: a descriptor of ours, which nobody closes twice.
            drop(unsafe { File::from_raw_fd(fd) });
        }
        fd != CLOSED
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.close();
    }
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

/// Check the name of a world.
pub fn check_world(world: &str) -> Result<()> {
    if is_world(world) {
        return Ok(());
    }
    let rule = "use 1 to 64 letters, digits, '.', '_' or '-', and not '.' first";
    Err(Error::new(Kind::BadName, format!("world name {}: {rule}", quoted(world))))
}

/// Whether a file of the root may be a world, by its name.
pub fn is_world(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=64).contains(&name.len()) && name.chars().all(fits) && !name.starts_with('.')
}

/// Make the folder of this user's worlds.
pub fn make_root() -> Result<PathBuf> {
    let mut top = root()?;
    for _ in 0..2 {
        make_folder(&top).map_err(|error| unusable(&top, &error))?;
        top = root()?; // another one, if another user has made that one first
    }
    Ok(top)
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

/// Make the folder, closed to others, unless it exists.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Check that the folder is the user's own and closed to others.
pub fn check_private(path: &Path) -> Result<()> {
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

/// Take a lock; interruptible, and with a limit: its holder may have been stopped.
fn lock(
    file: &File,
    operation: i32,
    path: &Path,
    patience: Duration,
    signals: Signals<'_>,
) -> Result<()> {
    let deadline = Instant::now() + patience;
    let mut moment = Duration::from_micros(500);
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
            let (path, seconds) = (path.display(), patience.as_secs());
            let text = format!(
                "{path} has been locked for {seconds} s by a process that does not go on (find it \
                 with: fuser {path}). Continue or kill it"
            );
            return Err(Error::new(Kind::WorldGone, text));
        }
        signals()?;
        std::thread::sleep(moment);
        moment = (2 * moment).min(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_whose_holder_does_not_go_on_is_reported() {
        let folder = crate::tests::folder();
        let path = folder.join("lock");
        let open = || private().append(true).create(true).open(&path).unwrap();
        let (held, other) = (open(), open());
        lock(&held, libc::LOCK_EX, &path, PATIENCE, &|| Ok(())).unwrap();
        let late =
            lock(&other, libc::LOCK_EX, &path, Duration::from_millis(20), &|| Ok(())).unwrap_err();
        assert!(late.kind == Kind::WorldGone && late.text.contains("fuser"), "{late}");
        let stop = || Err(Error::new(Kind::Interrupted, "stop"));
        let stopped = lock(&other, libc::LOCK_EX, &path, PATIENCE, &stop).unwrap_err();
        assert_eq!(stopped.kind, Kind::Interrupted);
        fs::remove_dir_all(folder).unwrap();
    }
}
