//! The others: who is in the world, and whether they live. As `sfm_kernel/endpoint/peers.py`.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::directory::{is_alive, Directory, Member};
use crate::error::{Error, Kind, Result};
use crate::name::Name;

/// What one endpoint knows of the others.
pub struct Peers {
    seen: Option<Option<(u64, i64, i64)>>,
    members: Vec<Member>,
    /// Who had names that nobody has now, by name and by rank.
    left: HashMap<Name, Member>,
    /// Who had left before this endpoint joined.
    before: HashSet<String>,
}

impl Peers {
    pub fn new(directory: &Directory) -> Result<Peers> {
        let before = directory.seen()?.departed.into_iter().map(|one| one.uid).collect();
        let (members, left) = Default::default();
        let mut peers = Peers { seen: None, members, left, before };
        peers.refresh(directory)?;
        Ok(peers)
    }

    /// Everybody in the world as of now, the dead that nobody replaced among them. Cheap where
    /// nothing has changed.
    pub fn refresh(&mut self, directory: &Directory) -> Result<&[Member]> {
        if self.seen != Some(directory.stamp()) {
            let seen = directory.seen()?;
            // Also who came and left while nobody here looked: what a wait for it does must not
            // depend on when this endpoint has looked.
            let departed = seen.departed.into_iter().filter(|one| !self.before.contains(&one.uid));
            for one in std::mem::take(&mut self.members).into_iter().chain(departed) {
                if let Some(rank) = one.rank {
                    self.left.insert(Name::Rank(rank), one.clone());
                }
                self.left.insert(one.name.clone(), one);
            }
            (self.members, self.seen) = (seen.members, Some(seen.stamp));
            let members = &self.members;
            self.left.retain(|name, _| find(members, name).is_none());
        }
        Ok(&self.members)
    }

    /// Who has this name or rank, as far as is known.
    pub fn known(&self, name: &Name) -> Option<&Member> {
        find(&self.members, name)
    }

    /// Who has this name or rank.
    pub fn lookup(&mut self, name: &Name, directory: &Directory) -> Result<Option<Member>> {
        if self.known(name).is_none() {
            self.refresh(directory)?;
        }
        Ok(self.known(name).cloned())
    }

    /// Who had it, and has left since this endpoint joined.
    pub fn who_left(&self, name: &Name) -> Option<&Member> {
        self.left.get(name)
    }

    /// Whether this incarnation lives: it holds its segment's lock and has not left.
    pub fn alive(&mut self, member: &Member, directory: &Directory) -> bool {
        // Who cannot ask the table any more goes on with what was known before.
        let _ = self.refresh(directory);
        is_alive(Path::new(&member.segment)) && self.members.iter().any(|one| one.uid == member.uid)
    }

    /// The living one of this name or rank.
    pub fn living(&mut self, name: &Name, directory: &Directory) -> Result<Member> {
        let lost = || Error::peer_lost(&name.to_string(), "and did not receive this message");
        if let Some(member) = self.lookup(name, directory)? {
            if self.alive(&member, directory) {
                return Ok(member);
            }
            // It may have been replaced.
            match self.known(name).cloned() {
                Some(other) if other.uid != member.uid && self.alive(&other, directory) => {
                    return Ok(other)
                }
                Some(_) => return Err(lost()),
                None => {}
            }
        }
        if self.who_left(name).is_some() {
            return Err(lost());
        }
        let living = self.members.iter().filter(|one| is_alive(Path::new(&one.segment)));
        let names: Vec<_> = living.map(|one| one.name.to_string()).collect();
        let there = if names.is_empty() { "nobody yet".to_owned() } else { names.join(", ") };
        let world = directory.world();
        let text = format!("no process is named {name} in world '{world}'. There: {there}");
        Err(Error::new(Kind::UnknownName, text))
    }
}

/// A name goes before a rank.
fn find<'a>(members: &'a [Member], name: &Name) -> Option<&'a Member> {
    let named = members.iter().find(|one| one.name == *name);
    let Name::Rank(rank) = name else { return named };
    named.or_else(|| members.iter().find(|one| one.rank == Some(*rank)))
}
