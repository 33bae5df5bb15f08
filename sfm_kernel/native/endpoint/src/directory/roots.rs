//! The folder of a user's worlds on a machine, on which all processes of the user agree.
//!
//! It is `sfm-UID` in shared memory. Another user may have taken that name: shared memory is open to
//! all, and a folder belongs to its maker. Then the folder has a name that nobody can guess, and a
//! file in the user's home records it.
//!
//! A folder `sfm-UID` that belongs to the user takes precedence over the record, since nobody else
//! can make or remove one; so the record is read only if the name is taken, which is rare. Neither
//! depends on the environment: XDG_RUNTIME_DIR and XDG_STATE_HOME are set in a login, but not in a
//! cron job or by a hub's spawner, and the former is removed at logout while engines go on. Several
//! machines may share a home, and a machine may have several shared memories (containers): a record
//! is valid for one shared memory, until the machine restarts.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use ring::digest::{digest, SHA256};

use crate::error::{reason, Error, Kind, Result};
use crate::random;

const SHARED: &str = "/dev/shm";

/// The folder of this user's worlds: `$SFM_DIR`, otherwise one in shared memory. Not created.
pub fn root() -> Result<PathBuf> {
    if let Some(chosen) = chosen() {
        let path = absolute(Path::new(&chosen))?;
        // As long as the path of any file is within the root.
        return match fs::symlink_metadata(path.join("x".repeat(150))) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(unusable(&path, &error)),
            _ => Ok(path),
        };
    }
    let shared = if is_writable(Path::new(SHARED)) { SHARED.into() } else { temporary() };
    let this_user = user();
    let usual = shared.join(format!("sfm-{this_user}"));
    let owner = owner(&usual)?;
    if owner == Some(this_user) {
        return Ok(usual);
    }
    let record = record(&shared)?;
    let known = match (read(&record, &usual), owner) {
        (None, None) => return Ok(usual),
        (Some(known), _) if is_ours(&known)? => known,
        (known, _) => write(&record, &usual, known.as_deref())?,
    };
    // The user who took the name may have given it back meanwhile, and another process of ours may
    // have it now.
    Ok(if self::owner(&usual)? == Some(this_user) { usual } else { known })
}

fn chosen() -> Option<OsString> {
    std::env::var_os("SFM_DIR").filter(|chosen| !chosen.is_empty())
}

/// The error for a root that cannot be made or entered.
pub fn unusable(path: &Path, error: &io::Error) -> Error {
    let named = match chosen() {
        Some(chosen) => format!("SFM_DIR={}", shortened(&chosen.to_string_lossy())),
        None => path.display().to_string(),
    };
    let text = format!(
        "{named} cannot hold your worlds: {}. Set SFM_DIR to a folder of your own, in shared memory \
         if possible",
        reason(error)
    );
    Error::new(Kind::WorldAccess, text)
}

/// A text that a user has given; of a long one, its beginning and its length.
fn shortened(text: &str) -> String {
    let (most, length) = (80, text.chars().count());
    if length <= most + 20 {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(most).collect();
    format!("{start:?}… ({length} characters)")
}

/// Whether a folder is the user's, or does not exist.
fn is_ours(path: &Path) -> Result<bool> {
    Ok(owner(path)?.is_none_or(|owner| owner == user()))
}

pub fn user() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::geteuid() }
}

/// The path without `.` and `..`, as Python's `os.path.abspath` has it.
fn absolute(path: &Path) -> Result<PathBuf> {
    let failed = |error| Error::system("the working directory cannot be found", &error);
    let mut result = PathBuf::new();
    for component in std::path::absolute(path).map_err(failed)?.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(result.pop()),
            component => result.push(component),
        }
    }
    Ok(result)
}

fn is_writable(folder: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: a text that ends with a zero.
    folder.is_dir() && unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) } == 0
}

