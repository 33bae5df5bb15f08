//! Categories: what belongs together.

use super::{control, events, performance};
use crate::handles::*;

/// One below "SFM", which has all of them.
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
    ("SFM", "all that this library tells of itself"),
    ("messages", "what the program has sent and received"),
    ("queue", "messages and receives that wait for each other"),
    ("waiting", "what the process waits for, and how long"),
    ("collectives", "collective calls, and the messages that they are made of"),
    ("packets", "the queue below the messages"),
    ("limits", "sizes at which messages go another way, and facts about this library"),
];

/// What a category has, by kinds of things.
pub enum Part {
    Control,
    Performance,
    Events,
    Categories,
}

/// The numbers of what a category has.
pub fn indices(category: usize, part: Part) -> Vec<c_int> {
    let of = |all: &mut dyn Iterator<Item = Category>| {
        let all = all.enumerate().filter(|(_, one)| *one as usize == category);
        all.map(|(index, _)| index as c_int).collect()
    };
    match part {
        Part::Control => of(&mut control::ALL.iter().map(|_| Category::Limits)),
        Part::Performance => of(&mut performance::ALL.iter().map(|one| one.category)),
        Part::Events => of(&mut events::ALL.iter().map(|_| Category::Messages)),
        Part::Categories if category == 0 => (1..ALL.len() as c_int).collect(),
        Part::Categories => Vec::new(),
    }
}
