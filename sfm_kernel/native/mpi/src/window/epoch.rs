//! Epochs: the accesses that are currently allowed, to this process and to others.
//!
//! The rules of the standard's chapter on one-sided communication, as a state machine without any
//! communication: each synchronization function is a transition, or an error that names the missing
//! call. Access (this process reaches others) and exposure (others reach this one) are separate,
//! except that a fence is both.

use std::collections::BTreeMap;

use super::lock::Mode;
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;

/// A lock that this process holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    pub mode: Mode,
    /// False with MPI_MODE_NOCHECK: the program has promised that there is no conflicting lock.
    pub is_taken: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
enum Access {
    #[default]
    Closed,
    /// After MPI_Win_fence; `used`: operations were begun, which another fence has to end.
    Fenced { used: bool },
    /// After MPI_Win_start: these ranks of the window.
    Started(Vec<usize>),
    /// After MPI_Win_lock, by target.
    Locked(BTreeMap<usize, Held>),
    /// After MPI_Win_lock_all.
    LockedAll(Held),
}

#[derive(Debug, Default)]
pub struct Epochs {
    access: Access,
    /// After MPI_Win_post: the ranks of the group.
    exposed: Option<Vec<usize>>,
    /// The calls that have begun the access and the exposure epoch, by number (`unfinished`).
    accessed_by: u32,
    exposed_by: u32,
}

use Access::*;

#[cold]
fn wrong(text: impl Into<String>) -> Failure {
    fail(MPI_ERR_RMA_SYNC, text)
}

impl Access {
    /// The open epoch, and the call that ends it.
    fn description(&self) -> String {
        match self {
            Closed => "no access epoch is open".into(),
            Fenced { .. } => {
                "operations were begun after MPI_Win_fence; call MPI_Win_fence once more".into()
            }
            Started(_) => {
                "the epoch of MPI_Win_start is open; call MPI_Win_complete to end it".into()
            }
            Locked(locks) => {
                let ranks: Vec<_> = locks.keys().map(usize::to_string).collect();
                let ranks = ranks.join(", ");
                format!("the lock of rank {ranks} is held; call MPI_Win_unlock to release it")
            }
            LockedAll(_) => {
                "the locks of MPI_Win_lock_all are held; call MPI_Win_unlock_all".into()
            }
        }
    }
}

impl Epochs {
    /// True if an access epoch may begin: a fence without operations since then ends by itself.
    fn is_idle(&self) -> bool {
        matches!(self.access, Closed | Fenced { used: false })
    }

    fn begin(&mut self, access: Access) -> Answer {
        if !self.is_idle() {
            return Err(wrong(format!("no epoch can begin here: {}", self.access.description())));
        }
        self.access = access;
        Ok(())
    }

    // ---- fence ----

    /// Err if a fence is not allowed; `fenced` completes it.
    pub fn may_fence(&self, assert: c_int) -> Answer {
        if self.exposed.is_some() {
            let text = "the exposure epoch of MPI_Win_post is open; call MPI_Win_wait first";
            return Err(wrong(text));
        }
        match self.access {
            Fenced { used: true } if assert & MPI_MODE_NOPRECEDE != 0 => Err(fail(
                MPI_ERR_ASSERT,
                "MPI_MODE_NOPRECEDE promises that there were no operations before, but this \
                process has begun some since the last MPI_Win_fence; omit it",
            )),
            Closed | Fenced { .. } => Ok(()),
            _ => Err(wrong(self.access.description())),
        }
    }

    pub fn fenced(&mut self, assert: c_int) {
        let is_last = assert & MPI_MODE_NOSUCCEED != 0;
        self.access = if is_last { Closed } else { Fenced { used: false } };
    }

    // ---- post, start, complete, wait ----

    pub fn start(&mut self, ranks: Vec<usize>) -> Answer {
        self.begin(Started(ranks))
    }

    /// Returns the ranks of the group.
    pub fn complete(&mut self) -> Answer<Vec<usize>> {
        match std::mem::take(&mut self.access) {
            Started(ranks) => Ok(ranks),
            other => {
                self.access = other;
                let text = "MPI_Win_complete ends the epoch of MPI_Win_start, which was not \
                    called";
                Err(wrong(text))
            }
        }
    }

    pub fn post(&mut self, ranks: Vec<usize>) -> Answer {
        if self.exposed.is_some() {
            let text =
                "the exposure epoch of the last MPI_Win_post is open; call MPI_Win_wait first";
            return Err(wrong(text));
        }
        if self.access == (Fenced { used: true }) {
            return Err(wrong(self.access.description()));
        }
        self.exposed = Some(ranks);
        Ok(())
    }

