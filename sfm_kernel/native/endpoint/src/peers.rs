//! The other members of the world, and whether they live. As `sfm_kernel/endpoint/peers.py`.

use std::collections::{HashMap, HashSet};

use crate::directory::{Directory, Member, Stamp};
use crate::error::{Error, Kind, Result};
use crate::name::Name;

/// The knowledge of one endpoint about the others.
pub struct Peers {
    seen: Option<Option<Stamp>>,
    members: Vec<Member>,
    /// Former owners of names that nobody has now, by name and by rank.
    departed: HashMap<Name, Member>,
    /// Members that had left before this endpoint joined.
    before: HashSet<String>,
}

impl Peers {
    pub fn new(directory: &dyn Directory) -> Result<Peers> {
        let before = directory
            .seen(true, &|| Ok(()))?
            .departed
            .into_iter()
            .map(|member| member.uid)
            .collect();
        let (members, departed) = Default::default();
        let mut peers = Peers { seen: None, members, departed, before };
        peers.refresh(directory)?;
        Ok(peers)
    }

    /// All present members of the world, including the dead that nobody has replaced. Cheap if
    /// nothing has changed.
    pub fn refresh(&mut self, directory: &dyn Directory) -> Result<&[Member]> {
        if self.seen != Some(directory.stamp()) {
            let seen = directory.seen(true, &|| Ok(()))?;
            // Also members that came and left between two refreshes: a wait for them must not
            // depend on when this endpoint has refreshed.
            let departed =
                seen.departed.into_iter().filter(|member| !self.before.contains(&member.uid));
            for member in std::mem::take(&mut self.members).into_iter().chain(departed) {
                if let Some(rank) = member.rank {
                    self.departed.insert(Name::Rank(rank), member.clone());
                }
                self.departed.insert(member.name.clone(), member);
            }
            (self.members, self.seen) = (seen.members, Some(seen.stamp));
            let members = &self.members;
            self.departed.retain(|name, _| find(members, name).is_none());
        }
        Ok(&self.members)
    }

    /// The member with this name or rank, as far as is known.
    pub fn known(&self, name: &Name) -> Option<&Member> {
        find(&self.members, name)
    }

    /// The member with this name or rank.
    pub fn lookup(&mut self, name: &Name, directory: &dyn Directory) -> Result<Option<Member>> {
        if self.known(name).is_none() {
            self.refresh(directory)?;
        }
        Ok(self.known(name).cloned())
    }

    /// The member that had it, and has left since this endpoint joined.
    pub fn departed(&self, name: &Name) -> Option<&Member> {
        self.departed.get(name)
    }

    /// The living member with this name or rank.
    pub fn living(&mut self, name: &Name, directory: &dyn Directory) -> Result<Member> {
        let lost = || Error::peer_lost(&name.to_string(), "and did not receive this message");
        if let Some(member) = self.lookup(name, directory)? {
            if directory.alive(&member, &|| Ok(())) {
                return Ok(member);
            }
            // It may have been replaced.
            self.refresh(directory)?;
            match self.known(name).cloned() {
                Some(other) if other.uid != member.uid && directory.alive(&other, &|| Ok(())) => {
                    return Ok(other)
                }
                Some(_) => return Err(lost()),
                None => {}
            }
        }
        if self.departed(name).is_some() {
            return Err(lost());
        }
        let living = self.members.iter().filter(|member| directory.alive(member, &|| Ok(())));
        let mut living: Vec<_> = living.collect();
        living.sort_by_key(|member| member.rank.unwrap_or(i64::MAX));
        let names: Vec<_> = living.iter().map(|member| member.name.to_string()).collect();
        let present = if names.is_empty() { "nobody yet".to_owned() } else { names.join(", ") };
        let world = directory.world();
        let text = format!("no process is named {name} in world '{world}'. There: {present}");
        Err(Error::new(Kind::UnknownName, text))
    }
}

/// The member with this name or rank; a name goes before a rank.
fn find<'a>(members: &'a [Member], name: &Name) -> Option<&'a Member> {
    let named = members.iter().find(|member| member.name == *name);
    let Name::Rank(rank) = name else { return named };
    named.or_else(|| members.iter().find(|member| member.rank == Some(*rank)))
}
