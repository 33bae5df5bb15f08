//! Collective calls that a process has left before their end, interrupted by Stop or a signal's
//! handler. Whoever is in the same call, or comes to it, hears of that instead of waiting for ever,
//! and the next call has the same number everywhere again.

use std::sync::atomic::Ordering::{Acquire, Release};

use super::control::Kind;
use super::{lock, Engine, What};
use crate::handles::c_int;

/// A call that `rank` has left.
#[derive(Clone, Copy)]
pub struct Left {
    pub rank: usize,
    pub what: What,
    context: u64,
    number: u32,
    /// The program has heard of it.
    is_told: bool,
}

impl Left {
    fn is_of(&self, context: u64, number: u32) -> bool {
        (self.context, self.number) == (context, number)
    }
}

/// More are forgotten, the oldest first.
const MOST: usize = 64;

impl Engine {
    /// This process leaves a call of these `members`, itself among them.
    pub fn leave_call(&self, what: What, context: u64, number: u32, members: &[c_int]) {
        self.note_left(Left { rank: self.rank, what, context, number, is_told: true });
        let others = members.iter().map(|member| *member as usize);
        for other in others.filter(|other| *other != self.rank) {
            self.say(Kind::Left, other, what as u32, number.into(), &context.to_le_bytes());
        }
    }

    pub(super) fn hear_of_leaving(&self, rank: usize, what: u32, context: u64, number: i64) {
        let (what, number) = (What::of(what as u8), number as u32);
        self.note_left(Left { rank, what, context, number, is_told: false });
    }

    fn note_left(&self, left: Left) {
        let mut all = lock(&self.left);
        if all.len() == MOST {
            all.remove(0);
        }
        all.push(left);
        self.show_left(&all);
    }

    /// Whether there is something to tell, for a look that takes no lock.
    fn show_left(&self, all: &[Left]) {
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
        self.show_left(&all);
        Some(found)
    }

    /// Whether it is known that somebody has left this call.
    pub fn was_left(&self, context: u64, number: u32) -> bool {
        lock(&self.left).iter().any(|one| one.is_of(context, number))
    }

    /// No call goes on that was made before.
    pub fn forget_leaving(&self) {
        self.advance();
        let mut all = lock(&self.left);
        all.clear();
        self.show_left(&all);
    }
}