    /// The ranks whose MPI_Win_complete ends the exposure.
    pub fn exposed(&self) -> Answer<&[usize]> {
        self.exposed
            .as_deref()
            .ok_or_else(|| wrong("it ends the epoch of MPI_Win_post, which was not called"))
    }

    pub fn end_exposure(&mut self) {
        self.exposed = None;
    }

    // ---- locks ----

    /// Call it before taking the lock, and `unlock` if taking it fails.
    pub fn lock(&mut self, rank: usize, held: Held) -> Answer {
        match &mut self.access {
            Locked(locks) if locks.contains_key(&rank) => {
                let text = format!("this process has locked rank {rank} already; unlock it first");
                Err(wrong(text))
            }
            Locked(locks) => {
                locks.insert(rank, held);
                Ok(())
            }
            _ => self.begin(Locked(BTreeMap::from([(rank, held)]))),
        }
    }

    pub fn lock_all(&mut self, held: Held) -> Answer {
        self.begin(LockedAll(held))
    }

    /// Returns how it was locked.
    pub fn unlock(&mut self, rank: usize) -> Answer<Held> {
        let Locked(locks) = &mut self.access else {
            return Err(self.not_locked(rank));
        };
        let Some(held) = locks.remove(&rank) else { return Err(self.not_locked(rank)) };
        if locks.is_empty() {
            self.access = Closed;
        }
        Ok(held)
    }

    pub fn unlock_all(&mut self) -> Answer<Held> {
        let LockedAll(held) = self.access else {
            let text = "MPI_Win_unlock_all ends the epoch of MPI_Win_lock_all, which was not \
                called";
            return Err(wrong(text));
        };
        self.access = Closed;
        Ok(held)
    }

    #[cold]
    fn not_locked(&self, rank: usize) -> Failure {
        match self.access {
            LockedAll(_) => {
                wrong("MPI_Win_unlock_all releases the locks of MPI_Win_lock_all, all at once")
            }
            _ => {
                wrong(format!("rank {rank} is not locked by this process; call MPI_Win_lock first"))
            }
        }
    }

    // ---- the calls that begin epochs ----

    /// The call with this number has begun an access epoch.
    pub fn accessed_by(&mut self, call: u32) {
        self.accessed_by = call;
    }

    pub fn exposed_by(&mut self, call: u32) {
        self.exposed_by = call;
    }

    /// The call that has begun the epoch that `open` describes.
    pub fn begun(&self) -> u32 {
        if self.is_idle() {
            self.exposed_by
        } else {
            self.accessed_by
        }
    }

    // ---- operations in an epoch ----

    /// Begin an operation on this rank.
    #[inline]
    pub fn access(&mut self, rank: usize) -> Answer {
        match &mut self.access {
            LockedAll(_) => Ok(()),
            Locked(locks) if locks.contains_key(&rank) => Ok(()),
            Fenced { used } => {
                *used = true;
                Ok(())
            }
            Started(ranks) if ranks.contains(&rank) => Ok(()),
            _ => Err(self.no_access(rank)),
        }
    }

    #[cold]
    fn no_access(&self, rank: usize) -> Failure {
        match &self.access {
            Closed | Fenced { .. } => wrong(
                "no epoch is open: operations are allowed between two calls of MPI_Win_fence, \
                after MPI_Win_start, or after MPI_Win_lock or MPI_Win_lock_all",
            ),
            Started(_) => wrong(format!("rank {rank} is not in the group of MPI_Win_start")),
            Locked(_) | LockedAll(_) => self.not_locked(rank),
        }
    }

    /// Begin an operation with a request, which only a lock's epoch allows.
    pub fn request(&mut self, rank: usize) -> Answer {
        match self.access {
            Fenced { .. } | Started(_) => Err(wrong(
                "operations with a request are allowed after MPI_Win_lock or MPI_Win_lock_all \
                only; call the function without the R, which the epoch's end completes",
            )),
            _ => self.access(rank),
        }
    }

    /// Err unless a lock's epoch allows a flush of this rank, or of all (None).
    pub fn flush(&self, rank: Option<usize>) -> Answer {
        match (&self.access, rank) {
            (LockedAll(_), _) | (Locked(_), None) => Ok(()),
            (Locked(locks), Some(rank)) if locks.contains_key(&rank) => Ok(()),
            (Locked(_), Some(rank)) => Err(self.not_locked(rank)),
            _ => Err(wrong(
                "it is allowed after MPI_Win_lock or MPI_Win_lock_all, and this process holds no \
                lock",
            )),
        }
    }

