//! Groups: ordered sets of processes, each identified by its number.

use std::sync::{Arc, LazyLock};

use crate::checks;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::process;
use crate::table::Table;

#[derive(Debug)]
pub struct Group {
    /// Numbers of processes (`process`), by rank in the group.
    pub members: Vec<c_int>,
    /// The session that it derives from, or MPI_SESSION_NULL.
    pub session: MPI_Session,
}

/// The same processes in the same order.
impl PartialEq for Group {
    fn eq(&self, other: &Group) -> bool {
        self.members == other.members
    }
}

static GROUPS: Table<Group> = Table::new(0x8800_0000);
static EMPTY: LazyLock<Arc<Group>> =
    LazyLock::new(|| Arc::new(Group { members: Vec::new(), session: MPI_SESSION_NULL }));

impl Group {
    pub fn new(members: Vec<c_int>) -> Arc<Group> {
        if members.is_empty() {
            return EMPTY.clone();
        }
        Arc::new(Group { members, session: MPI_SESSION_NULL })
    }

    /// The processes of MPI_COMM_WORLD.
    pub fn of_world() -> Arc<Group> {
        Group::new(process::this().everybody())
    }

    /// The same group, derived from a session.
    pub fn of_session(&self, session: MPI_Session) -> Arc<Group> {
        Arc::new(Group { members: self.members.clone(), session })
    }

    /// A group that derives from this one.
    fn with(&self, members: Vec<c_int>) -> Arc<Group> {
        match self.session {
            MPI_SESSION_NULL => Group::new(members),
            session => Arc::new(Group { members, session }),
        }
    }

    pub fn size(&self) -> c_int {
        self.members.len() as c_int
    }

    pub fn rank_of(&self, process: c_int) -> Option<c_int> {
        // Numbers are usually consecutive, as in the group of an entire world.
        let guess = process.wrapping_sub(*self.members.first()?);
        if self.members.get(guess as usize) == Some(&process) {
            return Some(guess);
        }
        self.members.iter().position(|member| *member == process).map(|rank| rank as c_int)
    }

    pub fn compare(&self, other: &Group) -> c_int {
        let same = self.members.len() == other.members.len()
            && self.members.iter().all(|member| other.rank_of(*member).is_some());
        match (self == other, same) {
            (true, _) => MPI_IDENT,
            (_, true) => MPI_SIMILAR,
            _ => MPI_UNEQUAL,
        }
    }

    /// The members of this group, followed by those of the other that are not in it.
    pub fn union(&self, other: &Group) -> Arc<Group> {
        let others = other.members.iter().filter(|member| self.rank_of(**member).is_none());
        self.with(self.members.iter().chain(others).copied().collect())
    }

    pub fn filtered(&self, keeps: impl Fn(c_int) -> bool) -> Arc<Group> {
        self.with(self.members.iter().copied().filter(|member| keeps(*member)).collect())
    }

    /// The members with these ranks, in this order.
    pub fn including(&self, name: &str, ranks: &[c_int]) -> Answer<Arc<Group>> {
        self.distinct(name, ranks)?;
        Ok(self.with(ranks.iter().map(|rank| self.members[*rank as usize]).collect()))
    }

    /// All members except those with these ranks.
    pub fn excluding(&self, name: &str, ranks: &[c_int]) -> Answer<Arc<Group>> {
        let gone = self.distinct(name, ranks)?;
        let remaining = self.members.iter().zip(gone).filter(|(_, gone)| !gone);
        Ok(self.with(remaining.map(|(member, _)| *member).collect()))
    }

    /// For each member, true if its rank is listed; an error if a rank is listed twice.
    fn distinct(&self, name: &str, ranks: &[c_int]) -> Answer<Vec<bool>> {
        let mut named = vec![false; self.members.len()];
        for &rank in ranks {
            checks::rank(name, rank, self.size(), "the group")?;
            if std::mem::replace(&mut named[rank as usize], true) {
                return Err(fail(MPI_ERR_RANK, format!("argument {name} has rank {rank} twice")));
            }
        }
        Ok(named)
    }

    /// This process's rank in the group.
    pub fn calling_rank(&self) -> Option<c_int> {
        self.rank_of(process::this().number())
    }
}

/// A new handle; MPI_GROUP_EMPTY for the empty group.
pub fn open(group: Arc<Group>) -> MPI_Group {
    if group.members.is_empty() {
        return MPI_GROUP_EMPTY;
    }
    GROUPS.insert(group)
}

pub fn get(handle: MPI_Group) -> Answer<Arc<Group>> {
    match handle {
        MPI_GROUP_EMPTY => Ok(EMPTY.clone()),
        MPI_GROUP_NULL => Err(fail(MPI_ERR_GROUP, "the group is MPI_GROUP_NULL")),
        _ => GROUPS.get(handle).ok_or_else(|| {
            let text = format!("{handle:#010x} is not a group, or was freed");
            fail(MPI_ERR_GROUP, text)
        }),
    }
}

pub fn free(handle: MPI_Group) -> Answer {
    get(handle)?;
    GROUPS.release(handle);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(members: &[c_int]) -> Arc<Group> {
        Group::new(members.to_vec())
    }

    #[test]
    fn sets_keep_the_order_of_the_first() {
        let (a, b) = (of(&[3, 1, 4]), of(&[5, 4, 3]));
        assert_eq!(a.union(&b), of(&[3, 1, 4, 5]));
        assert_eq!(a.filtered(|member| b.rank_of(member).is_some()), of(&[3, 4]));
        assert_eq!(a.filtered(|member| b.rank_of(member).is_none()), of(&[1]));
        assert_eq!(a.including("ranks", &[2, 0]).unwrap(), of(&[4, 3]));
        assert_eq!(a.excluding("ranks", &[1]).unwrap(), of(&[3, 4]));
    }

    #[test]
    fn groups_of_the_same_processes_are_similar() {
        assert_eq!(of(&[1, 2]).compare(&of(&[1, 2])), MPI_IDENT);
        assert_eq!(of(&[1, 2]).compare(&of(&[2, 1])), MPI_SIMILAR);
        assert_eq!(of(&[1, 2]).compare(&of(&[1, 3])), MPI_UNEQUAL);
        assert_eq!(of(&[]).compare(&of(&[])), MPI_IDENT);
    }

    #[test]
    fn a_rank_that_is_not_there_or_comes_twice_is_refused() {
        for ranks in [&[3][..], &[-1], &[0, 0]] {
            assert_eq!(of(&[7, 8, 9]).including("ranks", ranks).unwrap_err().code, MPI_ERR_RANK);
            assert_eq!(of(&[7, 8, 9]).excluding("ranks", ranks).unwrap_err().code, MPI_ERR_RANK);
        }
    }
}
