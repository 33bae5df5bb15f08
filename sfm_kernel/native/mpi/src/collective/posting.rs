//! Small broadcasts and reductions to a root: the process that has data posts it in memory that all
//! share (core: combining_tree/posts.rs), and goes on. So do the two processes of an allreduce,
//! which need no tree.

use std::future::poll_fn;
use std::task::Poll;

use sfm_native::code_location::current;
use sfm_native::combining_tree::posts::{Cell, ROOM};

use super::calls::Call;
use super::items::Items;
use super::shared_calls::{about, can_be_same, different_post};
use super::team::{ended, Team};
use crate::comm::meetings::OpenTree;
use crate::data::Data;
use crate::engine::{engine, report};
use crate::errors::Answer;
use crate::op::{Kernel, Op};

/// A call that goes by posts. All processes that make the same call get the same answer.
pub enum Posting<'a> {
    Bcast { items: &'a Items, root: usize },
    Reduce { kernel: Kernel, from: Option<&'a Items>, into: Option<&'a Items>, root: usize },
    Allreduce { kernel: Kernel, from: Option<&'a Items>, into: &'a Items },
}

impl Posting<'_> {
    /// None for a call that goes another way.
    #[inline]
    pub fn of<'a>(call: &'a Call, team: &Team) -> Option<Posting<'a>> {
        if !call.bytes().is_some_and(|bytes| (1..=ROOM).contains(&bytes)) {
            return None;
        }
        match call {
            Call::Bcast { items, root } => Some(Posting::Bcast { items, root: *root }),
            Call::Reduce { op, from, into, root } => {
                let (from, into) = (from.as_ref(), into.as_ref());
                let kernel = kernel(op, from.or(into)?)?;
                Some(Posting::Reduce { kernel, from, into, root: *root })
            }
            Call::Allreduce { op, from, into } if team.size == 2 => {
                let kernel = kernel(op, into)?;
                Some(Posting::Allreduce { kernel, from: from.as_ref(), into })
            }
            _ => None,
        }
    }
}

/// The loop that combines the operands of a reduction; all such operations commute.
fn kernel(op: &Op, items: &Items) -> Option<Kernel> {
    items.data().contiguous()?; // some of pairs are not
    op.kernel(&items.datatype).ok()?
}

/// The posts of a call.
pub struct Posts<'a> {
    open: &'a OpenTree,
    team: &'a Team<'a>,
    nth: u64,
    bytes: usize,
    about: [u64; 2],
}

impl Posts<'_> {
    pub fn new<'a>(open: &'a OpenTree, team: &'a Team<'a>, bytes: usize) -> Posts<'a> {
        Posts { open, team, nth: open.nth(team), bytes, about: about(team, bytes) }
    }

    pub async fn run(&self, posting: &Posting<'_>) -> Answer {
        match *posting {
            Posting::Bcast { items, root } => self.bcast(items, root).await,
            Posting::Reduce { kernel, from, into, root } => {
                self.reduce(kernel, from, into, root).await
            }
            Posting::Allreduce { kernel, from, into } => self.allreduce(kernel, from, into).await,
        }
    }

    async fn bcast(&self, items: &Items, root: usize) -> Answer {
        let data = items.data();
        if self.team.rank == root {
            self.room().await;
            self.post(&data, None);
            // Nobody may ever read this post, if the processes do not agree who is the root.
            return self.open.other_post(self.team, Some(self.bytes)).map_or(Ok(()), Err);
        }
        let cell = self.posted(root).await?;
        // SAFETY: the user's memory, of exactly this many bytes.
        unsafe { self.data(cell).copy_to(&data) };
        Ok(())
    }

    /// Combine every process's operand at the root: its own with those of the others, in the order
    /// of their ranks.
    async fn reduce(
        &self,
        kernel: Kernel,
        from: Option<&Items>,
        into: Option<&Items>,
        root: usize,
    ) -> Answer {
        if self.team.rank != root {
            let from = from.expect("only the root's may be in place");
            self.room().await;
            self.post(&from.data(), Some(root));
            return Ok(());
        }
        let into = into.expect("the root has memory for the result");
        if let Some(from) = from {
            // SAFETY: they are two distinct buffers, which the user leaves to the call until it has
            // ended.
            unsafe { from.copy_to(into) };
        }
        let to = into.data().contiguous().expect("as `kernel` has checked");
        for rank in (0..self.team.size).filter(|rank| *rank != root) {
            let cell = self.posted(rank).await?;
            // SAFETY: both hold `count` items of the kernel's type, and only this call uses them.
            unsafe { kernel(cell.bytes.as_ptr().cast(), to.cast(), into.count) };
        }
        Ok(())
    }

    /// Combine every process's operand, at all in the same order.
    async fn allreduce(&self, kernel: Kernel, from: Option<&Items>, into: &Items) -> Answer {
        let data = into.data();
        self.room().await;
        self.post(&from.unwrap_or(into).data(), None);
        let to = data.contiguous().expect("as `kernel` has checked");
        for rank in 0..self.team.size {
            let cell = self.posted(rank).await?;
            // SAFETY: the user's memory and a cell; both hold `count` items.
            unsafe {
                match rank {
                    0 => self.data(cell).copy_to(&data),
                    _ => kernel(cell.bytes.as_ptr().cast(), to.cast(), into.count),
                }
            }
        }
        Ok(())
    }

    /// Wait until this process has room for its post.
    async fn room(&self) {
        poll_fn(|_| match self.open.tree.behind(self.nth) {
            None => Poll::Ready(()),
            Some(rank) => {
                report::awaits(self.team.process(rank));
                Poll::Pending
            }
        })
        .await;
    }

    /// Post this process's data; `to`: the only reader.
    fn post(&self, data: &Data, to: Option<usize>) {
        let location = current();
        engine().core.shared().codes.note(location);
        let write = |at| {
            // SAFETY: the user's memory and a cell, which has room for `bytes`.
            unsafe { data.copy_to(&Data::bytes(at, self.bytes)) }
        };
        if self.open.tree.post(self.nth, self.about, location, write) {
            self.open.wake(to);
        }
    }

    /// A process's post, once it has come.
    async fn posted(&self, rank: usize) -> Answer<&Cell> {
        let (tree, nth) = (&self.open.tree, self.nth);
        let cell = ended(self.team.process(rank), || tree.posted(rank, nth)).await;
        match can_be_same(cell.call, self.about) {
            true => Ok(cell),
            false => Err(different_post(self.team, rank, cell, Some(self.bytes))),
        }
    }

    fn data(&self, cell: &Cell) -> Data {
        Data::bytes(cell.bytes.as_ptr().cast_mut(), self.bytes)
    }
}
