//! Collective calls that a process has left before their end, because Stop or a signal handler
//! interrupted it. Every other process in the same call learns of that instead of waiting for ever,
//! and the next call again has the same number at all processes.

use std::sync::atomic::Ordering::{Acquire, Release};

use super::control::Kind;
use super::{lock, Engine, What};
use crate::handles::c_int;

#[derive(Clone, Copy)]
pub struct LeftCall {
    pub rank: usize,
    pub what: What,
    context: u64,
    number: u32,
    /// True once the program has got the error.
    is_reported: bool,
}

impl LeftCall {
    fn is_of(&self, context: u64, number: u32) -> bool {
        (self.context, self.number) == (context, number)
    }
}

/// At most this many are remembered; the oldest is dropped first.
const MOST: usize = 64;

impl Engine {
    /// Leave a call of these `members`, which include this process.
    pub fn leave_call(&self, what: What, context: u64, number: u32, members: &[c_int]) {
        self.add_left_call(LeftCall { rank: self.rank, what, context, number, is_reported: true });
        let others = members.iter().map(|member| *member as usize);
        for other in others.filter(|other| *other != self.rank) {
            self.send_control(
                Kind::Left,
                other,
                what as u32,
                number.into(),
                &context.to_le_bytes(),
            );
        }
    }

    pub(super) fn note_leaving(&self, rank: usize, what: u32, context: u64, number: i64) {
        let (what, number) = (What::of(what as u8), number as u32);
        self.add_left_call(LeftCall { rank, what, context, number, is_reported: false });
    }

    fn add_left_call(&self, call: LeftCall) {
        let mut all = lock(&self.left_calls);
        if all.len() == MOST {
            all.remove(0);
        }
        all.push(call);
        self.update_has_left(&all);
    }

    /// Update `has_left_calls`, which allows a check without a lock.
    fn update_has_left(&self, all: &[LeftCall]) {
        self.has_left_calls.store(all.iter().any(|call| !call.is_reported), Release);
    }

    /// The process that has left this call, if there is one; returned once.
    pub fn leaver_of(&self, context: u64, number: u32) -> Option<LeftCall> {
        if !self.has_left_calls.load(Acquire) {
            return None;
        }
        let mut all = lock(&self.left_calls);
        let found = all.iter_mut().find(|call| !call.is_reported && call.is_of(context, number))?;
        found.is_reported = true;
        let found = *found;
        self.update_has_left(&all);
        Some(found)
    }

    pub fn is_known_left(&self, context: u64, number: u32) -> bool {
        lock(&self.left_calls).iter().any(|call| call.is_of(context, number))
    }

    /// Forget all of them: no earlier call is still running.
    pub fn forget_leaving(&self) {
        self.advance();
        let mut all = lock(&self.left_calls);
        all.clear();
        self.update_has_left(&all);
    }
}
