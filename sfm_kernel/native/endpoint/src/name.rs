//! Addresses of processes: a rank, or a given name.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Name {
    Rank(i64),
    Text(String),
}

/// As Python writes it, and observers show it: a number, or a text in quotes.
impl fmt::Display for Name {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Rank(rank) => write!(to, "{rank}"),
            Name::Text(text) => to.write_str(&crate::wait_facts::quoted(text)),
        }
    }
}

impl From<i64> for Name {
    fn from(rank: i64) -> Name {
        Name::Rank(rank)
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::Text(text.to_owned())
    }
}
