//! Files in shared memory: created with their pages reserved, locked while their owner lives.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;

#[derive(Debug)]
pub enum ShmError {
    /// The file system has no room: bytes needed, free, and in all.
    Full {
        needed: u64,
        free: u64,
        limit: u64,
    },
    Io(io::Error),
    /// The file is not what it should be.
    Invalid(String),
}

impl From<io::Error> for ShmError {
    fn from(error: io::Error) -> Self {
        ShmError::Io(error)
    }
}

/// A mapped file that begins with a `T`. Unmapped when dropped.
pub struct Mapping<T> {
    start: NonNull<u8>,
    len: usize,
    lock: Option<File>,
    marker: PhantomData<T>,
}

// SAFETY: the mapping is plain memory; T says by its own Sync what may be done through &T.
unsafe impl<T: Sync> Send for Mapping<T> {}
// SAFETY: the mapping is plain memory; T is Sync, and &Mapping gives no more than &T.
unsafe impl<T: Sync> Sync for Mapping<T> {}

impl<T> Mapping<T> {
    /// Create `path` with `len` zeroed bytes and mode 0600, and map it; behind them `more` bytes
    /// without pages, if the file system allows it (see `Mapping::len`). The file is locked
    /// exclusively for as long as the returned mapping keeps it.
    ///
    /// The file appears under `path` only when it is complete: it is made under a temporary name,
    /// reserved, locked, prepared by `init`, and then linked in.
    pub fn create(
        path: &Path,
        len: usize,
        more: usize,
        init: impl FnOnce(&Mapping<T>),
    ) -> Result<Mapping<T>, ShmError> {
        let fresh = path.with_extension("new");
        let file = Self::fresh_file(&fresh)?;
        let result = Self::prepare(path, &fresh, file, len, more, init);
        if result.is_err() {
            let _ = std::fs::remove_file(&fresh);
        }
        result
    }

    /// Map `path`; if there is none, create it as `create` does, but without a lock, under the name
    /// `fresh` first. If several processes do so at once, all get the same file.
    pub fn create_or_open(
        path: &Path,
        fresh: &Path,
        len: usize,
        init: impl FnOnce(&Mapping<T>),
    ) -> Result<Mapping<T>, ShmError> {
        match Self::open(path, 0) {
            Err(ShmError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        let file = Self::fresh_file(fresh)?;
        let result =
            reserve(&file, len, path).and_then(|()| Self::map(&file, len)).and_then(|result| {
                init(&result);
                match std::fs::hard_link(fresh, path) {
                    Ok(()) => Ok(result),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        Self::open(path, 0)
                    }
                    Err(error) => Err(error.into()),
                }
            });
        let _ = std::fs::remove_file(fresh);
        result
    }

    fn fresh_file(path: &Path) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)
    }

    fn prepare(
        path: &Path,
        fresh: &Path,
        file: File,
        len: usize,
        more: usize,
        init: impl FnOnce(&Mapping<T>),
    ) -> Result<Mapping<T>, ShmError> {
        reserve(&file, len, path)?;
        let total = len + more;
        let fits = more > 0 && total as u64 <= largest_file();
        let total = if fits && file.set_len(total as u64).is_ok() { total } else { len };
        // A second open file carries the lock. The mapping keeps the first one open, also in a
        // forked child, where it would make a dead process look alive.
        let lock = File::open(fresh)?;
        // SAFETY: flock on a descriptor that we own.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            return Err(io::Error::last_os_error().into());
        }
        // Address space may be limited (ulimit -v).
        let mut mapping = Self::map(&file, total).or_else(|_| Self::map(&file, len))?;
        mapping.lock = Some(lock);
        init(&mapping);
        std::fs::rename(fresh, path)?;
        Ok(mapping)
    }

    /// Map an existing file of the caller's user: all of it, or `least` bytes if the address space
    /// has no room for more.
    pub fn open(path: &Path, least: usize) -> Result<Mapping<T>, ShmError> {
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
        let meta = file.metadata()?;
        // SAFETY: the call takes no arguments, and cannot fail.
        if meta.uid() != unsafe { libc::geteuid() } {
            let (path, user) = (path.display(), meta.uid());
            return Err(ShmError::Invalid(format!("{path} belongs to user {user}")));
        }
        let len = meta.len() as usize;
        if len < std::mem::size_of::<T>() {
            return Err(ShmError::Invalid(format!("{} has only {len} bytes", path.display())));
        }
        Self::map(&file, len).or_else(|error| match least {
            0 => Err(error),
            least => Self::map(&file, least.min(len)),
        })
    }

    fn map(file: &File, len: usize) -> Result<Mapping<T>, ShmError> {
        // SAFETY: a fresh shared mapping of a file of at least `len` reserved bytes.
        let start = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let (file, none) = (file.as_raw_fd(), std::ptr::null_mut());
            libc::mmap(none, len, access, libc::MAP_SHARED, file, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        let start = NonNull::new(start.cast()).expect("mmap never returns null");
        Ok(Mapping { start, len, lock: None, marker: PhantomData })
    }

    /// Reserve and map the pages of a range (multiples of 4096) that may have none; whether there
    /// was room. Never causes a SIGBUS later. Needs Linux 5.14; before that, returns false.
    pub fn populate(&self, from: u64, to: u64) -> bool {
        const MADV_POPULATE_WRITE: i32 = 23; // not in every libc yet
        self.advise(from, to, MADV_POPULATE_WRITE)
    }

    /// Give the pages of a range (multiples of 4096) back to the system; their contents are lost.
    pub fn discard(&self, from: u64, to: u64) {
        self.advise(from, to, libc::MADV_REMOVE);
    }

    fn advise(&self, from: u64, to: u64, advice: i32) -> bool {
        assert!(from <= to && to <= self.len as u64);
        // SAFETY: a range inside the mapping; neither advice changes what other ranges hold.
        unsafe {
            let start = self.start.as_ptr().add(from as usize);
            libc::madvise(start.cast(), (to - from) as usize, advice) == 0
        }
    }

    /// Give up the lock, and the descriptor with it; the memory stays.
    pub fn unlock(mut self) -> Mapping<T> {
        self.lock = None;
        self
    }

    /// All mapped bytes.
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
    /// The descriptor that carries the lock, in the process that created the file.
    pub fn lock_fd(&self) -> Option<i32> {
        self.lock.as_ref().map(|file| file.as_raw_fd())
    }
}

