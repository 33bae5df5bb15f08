//! The directory's entries, and a process's request for one.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::site::{check_site, site_of_host};
use crate::error::{Error, Kind, Result};
use crate::name::Name;
use crate::wait_facts::quoted;

/// One incarnation of a process of a world, as the directory knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// 32 hexadecimal digits, new each time a process joins.
    pub uid: String,
    /// A number below `SLOTS`, unique among the living members.
    pub slot: usize,
    /// 0, 1, 2 … for processes that compute; None for a guest, such as a notebook.
    pub rank: Option<i64>,
    /// Its address for others; the rank if the user gave no other name.
    pub name: Name,
    /// For people; never used to decide whether it lives.
    pub pid: i64,
    pub host: String,
    /// The path of its segment on its machine.
    pub segment: String,
    /// It listens there (`tcp://10.0.0.7:41234`); empty if it does not listen.
    pub address: String,
    /// What a front end wants others to see, such as ipyparallel's engine id. `plain`: it is a
    /// program with ZeroMQ alone.
    #[serde(default)]
    pub info: Map<String, Value>,
    /// The name of its site; by default that of its machine.
    #[serde(default)]
    pub site: String,
    /// The public half of its key pair, 64 hexadecimal digits; empty if it does not listen.
    #[serde(default)]
    pub public: String,
}

impl Member {
    /// The same, with its machine's site if it has none.
    pub fn at_its_site(mut self) -> Member {
        if self.site.is_empty() {
            self.site = site_of_host(&self.host);
        }
        self
    }

    /// Whether it is a program with ZeroMQ alone, which reads no pickled values, and no frames of
    /// other sites.
    pub fn is_plain(&self) -> bool {
        match self.info.get("plain") {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Number(number)) => number.as_f64() != Some(0.0),
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        }
    }

    /// All that identifies it; `info` is not part of that.
    pub fn identity(&self) -> impl PartialEq + std::hash::Hash + '_ {
        let Member { uid, slot, rank, name, pid, host, segment, address, site, public, .. } = self;
        ((uid, slot, rank, name, pid, host), (segment, address, site, public))
    }
}

/// A process's request to join: `Directory::join` and `Member` explain the fields.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    pub uid: String,
    pub pid: i64,
    pub host: String,
    pub segment: String,
    pub address: String,
    #[serde(default)]
    pub name: Option<Name>,
    #[serde(default)]
    pub rank: Option<i64>,
    /// No rank: a process that watches and talks.
    #[serde(default)]
    pub guest: bool,
    /// Names by rank, for a process that does not know its rank yet.
    #[serde(default)]
    pub names: Vec<Name>,
    #[serde(default)]
    pub info: Map<String, Value>,
    #[serde(default)]
    pub site: String,
    #[serde(default)]
    pub public: String,
}

impl JoinRequest {
    /// Check that the request can be fulfilled at all.
    pub fn check(&self) -> Result<()> {
        if !self.public.is_empty() && !is_hexadecimal(&self.public, 64) {
            return bad(format!("public key {:?}: 64 hexadecimal digits are needed", self.public));
        }
        if !is_hexadecimal(&self.uid, 32) {
            return bad(format!("uid {:?}: 32 hexadecimal digits are needed", self.uid));
        }
        self.name.iter().chain(&self.names).try_for_each(check_name)?;
        if let Some(rank) = self.rank {
            check_rank(rank)?;
        }
        if !self.site.is_empty() {
            check_site(&self.site, "site")?;
        }
        match (&self.name, &self.rank) {
            (Some(Name::Rank(rank)), _) | (_, Some(rank)) if self.guest => {
                bad(format!("a guest has no rank, and this one asks for {rank}"))
            }
            (Some(Name::Rank(name)), Some(rank)) if name != rank => {
                bad(format!("the name {name} is that of rank {name}, and not of rank {rank}"))
            }
            _ => Ok(()),
        }
    }
}

/// Check a rank, or the name of a process: 1 to 64 printable characters that are no number.
pub fn check_name(name: &Name) -> Result<()> {
    let text = match name {
        Name::Rank(rank) => return check_rank(*rank),
        Name::Text(text) => text,
    };
    let length = text.chars().count();
    if !(1..=64).contains(&length) {
        let shown = quoted(text);
        return bad(format!("a name is a text of 1 to 64 characters, not {length}: {shown}"));
    }
    let digits = text.trim_start_matches(['+', '-']);
    let is_number = !digits.is_empty() && digits.chars().all(char::is_numeric);
    if is_number || !text.chars().all(is_printable) {
        let why = "would be taken for a rank, or cannot be printed";
        return bad(format!("the name {} {why}", quoted(text)));
    }
    Ok(())
}

pub fn check_rank(rank: i64) -> Result<()> {
    if rank < 0 {
        return bad(format!("a rank is an integer, 0 or more, not {rank}"));
    }
    Ok(())
}

fn bad<T>(text: String) -> Result<T> {
    Err(Error::new(Kind::BadName, text))
}

/// Whether the text has this many hexadecimal digits, and nothing else.
pub fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a terminal shows the character, as Python's `str.isprintable` has it: spaces other than
/// the usual one, and what controls or joins other characters, are not shown.
pub fn is_printable(c: char) -> bool {
    // The standard library knows it only as the text of an escape. The letter before keeps marks,
    // which combine with a letter, from being escaped for another reason.
    matches!(c, '\\' | '"' | '\'') || format!("x{c}").escape_debug().nth(1) == Some(c)
}

/// A gateway of a site, as the directory server knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gateway {
    /// 32 hexadecimal digits, new each time one starts.
    pub uid: String,
    pub site: String,
    /// Processes of its site, and other gateways, connect to it (`tcp://10.0.0.7:4000`).
    pub address: String,
    /// For people: `A-1`, the first of site A.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_shows_is_printable() {
        for c in ['a', ' ', '"', '\\', 'é', '\u{301}', '漢', '½', '😀'] {
            assert!(is_printable(c), "{c:?}");
        }
        for c in ['\n', '\t', '\0', '\u{7f}', '\u{a0}', '\u{200b}', '\u{2028}', '\u{e000}'] {
            assert!(!is_printable(c), "{c:?}");
        }
    }

    #[test]
    fn only_true_values_make_a_plain_program() {
        let member = |plain: Value| {
            let record = serde_json::json!({
                "uid": "1", "slot": 0, "rank": 0, "name": 0, "pid": 1, "host": "a b", "segment": "",
                "address": "", "info": {"plain": plain},
            });
            serde_json::from_value::<Member>(record).unwrap().at_its_site()
        };
        assert!(member(true.into()).is_plain() && !member(false.into()).is_plain());
        assert!(!member(Value::Null).is_plain());
        assert_eq!(member(Value::Null).site, "ab");
    }
}
