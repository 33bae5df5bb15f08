//! A world's table of members, and the rule by which a newcomer gets slot, rank and name. The same
//! as `sfm_kernel/directory/table.py`, whose tests hold for both; the file is the same, too.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sfm_native::segment::SLOTS;

use crate::error::{Error, Kind, Result};
use crate::name::Name;

const MAX_DEPARTED: usize = 64;

/// One incarnation of a process of a world: see `Member` in `sfm_kernel/transport/base.py`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    pub uid: String,
    pub slot: usize,
    pub rank: Option<i64>,
    pub name: Name,
    pub pid: i64,
    pub host: String,
    pub segment: String,
    pub address: String,
    #[serde(default)]
    pub info: Map<String, Value>,
    #[serde(default)]
    pub site: String,
    /// Of a process that listens; programs without Python do not.
    #[serde(default)]
    pub public: String,
}

#[derive(Clone, Debug, Default)]
pub struct JoinRequest {
    pub name: Option<String>,
    pub rank: Option<i64>,
    /// No rank: a process that watches and talks.
    pub guest: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Table {
    pub(super) next_slot: usize,
    pub members: Vec<Member>,
    pub departed: Vec<Member>,
}

/// A newcomer's data that do not depend on the table.
pub struct Newcomer {
    pub uid: String,
    pub pid: i64,
    pub host: String,
    pub segment: String,
    pub site: String,
}

impl JoinRequest {
    /// Check that the request can be fulfilled at all.
    pub fn check(&self) -> Result<()> {
        let bad = |text: String| Err(Error::new(Kind::BadName, text));
        if let Some(name) = &self.name {
            let length = name.chars().count();
            if !(1..=64).contains(&length) {
                return bad(format!("a name has 1 to 64 characters, and {name:?} has {length}"));
            }
            let is_printed = |c: char| !c.is_control() && (c == ' ' || !c.is_whitespace());
            let digits = name.trim_start_matches(['+', '-']);
            let is_number = !digits.is_empty() && digits.chars().all(char::is_numeric);
            if is_number || !name.chars().all(is_printed) {
                let why = "would be taken for a rank, or cannot be printed";
                return bad(format!("the name {name:?} {why}"));
            }
        }
        match self.rank {
            Some(rank) if rank < 0 => bad(format!("a rank is an integer, 0 or more, not {rank}")),
            Some(rank) if self.guest => {
                bad(format!("a guest has no rank, and this one asks for {rank}"))
            }
            _ => Ok(()),
        }
    }
}

impl Table {
    pub fn loads(text: &[u8]) -> Result<Table> {
        let mut table: Table = serde_json::from_slice(text).map_err(|error| {
            let text = format!(
                "the world's table is damaged ({error}). End its processes, then run `python -m \
                 sfm_kernel clean`"
            );
            Error::new(Kind::World, text)
        })?;
        table.members.sort_by_key(|member| member.slot);
        Ok(table)
    }

    pub fn dumps(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers")
    }