impl<T> std::ops::Deref for Mapping<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the mapping holds at least a T (checked in open, len given in create), page
        // aligned; T consists of atomics and plain data that is written before it is shared.
        unsafe { self.start.cast().as_ref() }
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped in `map`, and is unmapped here only.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Reserve the pages now: a write to a page that a full tmpfs cannot give is a SIGBUS, which
/// kills the process; containers give /dev/shm 64 MB.
fn reserve(file: &File, len: usize, path: &Path) -> Result<(), ShmError> {
    if len as u64 > largest_file() {
        return Err(io::Error::from_raw_os_error(libc::EFBIG).into());
    }
    // SAFETY: the descriptor is the file's, which is open until the call returns.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len as libc::off_t) } {
        0 => Ok(()),
        libc::ENOSPC | libc::EDQUOT => {
            let (free, limit) = room(path.parent().unwrap_or(path)).unwrap_or((0, 0));
            Err(ShmError::Full { needed: len as u64, free, limit })
        }
        libc::EOPNOTSUPP | libc::EINVAL => Ok(file.set_len(len as u64)?),
        error => Err(io::Error::from_raw_os_error(error).into()),
    }
}

/// How large this process may make a file (`ulimit -f`). Trying is no way to find out: the system
/// answers with SIGXFSZ, which ends a program in C.
pub fn largest_file() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: it fills in the value that it is given.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    limit.rlim_cur
}

/// Free and total bytes of the file system that holds `path`.
pub fn room(path: &Path) -> io::Result<(u64, u64)> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: statvfs fills the zeroed struct; the path is a C string.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the call fills the struct, which lives until it returns; the path is a C string.
    if unsafe { libc::statvfs(path.as_ptr(), &mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let block = stat.f_frsize as u64;
    Ok((stat.f_bavail as u64 * block, stat.f_blocks as u64 * block))
}

/// The process that has created a file, seen by the lock that it holds while it lives.
pub struct Owner(File);

impl Owner {
    pub fn of(path: &Path) -> io::Result<Owner> {
        Ok(Owner(OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path)?))
    }

    /// The owner of a file that was opened for this, and may be used for other things.
    pub fn of_file(file: File) -> Owner {
        Owner(file)
    }

    pub fn file(&self) -> &File {
        &self.0
    }

    /// Whether it has died, or released the file: nobody holds the lock.
    pub fn is_dead(&self) -> bool {
        let file = self.0.as_raw_fd();
        // SAFETY: a descriptor that we own; the shared lock is dropped again.
        unsafe {
            let dead = libc::flock(file, libc::LOCK_SH | libc::LOCK_NB) == 0;
            if dead {
                libc::flock(file, libc::LOCK_UN);
            }
            dead
        }
    }
}

/// Whether the process that created `path` has died: nobody holds the lock, or the file is missing.
/// A file that cannot be opened (no descriptors left) proves nothing, and its owner counts as
/// alive.
pub fn is_dead(path: &Path) -> bool {
    match Owner::of(path) {
        Ok(owner) => owner.is_dead(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}
