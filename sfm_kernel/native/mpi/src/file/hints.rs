//! The hints of an info object that this library supports. The others are ignored, as the standard
//! demands, and MPI_File_get_info does not return them.

use std::os::fd::AsRawFd;

use sfm_native::sync::lock;

use crate::info::Info;

use super::File;

/// How the file will be read and written: a list of words, which becomes advice to the system.
const STYLE: &str = "access_style";
/// The permissions of a file that is created: an octal number, as for chmod.
const PERMISSIONS: &str = "file_perm";
/// Returned by MPI_File_get_info only.
const NAME: &str = "filename";

/// The supported hints of `info`.
pub fn known(info: &Info) -> Info {
    let mut hints = Info::default();
    for key in [STYLE, PERMISSIONS] {
        if let Some(value) = info.get(key) {
            hints.set(key.into(), value.into());
        }
    }
    hints
}

/// The mode of a file that is created, to which the process's umask applies.
pub fn permissions(hints: &Info) -> libc::mode_t {
    let given = hints.get(PERMISSIONS).and_then(|text| libc::mode_t::from_str_radix(text, 8).ok());
    given.map_or(0o666, |mode| mode & 0o777)
}

impl File {
    /// Set further hints; those for creating a file come too late.
    pub fn take_hints(&self, info: &Info) {
        let mut hints = lock(&self.hints);
        if let Some(style) = known(info).get(STYLE) {
            hints.set(STYLE.into(), style.into());
        }
        let advice = match hints.get(STYLE).unwrap_or_default() {
            style if style.contains("random") => libc::POSIX_FADV_RANDOM,
            style if style.contains("sequential") || style.contains("read_once") => {
                libc::POSIX_FADV_SEQUENTIAL
            }
            _ => return,
        };
        // SAFETY: no memory is involved. Failure to give advice does no harm.
        unsafe { libc::posix_fadvise(self.descriptor.as_raw_fd(), 0, 0, advice) };
    }

    /// The hints that MPI_File_get_info returns.
    pub fn current_hints(&self) -> Info {
        let mut hints = lock(&self.hints).clone();
        hints.set(NAME.into(), self.name.to_string_lossy().into_owned());
        hints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_that_mean_nothing_here_are_ignored() {
        let mut info = Info::default();
        for (key, value) in [(PERMISSIONS, "0640"), (STYLE, "random"), ("cb_nodes", "4")] {
            info.set(key.into(), value.into());
        }
        let hints = known(&info);
        assert_eq!((hints.entries.len(), hints.get(STYLE)), (2, Some("random")));
        assert_eq!(permissions(&hints), 0o640);
        info.set(PERMISSIONS.into(), "rw-r--r--".into());
        assert_eq!(permissions(&known(&info)), 0o666);
    }
}
