//! All connections of a gateway, by index. An index is used again, an Id is not.

use super::connection::Connection;
use super::poll::Id;
use super::wide::Wide;

#[derive(Default)]
pub struct Table {
    entries: Vec<(u32, Option<Box<Connection>>)>,
    free: Vec<usize>,
}

impl Table {
    pub fn insert(&mut self, make: impl FnOnce(Id) -> Connection) -> Id {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push((0, None));
            self.entries.len() - 1
        });
        let id = Id::new(index, self.entries[index].0);
        self.entries[index].1 = Some(Box::new(make(id)));
        id
    }

    pub fn get(&self, id: Id) -> Option<&Connection> {
        self.entries.get(id.index())?.1.as_deref().filter(|connection| connection.id == id)
    }

    pub fn get_mut(&mut self, id: Id) -> Option<&mut Connection> {
        self.entries.get_mut(id.index())?.1.as_deref_mut().filter(|connection| connection.id == id)
    }

    pub fn remove(&mut self, id: Id) -> Option<Box<Connection>> {
        self.get(id)?;
        let (generation, entry) = &mut self.entries[id.index()];
        // Generations with the highest bit are reserved (`Id::NONE` and others).
        *generation = (*generation + 1) & 0x7fff_ffff;
        self.free.push(id.index());
        entry.take()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.entries.iter().filter_map(|(_, connection)| connection.as_deref())
    }

    /// The ids of the connections that `filter` accepts.
    pub fn ids(&self, filter: impl Fn(&Connection) -> bool) -> Vec<Id> {
        self.iter()
            .filter(|connection| filter(connection))
            .map(|connection| connection.id)
            .collect()
    }

    /// The state of a connection between gateways.
    pub fn wide(&self, id: Id) -> Option<&Wide> {
        self.get(id)?.wide.as_deref()
    }

    pub fn wide_mut(&mut self, id: Id) -> Option<&mut Wide> {
        self.get_mut(id)?.wide.as_deref_mut()
    }
}
