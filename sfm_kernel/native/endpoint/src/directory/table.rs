//! The table of a world's members, and the rule by which a newcomer gets slot, rank and name.
//!
//! Pure: no files, no sockets. The directory of one machine keeps a table in a file, the directory
//! server in its memory.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Map;
use sfm_native::segment::SLOTS;

use super::member::{JoinRequest, Member};
use crate::error::{Error, Kind, Result};
use crate::name::Name;

pub const MAX_DEPARTED: usize = 64;

/// The members of one world, by slot. At most one entry has a slot, a rank or a name.
///
/// Dead processes stay until a newcomer takes their name or rank, so that a restarted process gets
/// back its own and others can see which processes died.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    pub(super) next_slot: usize,
    pub members: Vec<Member>,
    /// The processes that left, for each name the last one; for processes that wait for one of them.
    pub departed: Vec<Member>,
}

impl Table {
    pub fn loads(text: &[u8]) -> Result<Table> {
        let Table { next_slot, members, departed } =
            serde_json::from_slice(text).map_err(|error| {
                let text = format!(
                "the world's table is damaged ({error}). End its processes, then run `python -m \
                 sfm_kernel clean`"
            );
                Error::new(Kind::World, text)
            })?;
        let at_sites =
            |members: Vec<Member>| members.into_iter().map(Member::at_its_site).collect();
        let mut table =
            Table { next_slot, members: at_sites(members), departed: at_sites(departed) };
        table.members.sort_by_key(|member| member.slot);
        Ok(table)
    }

    pub fn dumps(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers")
    }

    /// Enter a newcomer, whose request was checked. On an error the table is unchanged.
    ///
    /// Without `rank`, a member that is no guest gets the rank of a dead member of the same name,
    /// else that of its name in `names`, else the lowest that no living member has. `names[rank]` is
    /// its name if `name` is None; without either, the name is the rank. The entry of a dead member
    /// with the same name or rank is replaced.
    pub fn admit(
        &mut self,
        request: &JoinRequest,
        lives: impl Fn(&Member) -> bool,
    ) -> Result<Member> {
        let living: Vec<&Member> = self
            .members
            .iter()
            .filter(|member| member.uid != request.uid && lives(member))
            .collect();
        if living.len() >= SLOTS {
            let text = format!("the world has {SLOTS} living processes, which is its limit");
            return Err(Error::new(Kind::WorldFull, text));
        }
        let (rank, name) = self.choose(request, &living)?;
        let living: HashSet<String> = living.iter().map(|member| member.uid.clone()).collect();
        let stays = |member: &Member| {
            let same = member.name == name || (rank.is_some() && member.rank == rank);
            living.contains(&member.uid) || (member.uid != request.uid && !same)
        };
        let mut remaining: Vec<Member> =
            self.members.iter().filter(|member| stays(member)).cloned().collect();
        if remaining.len() == SLOTS {
            // A dead process has to make room.
            let dead = remaining
                .iter()
                .position(|member| !living.contains(&member.uid))
                .expect("not all live");
            remaining.remove(dead);
        }
        let slot = self.free_slot(&remaining);
        let JoinRequest { uid, pid, host, segment, address, info, site, public, .. } =
            request.clone();
        let member =
            Member { uid, slot, rank, name, pid, host, segment, address, info, site, public }
                .at_its_site();
        remaining.push(member.clone());
        remaining.sort_by_key(|member| member.slot);
        self.members = remaining;
        self.next_slot = (slot + 1) % SLOTS;
        Ok(member)
    }

    fn choose(&self, request: &JoinRequest, living: &[&Member]) -> Result<(Option<i64>, Name)> {
        let ranks: HashMap<i64, &Member> =
            living.iter().filter_map(|member| Some((member.rank?, *member))).collect();
        let names: HashMap<&Name, &Member> =
            living.iter().map(|member| (&member.name, *member)).collect();
        let (rank, name) = if request.guest {
            let mut homes =
                (1..).map(|n| Name::Text(if n == 1 { "home".into() } else { format!("home{n}") }));
            let free = || homes.find(|home| !names.contains_key(home)).expect("endless");
            (None, request.name.clone().unwrap_or_else(free))
        } else {
            let rank = match (&request.rank, &request.name) {
                (Some(rank), _) | (None, Some(Name::Rank(rank))) => *rank,
                (None, name) => self.free_rank(name.as_ref(), &request.names, &ranks, &names),
            };
            if let Some(owner) = ranks.get(&rank) {
                return Err(in_use(&format!("rank {rank}"), owner));
            }
            let listed = || usize::try_from(rank).ok().and_then(|nth| request.names.get(nth));
            let name = request.name.as_ref().or_else(listed).cloned();
            (Some(rank), name.unwrap_or(Name::Rank(rank)))
        };
        match names.get(&name) {
            Some(owner) => Err(in_use(&format!("the name {name}"), owner)),
            None => Ok((rank, name)),
        }
    }

    /// The rank of the dead process of this name, otherwise that of the name in the list, otherwise
    /// the lowest free one whose name is free.
    fn free_rank(
        &self,
        name: Option<&Name>,
        listed: &[Name],
        ranks: &HashMap<i64, &Member>,
        names: &HashMap<&Name, &Member>,
    ) -> i64 {
        let former = self.members.iter().filter(|member| Some(&member.name) == name);
        let former = former.filter_map(|member| member.rank);
        let given = (0..).zip(listed).filter(|(_, other)| Some(*other) == name);
        let mut own = former.chain(given.map(|(rank, _)| rank));
        if let Some(rank) = own.find(|rank| !ranks.contains_key(rank)) {
            return rank;
        }
        let is_free = |rank: &i64| {
            let listed = name.is_none().then(|| listed.get(*rank as usize)).flatten();
            !ranks.contains_key(rank) && !listed.is_some_and(|name| names.contains_key(name))
        };
        (0..).find(is_free).expect("endless")
    }

    /// A free slot, in turn: a slot is used again as late as possible, because receivers may not
    /// have read yet the last messages of its former owner.
    fn free_slot(&self, members: &[Member]) -> usize {
        let used: HashSet<usize> = members.iter().map(|member| member.slot).collect();
        let mut slots = (0..SLOTS).map(|nth| (self.next_slot + nth) % SLOTS);
        slots.find(|slot| !used.contains(slot)).expect("one was made free")
    }

    /// The entry with this uid.
    pub fn find(&self, uid: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.uid == uid)
    }

    /// Remove an entry; whether there was one.
    pub fn remove(&mut self, uid: &str) -> bool {
        let Some(index) = self.members.iter().position(|member| member.uid == uid) else {
            return false;
        };
        let departed = Member { info: Map::new(), ..self.members.remove(index) };
        self.departed.retain(|other| other.name != departed.name);
        self.departed.push(departed);
        let surplus = self.departed.len().saturating_sub(MAX_DEPARTED);
        self.departed.drain(..surplus);
        true
    }
}

fn in_use(taken: &str, member: &Member) -> Error {
    let text = format!(
        "{taken} belongs to a living process (pid {} on {}). Choose another, or end that process first",
        member.pid, member.host
    );
    Error::new(Kind::NameInUse, text)
}
