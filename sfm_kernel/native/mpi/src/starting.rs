//! A launcher for a process that has none and is about to spawn: sfm_kernel/mpi/launch/lone.py.

use std::ffi::{CStr, OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process;
use crate::sockets::{self, Wait};

/// Start one; returns our end of its socket.
pub fn start(wait: Wait) -> io::Result<RawFd> {
    let package = package();
    for python in pythons(package.as_deref()) {
        if let Some(socket) = started(&python, package.as_deref(), wait) {
            return Ok(socket.into_raw_fd());
        }
    }
    Err(io::Error::other(
        "sfm-kernel's launcher starts processes, and no Python was found that has it: set \
        SFM_PYTHON to one that has, or start this program with `python -m sfm_kernel.mpi`",
    ))
}

/// The path of sfm_kernel, if this library is inside it.
fn package() -> Option<PathBuf> {
    let mut about = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: an address of this library, and a variable for the answer, whose text lives as long
    // as the library.
    let path = unsafe {
        if libc::dladdr(package as *const libc::c_void, &mut about) == 0 {
            return None;
        }
        CStr::from_ptr(about.dli_fname)
    };
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    path.ancestors().find(|folder| folder.ends_with("sfm_kernel")).map(Path::to_path_buf)
}

/// The candidates: the one that the user has chosen, the one of the installation, the program
/// itself, and the usual one.
fn pythons(package: Option<&Path>) -> Vec<PathBuf> {
    let chosen = std::env::var_os("SFM_PYTHON").map(PathBuf::from);
    // PREFIX/lib/python3.11/site-packages/sfm_kernel
    let prefix = package.and_then(|package| package.ancestors().nth(4));
    let words = fs::read("/proc/self/cmdline").unwrap_or_default();
    let ours = words.split(|byte| *byte == 0).next().map(|word| OsString::from_vec(word.to_vec()));
    let ours = ours.map(PathBuf::from).filter(|ours| {
        ours.file_name().is_some_and(|name| name.to_string_lossy().contains("python"))
    });
    let installed =
        prefix.map(|prefix| prefix.join("bin/python3")).filter(|python| python.exists());
    [chosen, installed, ours, Some("python3".into())].into_iter().flatten().collect()
}

/// A running launcher for this process.
fn started(python: &Path, package: Option<&Path>, wait: Wait) -> Option<OwnedFd> {
    let (our_end, its_end) = pair().ok()?;
    let (fd, null) = (its_end.as_raw_fd(), Stdio::null);
    let mut command = Command::new(python);
    let world = &process::this().world;
    command.args(["-P", "-m", "sfm_kernel.mpi", "--serve", &fd.to_string(), world]).stdin(null());
    if let Some(above) = package.and_then(Path::parent) {
        let others = std::env::var_os("PYTHONPATH").filter(|paths| !paths.is_empty());
        let paths = [above.as_os_str().to_owned()].into_iter().chain(others);
        command.env("PYTHONPATH", paths.collect::<Vec<_>>().join(OsStr::new(":")));
    }
    // SAFETY: one system call, on a descriptor that the new process inherits.
    unsafe {
        command.pre_exec(move || match libc::fcntl(fd, libc::F_SETFD, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    // The output of a Python without sfm_kernel is discarded.
    let found = Command::new(python)
        .args(["-P", "-c", "import sfm_kernel.mpi.launch.lone"])
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(null())
        .stdout(null())
        .stderr(null())
        .status();
    if !found.is_ok_and(|status| status.success()) {
        return None;
    }
    // It daemonizes at once, so that the program never sees it when it waits for its children.
    let has_started = command.status().is_ok_and(|status| status.success());
    drop(its_end);
    has_started
        .then(|| sockets::message(our_end.as_raw_fd(), wait).ok().flatten())
        .flatten()
        .map(|_| our_end)
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the call writes two descriptors, for which the array has room.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors are new, and nobody else owns or closes them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}
