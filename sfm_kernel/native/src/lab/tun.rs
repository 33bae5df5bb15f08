//! A device through which the kernel sends packets to this process and receives others. Source: the
//! kernel's Documentation/networking/tuntap.rst.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Make the device in this thread's network namespace. It exists as long as the descriptor is open;
/// reads and writes carry one IP packet each. Nothing ever blocks.
///
/// Errors: ENOENT, ENXIO, this kernel has no such devices; EACCES, the user may not open
/// /dev/net/tun; EPERM, the namespace belongs to another user; EBUSY, the name is taken.
pub fn open_tun(name: &str) -> io::Result<OwnedFd> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(['\0', '/', '%']) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file: File = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    // SAFETY: plain numbers, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the kernel reads and writes the request, which is as long as it expects.
    if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file.into())
}
