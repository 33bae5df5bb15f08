//! How an observer ends the calls of a deadlock.
//!
//! A deadlock is ended in two steps, as databases commit: first a judgement is prepared in each of its
//! processes, and only then is each committed. If a call ended while others of the same deadlock
//! went on unjudged, its process could go on at once and send them a message of its next cell.

use std::mem::{offset_of, size_of};
use std::sync::atomic::Ordering;

use super::{with_copies, Damaged, ObservedSegment, WORDS};
use crate::segment::{Activity, Shared, PREPARED};
use crate::text::Text;

impl ObservedSegment {
    /// Prepare the end of the owner's blocked call of this number: until the judgement is committed
    /// or aborted, the call takes no message. False if the call is over.
    pub fn prepare(&self, call: u64, judgement: &str) -> Result<bool, Damaged> {
        with_copies(|copies| {
            let head = self.copy(&mut copies[0], WORDS)?;
            if !Activity::is_blocked(head.activity.0.load(Ordering::Relaxed))
                || head.call.load(Ordering::Relaxed) != call
            {
                return Ok(false);
            }
            if head.judged.load(Ordering::Relaxed) == call {
                return Ok(true); // another observer was faster
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
            self.set_judged(call | PREPARED)?;
            Ok(true)
        })
    }

    /// End the call with the judgement that was prepared. False if it is over.
    pub fn commit(&self, call: u64) -> Result<bool, Damaged> {
        let is_meant = self.has_judged(call | PREPARED)? || self.has_judged(call)?;
        if is_meant {
            self.set_judged(call)?;
            self.ring(offset_of!(Shared, bell));
        }
        Ok(is_meant)
    }

    /// Let the call go on. False if no judgement of it is prepared.
    pub fn abort(&self, call: u64) -> Result<bool, Damaged> {
        let is_meant = self.has_judged(call | PREPARED)?;
        if is_meant {
            self.set_judged(0)?;
            self.ring(offset_of!(Shared, bell));
        }
        Ok(is_meant)
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
    fn set_judged(&self, number: u64) -> Result<(), Damaged> {
        self.write(&number.to_ne_bytes(), offset_of!(Shared, judged))
    }
}
