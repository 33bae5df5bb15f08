//! Collective calls that a process has left before their end, interrupted by Stop or a signal's
//! handler. Whoever is in the same call, or comes to it, hears of that instead of waiting for ever,
//! and the next call has the same number everywhere again.

use std::sync::atomic::Ordering::{Acquire, Release};

use super::control::Kind;
use super::{lock, Engine, What};

/// A call that `rank` has left.
#[derive(Clone, Copy)]
pub struct Left {
    pub rank: usize,
    pub what: What,
    pub context: u64,
    pub number: u32,
    /// The program has heard of it.
    pub is_told: bool,
}

impl Left {
    fn is_of(&self, context: u64, number: u32) -> bool {
        (self.context, self.number) == (context, number)
    }
}

/// More are forgotten, the oldest first.
const MOST: usize = 64;

impl Engine {
    /// Tell `process` that this one has left a collective call.
    pub fn tell_of_leaving(&self, process: usize, what: What, context: u64, number: u32) {
        self.say(Kind::Left, process, what as u32, number.into(), &context.to_le_bytes());
    }

    pub(super) fn hear_of_leaving(&self, rank: usize, what: u32, context: u64, number: i64) {
        let (what, number) = (What::of(what as u8), number as u32);
        self.note_leaving(Left { rank, what, context, number, is_told: false });
    }

    /// Somebody has left a call: another process, or, if that `is_told`, this one.
    pub fn note_leaving(&self, left: Left) {
        let mut all = lock(&self.left);
        if all.len() == MOST {
            all.remove(0);
        }
        all.push(left);
        self.has_left.store(all.iter().any(|one| !one.is_told), Release);
    }

    /// Whether somebody has left this call. Said once.
    pub fn who_left(&self, context: u64, number: u32) -> Option<Left> {
        if !self.has_left.load(Acquire) {
            return None;
        }
        let mut all = lock(&self.left);
        let found = all.iter_mut().find(|one| !one.is_told && one.is_of(context, number))?;
        found.is_told = true;
        let found = *found;
        self.has_left.store(all.iter().any(|one| !one.is_told), Release);
        Some(found)
    }

    /// Whether it is known that somebody has left this call.
    pub fn was_left(&self, context: u64, number: u32) -> bool {
        lock(&self.left).iter().any(|one| one.is_of(context, number))
    }

    /// No call goes on that was made before.
    pub fn forget_leaving(&self) {
        self.advance();
        lock(&self.left).clear();
        self.has_left.store(false, Release);
    }
}