    /// True after MPI_Win_lock_all.
    pub fn are_all_locked(&self) -> bool {
        matches!(self.access, LockedAll(_))
    }

    /// The epoch that prevents freeing the window, if there is one.
    pub fn open(&self) -> Option<String> {
        match (self.is_idle(), &self.exposed) {
            (false, _) => Some(self.access.description()),
            (true, Some(_)) => {
                Some("the exposure epoch of MPI_Win_post is open; call MPI_Win_wait".into())
            }
            (true, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: Held = Held { mode: Mode::Shared, is_taken: true };

    fn code<T>(answer: Answer<T>) -> c_int {
        answer.err().map_or(MPI_SUCCESS, |failure| failure.code)
    }

    #[test]
    fn a_fence_opens_an_epoch_that_the_next_one_ends() {
        let mut epochs = Epochs::default();
        assert_eq!(code(epochs.access(0)), MPI_ERR_RMA_SYNC);
        epochs.may_fence(0).unwrap();
        epochs.fenced(0);
        epochs.lock(1, SHARED).expect("nothing was begun since");
        assert_eq!(code(epochs.may_fence(0)), MPI_ERR_RMA_SYNC);
        epochs.unlock(1).unwrap();
        epochs.fenced(0);
        epochs.access(3).unwrap();
        assert_eq!(code(epochs.lock(1, SHARED)), MPI_ERR_RMA_SYNC);
        assert_eq!(code(epochs.post(vec![1])), MPI_ERR_RMA_SYNC);
        assert_eq!(code(epochs.request(1)), MPI_ERR_RMA_SYNC);
        assert_eq!(code(epochs.may_fence(MPI_MODE_NOPRECEDE)), MPI_ERR_ASSERT);
        assert!(epochs.open().unwrap().contains("MPI_Win_fence"));
        epochs.fenced(MPI_MODE_NOSUCCEED);
        assert_eq!(code(epochs.access(3)), MPI_ERR_RMA_SYNC);
        assert_eq!(epochs.open(), None);
    }

    #[test]
    fn a_started_epoch_reaches_its_group_only() {
        let mut epochs = Epochs::default();
        assert_eq!(code(epochs.complete()), MPI_ERR_RMA_SYNC);
        epochs.start(vec![1, 2]).unwrap();
        assert_eq!(code(epochs.access(0)), MPI_ERR_RMA_SYNC);
        assert_eq!(code(epochs.flush(Some(1))), MPI_ERR_RMA_SYNC);
        epochs.access(2).unwrap();
        epochs.post(vec![0]).expect("exposure is another matter");
        assert_eq!(code(epochs.post(vec![0])), MPI_ERR_RMA_SYNC);
        assert_eq!(epochs.complete().unwrap(), [1, 2]);
        assert!(epochs.open().unwrap().contains("MPI_Win_post"));
        assert_eq!(code(epochs.may_fence(0)), MPI_ERR_RMA_SYNC);
        assert_eq!(epochs.exposed().unwrap(), [0]);
        epochs.end_exposure();
        assert_eq!(code(epochs.exposed().map(<[_]>::len)), MPI_ERR_RMA_SYNC);
    }

    #[test]
    fn locks_are_held_for_each_target() {
        let mut epochs = Epochs::default();
        epochs.lock(1, SHARED).unwrap();
        epochs.lock(4, SHARED).unwrap();
        assert_eq!(code(epochs.lock(4, SHARED)), MPI_ERR_RMA_SYNC);
        assert_eq!(code(epochs.lock_all(SHARED)), MPI_ERR_RMA_SYNC);
        epochs.request(4).unwrap();
        assert_eq!(code(epochs.access(2)), MPI_ERR_RMA_SYNC);
        assert_eq!(code(epochs.flush(Some(2))), MPI_ERR_RMA_SYNC);
        epochs.flush(None).unwrap();
        assert!(epochs.open().unwrap().contains("rank 1, 4"));
        epochs.unlock(4).unwrap();
        assert_eq!(epochs.unlock(1).unwrap(), SHARED);
        assert_eq!(code(epochs.unlock(1)), MPI_ERR_RMA_SYNC);
        epochs.lock_all(SHARED).unwrap();
        assert_eq!(code(epochs.unlock(1)), MPI_ERR_RMA_SYNC);
        epochs.access(7).unwrap();
        epochs.flush(Some(7)).unwrap();
        epochs.unlock_all().unwrap();
        assert_eq!(code(epochs.unlock_all()), MPI_ERR_RMA_SYNC);
    }
}
