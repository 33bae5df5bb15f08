//! Collective calls that a process has left before their end, because Stop or a signal handler
//! interrupted it, or because a process has ended that it needed. Every other process in the same
//! call learns of that instead of waiting for ever, and the next call again has the same number at
//! all processes.

use std::sync::atomic::Ordering::{Acquire, Release};

use sfm_native::core::Payload;

use super::control::{MessageKind, Note};
use super::{lock, Collective, Engine};
use crate::group::Group;
use crate::handles::c_int;

#[derive(Clone, Copy)]
pub struct LeftCall {
    pub rank: usize,
    pub what: Collective,
    /// The process that has ended; None if `rank` was interrupted.
    pub lost: Option<usize>,
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

/// In a message about it: there is no lost process.
const NOBODY: u64 = u64::MAX;

impl Engine {
    /// Leave a call of these `members`, which include this process; `lost` has ended.
    pub fn leave_call(
        &self,
        what: Collective,
        (context, number): (u64, u32),
        lost: Option<usize>,
        members: &[c_int],
    ) {
        let (rank, is_reported) = (self.rank, true);
        self.add_left_call(LeftCall { rank, what, lost, context, number, is_reported });
        let lost = lost.map_or(NOBODY, |rank| rank as u64);
        let words = [context.to_le_bytes(), lost.to_le_bytes()].concat();
        let others = members.iter().map(|member| *member as usize);
        for other in others.filter(|other| *other != self.rank) {
            self.send_control(MessageKind::Left, other, what as u32, number.into(), &words);
        }
    }

    pub(super) fn note_leaving(&self, note: &Note, number: i64, payload: Payload<'_>) {
        let mut words = [[0; 8]; 2];
        // SAFETY: the array has room for as many bytes.
        if unsafe { payload.copy(words.as_mut_ptr().cast(), size_of_val(&words)) } < 16 {
            return;
        }
        let [context, lost] = words.map(u64::from_le_bytes);
        let lost = (lost != NOBODY).then_some(lost as usize);
        let (rank, what, number) = (note.rank, Collective::of(note.number as u8), number as u32);
        self.add_left_call(LeftCall { rank, what, lost, context, number, is_reported: false });
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

    /// The process that has left this call of a group, if there is one; returned once.
    ///
    /// A number may come again, when survivors make the call without the process that has ended.
    pub fn leaver_of(&self, context: u64, number: u32, group: &Group) -> Option<LeftCall> {
        if !self.has_left_calls.load(Acquire) {
            return None;
        }
        let mut all = lock(&self.left_calls);
        let is_in = |lost: usize| group.members.contains(&(lost as c_int));
        let found = all.iter_mut().find(|call| {
            !call.is_reported && call.is_of(context, number) && call.lost.is_none_or(is_in)
        })?;
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