    /// Enter a newcomer. On an error the table is unchanged.
    pub fn admit(
        &mut self,
        newcomer: Newcomer,
        request: &JoinRequest,
        lives: impl Fn(&Member) -> bool,
    ) -> Result<Member> {
        let living: Vec<&Member> = self
            .members
            .iter()
            .filter(|member| member.uid != newcomer.uid && lives(member))
            .collect();
        if living.len() >= SLOTS {
            let text = format!("the world has {SLOTS} living processes, which is its limit");
            return Err(Error::new(Kind::WorldFull, text));
        }
        let (rank, name) = self.choose(request, &living)?;
        let living: HashSet<String> = living.iter().map(|member| member.uid.clone()).collect();
        let stays = |member: &Member| {
            let same = member.name == name || (rank.is_some() && member.rank == rank);
            living.contains(&member.uid) || (member.uid != newcomer.uid && !same)
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
        let Newcomer { uid, pid, host, segment, site } = newcomer;
        let (address, info, public) = Default::default();
        let member =
            Member { uid, slot, rank, name, pid, host, segment, address, info, site, public };
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
        let given = request.name.clone().map(Name::Text);
        let (rank, name) = if request.guest {
            let mut homes =
                (1..).map(|n| Name::Text(if n == 1 { "home".into() } else { format!("home{n}") }));
            let free = || homes.find(|home| !names.contains_key(home)).expect("endless");
            (None, given.unwrap_or_else(free))
        } else {
            let rank = request.rank.unwrap_or_else(|| self.free_rank(given.as_ref(), &ranks));
            if let Some(owner) = ranks.get(&rank) {
                return Err(in_use(&format!("rank {rank}"), owner));
            }
            (Some(rank), given.unwrap_or(Name::Rank(rank)))
        };
        match names.get(&name) {
            Some(owner) => Err(in_use(&format!("the name {name}"), owner)),
            None => Ok((rank, name)),
        }
    }

    /// The rank of the dead process of this name, otherwise the lowest free one.
    fn free_rank(&self, name: Option<&Name>, ranks: &HashMap<i64, &Member>) -> i64 {
        let former = self.members.iter().filter(|member| name == Some(&member.name));
        let former = former.filter_map(|member| member.rank).find(|rank| !ranks.contains_key(rank));
        former.unwrap_or_else(|| (0..).find(|rank| !ranks.contains_key(rank)).expect("endless"))
    }

    /// A free slot, in turn: a slot is used again as late as possible, because receivers may not
    /// have read yet the last messages of its former owner.
    fn free_slot(&self, members: &[Member]) -> usize {
        let used: HashSet<usize> = members.iter().map(|member| member.slot).collect();
        let mut slots = (0..SLOTS).map(|nth| (self.next_slot + nth) % SLOTS);
        slots.find(|slot| !used.contains(slot)).expect("one was made free")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(table: &mut Table, uid: &str, request: JoinRequest, dead: &[&str]) -> Result<Member> {
        request.check()?;
        let (host, segment) = ("here".to_owned(), format!("/{uid}.seg"));
        let site = host.clone();
        let newcomer = Newcomer { uid: uid.to_owned(), pid: 1, host, segment, site };
        table.admit(newcomer, &request, |member| !dead.contains(&member.uid.as_str()))
    }

    fn named(name: &str) -> JoinRequest {
        JoinRequest { name: Some(name.to_owned()), ..JoinRequest::default() }
    }

    #[test]
    fn ranks_names_and_slots_are_given_as_python_gives_them() {
        let mut table = Table::default();
        let first = enter(&mut table, "a", JoinRequest::default(), &[]).unwrap();
        assert_eq!((first.slot, first.rank, first.name), (0, Some(0), Name::Rank(0)));
        let second = enter(&mut table, "b", named("B"), &[]).unwrap();
        assert_eq!((second.slot, second.rank), (1, Some(1)));
        let guest =
            enter(&mut table, "c", JoinRequest { guest: true, ..JoinRequest::default() }, &[])
                .unwrap();
        assert_eq!((guest.rank, guest.name), (None, "home".into()));
        // A dead process's name brings its rank; its slot is not used again at once.
        let again = enter(&mut table, "d", named("B"), &["b"]).unwrap();
        assert_eq!((again.slot, again.rank), (3, Some(1)));
        assert_eq!(table.members.len(), 3);
        let taken = enter(&mut table, "e", named("B"), &[]).unwrap_err();
        assert_eq!(taken.kind, Kind::NameInUse);
        let rank = JoinRequest { rank: Some(0), ..JoinRequest::default() };
        assert_eq!(enter(&mut table, "e", rank, &[]).unwrap_err().kind, Kind::NameInUse);
        assert!(table.remove("a") && !table.remove("a"));
        assert_eq!(table.departed.len(), 1);
        let text = table.dumps();
        assert_eq!(Table::loads(&text).unwrap().dumps(), text);
        assert_eq!(Table::loads(b"{").unwrap_err().kind, Kind::World);
    }

    #[test]
    fn impossible_names_are_refused() {
        for name in ["", "12", "-3", "a\nb", &"x".repeat(65)] {
            assert_eq!(named(name).check().unwrap_err().kind, Kind::BadName, "{name:?}");
        }
        assert!(named("Zoë the 3rd").check().is_ok());
        assert!(JoinRequest { rank: Some(-1), ..JoinRequest::default() }.check().is_err());
        assert!(JoinRequest { rank: Some(1), guest: true, ..JoinRequest::default() }
            .check()
            .is_err());
    }

    #[test]
    fn the_public_keys_of_processes_that_listen_stay() {
        let mut table = Table::default();
        enter(&mut table, "1", named("A"), &[]).unwrap();
        table.members[0].public = "7f".repeat(32);
        let text = table.dumps();
        let mut read = Table::loads(&text).unwrap();
        enter(&mut read, "2", named("B"), &[]).unwrap();
        let publics: Vec<&str> = read.members.iter().map(|one| one.public.as_str()).collect();
        assert_eq!(publics, ["7f".repeat(32).as_str(), ""]);
    }

    #[test]
    fn only_the_latest_departed_are_remembered() {
        let mut table = Table::default();
        for nth in 0..70 {
            let uid = format!("{nth}");
            enter(&mut table, &uid, named(&format!("n{nth}")), &[]).unwrap();
            table.remove(&uid);
        }
        assert_eq!(table.departed.len(), MAX_DEPARTED);
        assert_eq!(table.departed[0].name, "n6".into());
        assert_eq!(table.next_slot, 70);
    }
}