/// As Python's `tempfile.gettempdir`.
fn temporary() -> PathBuf {
    let named =
        ["TMPDIR", "TEMP", "TMP"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let usual = ["/tmp", "/var/tmp", "/usr/tmp"].into_iter().map(PathBuf::from);
    let found = named.chain(usual).find(|folder| is_writable(folder));
    found.unwrap_or_else(|| std::env::current_dir().unwrap_or_else(|_| "/tmp".into()))
}

/// The owner's user number; None if there is no such file.
fn owner(path: &Path) -> Result<Option<u32>> {
    match fs::symlink_metadata(path) {
        Ok(status) => Ok(Some(status.uid())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::system(&path.display().to_string(), &error)),
    }
}

/// The record, in the user's home, for this shared memory.
fn record(shared: &Path) -> Result<PathBuf> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let failed = |error| Error::system(&shared.display().to_string(), &error);
    let device = fs::metadata(shared).map_err(failed)?.dev();
    let digest = digest(&SHA256, format!("{} {device}", boot.trim()).as_bytes());
    let name: String = digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(home().join(".local/state/sfm-kernel").join(format!("root-{name}")))
}

/// The user's home by the system's records; for an unknown user, HOME.
fn home() -> PathBuf {
    // SAFETY: all zero is a valid record of pointers and numbers.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut texts = vec![0; 1 << 14];
    let mut found = std::ptr::null_mut();
    // SAFETY: the buffers are ours and of the given lengths; the result points into them.
    let known = unsafe {
        libc::getpwuid_r(user(), &mut entry, texts.as_mut_ptr(), texts.len(), &mut found);
        (!found.is_null()).then(|| CStr::from_ptr(entry.pw_dir).to_bytes().to_vec())
    };
    let named = || std::env::var_os("HOME").unwrap_or_else(|| OsStr::new("/").to_owned());
    known.map(OsString::from_vec).unwrap_or_else(named).into()
}

/// The recorded folder; None if there is none, or others could have written it.
fn read(record: &Path, usual: &Path) -> Option<PathBuf> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(record).ok()?;
    let status = file.metadata().ok()?;
    if !status.is_file() || status.uid() != user() || status.mode() & 0o077 != 0 {
        return None;
    }
    let mut known = String::new();
    file.take(1000).read_to_string(&mut known).ok()?;
    let end = known.strip_prefix(&format!("{}-", usual.display()))?;
    let digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    (end.len() == 32 && end.chars().all(digit)).then(|| PathBuf::from(&known))
}

/// Record a folder, unless another process has just done so. Returns the recorded folder.
fn write(record: &Path, usual: &Path, unusable: Option<&Path>) -> Result<PathBuf> {
    put(record, usual, unusable).map_err(|error| {
        let text = format!(
            "{} belongs to another user, and {}, which would record another folder for your worlds, \
             cannot be written ({}). Set SFM_DIR to a folder of your own, in shared memory if possible",
            usual.display(),
            record.display(),
            reason(&error)
        );
        Error::new(Kind::WorldAccess, text)
    })?;
    read(record, usual).ok_or_else(|| {
        let record = record.display();
        let text = format!("{record} must be a file that only you can read and write. Remove it");
        Error::new(Kind::WorldAccess, text)
    })
}

fn put(record: &Path, usual: &Path, unusable: Option<&Path>) -> io::Result<()> {
    let fresh = record.with_extension(format!("{:032x}", random()?));
    let folder = record.parent().expect("a file of a folder");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let placed = write!(file, "{}-{:032x}", usual.display(), random()?).and_then(|()| {
        match fs::hard_link(&fresh, record) {
            // Another process's record stays, unless it is unusable.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match read(record, usual) {
                Some(known) if Some(known.as_path()) != unusable => Ok(()),
                _ => fs::rename(&fresh, record),
            },
            Err(_) => fs::rename(&fresh, record), // a file system without links
            Ok(()) => Ok(()),
        }
    });
    let _ = fs::remove_file(&fresh);
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_absolute_without_steps_back() {
        assert_eq!(absolute(Path::new("/a/./b/../c")).unwrap(), Path::new("/a/c"));
    }

    #[test]
    fn a_record_is_replaced_only_if_it_is_unusable() {
        let folder = crate::tests::folder();
        let (record, usual) = (folder.join("state/root-1"), Path::new("/dev/shm/sfm-0"));
        assert_eq!(read(&record, usual), None);
        let first = write(&record, usual, None).unwrap();
        assert_eq!(write(&record, usual, None).unwrap(), first);
        let second = write(&record, usual, Some(&first)).unwrap();
        assert_ne!(first, second);
        assert_eq!(read(&record, Path::new("/tmp/sfm-0")), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
