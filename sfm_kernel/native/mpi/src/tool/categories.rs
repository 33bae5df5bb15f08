//! Categories of the tool interface's variables and events.

use super::{control, events, performance};
use crate::handles::*;

/// A category below "SFM", which contains all of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Category {
    Messages = 1,
    Queue,
    Waiting,
    Collectives,
    Packets,
    Limits,
}

/// Name and description by number.
pub const ALL: [(&str, &str); 7] = [
    ("SFM", "all variables and events of this library"),
    ("messages", "messages that the program has sent and received"),
    ("queue", "messages and receives that wait for each other"),
    ("waiting", "the process's state, and its waits"),
    ("collectives", "collective calls, and their messages"),
    ("packets", "packets of the inbox below the messages"),
    ("limits", "sizes at which messages change their protocol, and constants of this library"),
];

/// The kinds of entries of a category.
pub enum Entries {
    Control,
    Performance,
    Events,
    Categories,
}

/// The indices of a category's entries of one kind.
pub fn indices(category: usize, entries: Entries) -> Vec<c_int> {
    let of = |all: &mut dyn Iterator<Item = Category>| {
        let all = all.enumerate().filter(|(_, other)| *other as usize == category);
        all.map(|(index, _)| index as c_int).collect()
    };
    match entries {
        Entries::Control => of(&mut control::ALL.iter().map(|_| Category::Limits)),
        Entries::Performance => of(&mut performance::ALL.iter().map(|variable| variable.category)),
        Entries::Events => of(&mut events::ALL.iter().map(|_| Category::Messages)),
        Entries::Categories if category == 0 => (1..ALL.len() as c_int).collect(),
        Entries::Categories => Vec::new(),
    }
}
