//! How an observer ends the calls of a deadlock.
//!
//! A deadlock is ended in two steps, as databases commit: first a judgement is prepared in each of its
//! processes, and only then is each committed. If a call ended while others of the same deadlock
//! went on unjudged, its process could go on at once and send them a message of its next cell.
//!
//! Several observers may judge the same call. They read `judged` and write it again under a lock on
//! its bytes of the file: otherwise one could prepare what another has committed meanwhile, and then
//! abort it because the call of another process of the deadlock has ended. For the same reason each
//! has a number, and what one has prepared no other prepares, commits or aborts: they may have seen
//! deadlocks of different processes, of which this one is in both.
//!
//! `order`: the number of the call, and that of the observer, as in `judged`.

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use super::{with_copies, Damaged, ObservedSegment, WORDS};
use crate::segment::{judged_call, Activity, Shared, PREPARED};
use crate::text::Text;

/// Tries to get the lock, a millisecond apart: an observer that is stopped with it keeps the others
/// from nothing else.
const TRIES: usize = 100;

impl ObservedSegment {
    /// Prepare the end of the owner's blocked call of this number: until the judgement is committed
    /// or aborted, the call takes no message. False if the call is over, or another observer has
    /// prepared its end.
    pub fn prepare(&self, order: u64, judgement: &str) -> Result<bool, Damaged> {
        let Some(_lock) = self.lock_judged() else { return Ok(false) };
        let call = judged_call(order);
        with_copies(|copies| {
            let head = self.copy(&mut copies[0], WORDS)?;
            if !Activity::is_blocked(head.activity.0.load(Ordering::Relaxed))
                || head.call.load(Ordering::Relaxed) != call
            {
                return Ok(false);
            }
            let judged = head.judged.load(Ordering::Relaxed);
            if judged == call {
                return Ok(true); // another observer was faster
            }
            if judged & PREPARED != 0 && judged_call(judged) == call && judged != order | PREPARED {
                return Ok(false);
            }
            let offset = offset_of!(Shared, judgement);
            let copy = &mut copies[0];
            self.copy(copy, offset..offset + size_of::<u64>())?;
            copy.judgement.write(judgement);
            // SAFETY: inside the copy, whose text was just written as far as `used` goes.
            let written = unsafe {
                let start = (&raw const **copy).cast::<u8>().add(offset);
                std::slice::from_raw_parts(start, Text::<1024>::used(judgement.len()))
            };
            let (version, rest) = written.split_at(size_of::<u32>());
            let even = u32::from_ne_bytes(version.try_into().expect("four bytes"));
            // SYNC POINT text: as `Text::write` does, in three steps, each made by the kernel.
            self.write(&even.wrapping_sub(1).to_ne_bytes(), offset)?;
            self.write(rest, offset + size_of::<u32>())?;
            self.write(&even.to_ne_bytes(), offset)?;
            self.set_judged(order | PREPARED)?;
            Ok(true)
        })
    }

    /// End the call with the judgement that was prepared. False if it is over.
    pub fn commit(&self, order: u64) -> Result<bool, Damaged> {
        let Some(_lock) = self.lock_judged() else { return Ok(false) };
        let call = judged_call(order);
        let is_meant = self.has_judged(order | PREPARED)? || self.has_judged(call)?;
        if is_meant {
            self.set_judged(call)?;
            self.ring(offset_of!(Shared, bell));
        }
        Ok(is_meant)
    }

    /// Let the call go on. False if this observer has prepared no judgement of it.
    pub fn abort(&self, order: u64) -> Result<bool, Damaged> {
        let Some(_lock) = self.lock_judged() else { return Ok(false) };
        let is_meant = self.has_judged(order | PREPARED)?;
        if is_meant {
            self.set_judged(0)?;
            self.ring(offset_of!(Shared, bell));
        }
        Ok(is_meant)
    }

    /// The right to change `judged`; None if another observer keeps it.
    pub(super) fn lock_judged(&self) -> Option<JudgedLock<'_>> {
        for _ in 0..TRIES {
            match self.set_lock(libc::F_WRLCK) {
                // A file system without such locks cannot keep observers apart.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.raw_os_error() == Some(libc::EACCES) => {}
                _ => return Some(JudgedLock(self)),
            }
            sleep(Duration::from_millis(1));
        }
        None
    }

    /// Lock or unlock the bytes of `judged`, for this open file; the kernel unlocks them if its
    /// process ends.
    fn set_lock(&self, kind: libc::c_int) -> io::Result<()> {
        let lock = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: offset_of!(Shared, judged) as libc::off_t,
            l_len: size_of::<u64>() as libc::off_t,
            l_pid: 0,
        };
        // SAFETY: a descriptor that we own; the kernel reads the struct.
        match unsafe { libc::fcntl(self.file().as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn has_judged(&self, number: u64) -> Result<bool, Damaged> {
        with_copies(|copies| {
            let head = self.copy(&mut copies[0], WORDS)?;
            Ok(head.judged.load(Ordering::Relaxed) == number)
        })
    }

    /// SYNC POINT judged: the kernel writes the number after the text; the call reads it before the
    /// text (`Blocked::judged`). If the kernel wrote it byte by byte, the intermediate values would
    /// have to be the number of another blocked call, of right now.
    pub(super) fn set_judged(&self, number: u64) -> Result<(), Damaged> {
        self.write(&number.to_ne_bytes(), offset_of!(Shared, judged))
    }
}

/// While it lives, no other observer changes `judged`.
pub(super) struct JudgedLock<'a>(&'a ObservedSegment);

impl Drop for JudgedLock<'_> {
    fn drop(&mut self) {
        let _ = self.0.set_lock(libc::F_UNLCK);
    }
}
