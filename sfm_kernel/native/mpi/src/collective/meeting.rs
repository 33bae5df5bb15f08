//! Barriers and small allreduces of processes that share memory meet at a tree (core:
//! combining_tree/). Each process writes its operand there; the last to arrive at a node combines
//! the operands, and the last of all wakes the others. No process sends a message, and if there are
//! more processes than cores, each sleeps and wakes once.

use std::cell::Cell;

use sfm_native::combining_tree::fold::{CellKind, ROOM};
use sfm_native::combining_tree::CombiningTree;

use super::calls::Call;
use super::items::Items;
use super::shared_calls::{about, mismatch_of_all, other_message};
use super::team::Team;
use crate::comm::meetings::OpenTree;
use crate::engine::report::Arguments;
use crate::engine::{engine, report, About};
use crate::errors::Answer;
use crate::op::{Kernel, Op};

/// A process's operand, and how operands are combined.
#[derive(Default)]
pub struct Contribution {
    bytes: usize,
    reduction: Option<Reduction>,
}

/// `count` items in the user's memory; `from` and `into` may be equal.
struct Reduction {
    from: *const u8,
    into: *mut u8,
    count: usize,
    kernel: Kernel,
}

impl Contribution {
    /// None for a call that goes by messages. All processes that make the same call get the same
    /// answer.
    pub fn of(call: &Call) -> Option<Contribution> {
        match call {
            Call::Barrier => Some(Contribution::default()),
            Call::Allreduce { op, from, into } => Contribution::reduced(op, from.as_ref(), into),
            _ => None,
        }
    }

    fn reduced(op: &Op, from: Option<&Items>, into: &Items) -> Option<Contribution> {
        let bytes = into.bytes();
        if !(1..=ROOM).contains(&bytes) {
            return None;
        }
        let kernel = op.kernel(&into.datatype).ok()??;
        let from = from.unwrap_or(into).data().contiguous()?.cast_const();
        let (into, count) = (into.data().contiguous()?, into.count);
        Some(Contribution { bytes, reduction: Some(Reduction { from, into, count, kernel }) })
    }

    /// Enter the tree with this operand; true for the last process.
    fn enter(&self, tree: &mut CombiningTree, call: [u64; 2]) -> bool {
        let Some(Reduction { from, count, kernel, .. }) = &self.reduction else {
            return tree.enter_with(call, &[], |_, _| {});
        };
        // SAFETY: the user leaves the memory to the collective until it has ended.
        let operand = unsafe { std::slice::from_raw_parts(*from, self.bytes) };
        tree.enter_with(call, operand, |into, from| {
            if [into.len(), from.len()] == [self.bytes; 2] {
                // SAFETY: both hold `count` items, and cells are aligned to 32 bytes. Every
                // operation with a kernel commutes.
                unsafe { kernel(from.as_ptr().cast(), into.as_mut_ptr().cast(), *count) };
            }
        })
    }

    fn take(&self, result: &[u8]) {
        let into = self.reduction.as_ref().map(|reduction| reduction.into);
        if let Some(into) = into.filter(|_| result.len() == self.bytes) {
            // SAFETY: the user's memory, of exactly this many bytes.
            unsafe { std::ptr::copy_nonoverlapping(result.as_ptr(), into, result.len()) };
        }
    }
}

impl OpenTree {
    /// Run this call at the tree; None if it goes by messages, since the tree is over.
    pub fn meet(
        &mut self,
        team: &Team,
        contribution: &Contribution,
        arguments: impl Fn() -> Arguments,
    ) -> Option<Answer> {
        if self.tree.broken_by().is_some() {
            return None;
        }
        let about = about(team, contribution.bytes);
        if contribution.enter(&mut self.tree, about) {
            self.tree.conclude();
            self.wake_others();
        } else if let Err(failure) = self.wait(team, contribution.bytes, arguments) {
            team.leave(&failure);
            return Some(Err(failure));
        }
        if self.tree.broken_by().is_some() {
            return None;
        }
        let result = self.tree.result();
        if result.kind() == CellKind::Raw {
            contribution.take(result.bytes());
            return Some(Ok(()));
        }
        Some(Err(mismatch_of_all(self, team, about)))
    }

    /// Wait until all have entered, or a process has broken the meeting off.
    fn wait(&self, team: &Team, bytes: usize, arguments: impl Fn() -> Arguments) -> Answer {
        let tree = &self.tree;
        let slept = Cell::new(false);
        let mut wrong = Ok(());
        let missing = || tree.missing().into_iter().map(|rank| team.process(rank));
        let call = || {
            slept.set(true);
            team.call_waiting_for(arguments(), missing())
        };
        // If none is missing, the one that had to complete the round may have ended.
        let now = || match missing().collect::<Vec<_>>() {
            none if none.is_empty() => (0..team.size).map(|rank| team.process(rank)).collect(),
            missing => missing,
        };
        report::awaits(None);
        let waited = engine().wait(About::collective(&now, &call), || {
            let is_decided = tree.is_decided();
            if !is_decided {
                wrong = team.check_presence();
                if slept.take() && wrong.is_ok() {
                    let posts = || self.other_post(team, Some(bytes)).map_or(Ok(()), Err);
                    wrong = other_message(team, bytes).and_then(|()| posts());
                }
            }
            is_decided || wrong.is_err()
        });
        let ended = waited.and(if tree.is_decided() { Ok(()) } else { wrong });
        if ended.is_err() && tree.break_off() {
            self.wake_others();
        }
        ended
    }
}
