//! The keys by which members are recognised: who may connect, and whose connection it is.
//!
//! The directory announces the public half of each member's pair. In a world of one machine that is
//! a file, which is read when somebody shows a key that nobody has announced yet: a member writes
//! its entry before it connects.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use serde_json::Value;

use crate::wire::zmq::Key;

#[derive(Default)]
pub(super) struct Announced {
    keys: HashMap<u128, Key>,
    owners: HashMap<Key, u128>,
    /// Members that were put out: their keys are never admitted again.
    expelled: HashSet<u128>,
    /// The table of a world of one machine.
    table: Option<PathBuf>,
}

impl Announced {
    pub fn new(table: Option<PathBuf>) -> Announced {
        Announced { table, ..Announced::default() }
    }

    pub fn insert(&mut self, uid: u128, key: Key) {
        if self.expelled.contains(&uid) {
            return;
        }
        if let Some(former) = self.keys.insert(uid, key) {
            self.owners.remove(&former);
        }
        self.owners.insert(key, uid);
    }

    pub fn expel(&mut self, uid: u128) {
        self.expelled.insert(uid);
        if let Some(key) = self.keys.remove(&uid) {
            self.owners.remove(&key);
        }
    }

    pub fn key_of(&self, uid: u128) -> Option<Key> {
        self.keys.get(&uid).copied()
    }

    /// The member with this key, if it was announced.
    pub fn owner(&mut self, key: &Key) -> Option<u128> {
        if !self.owners.contains_key(key) {
            self.read_table();
        }
        self.owners.get(key).copied()
    }

    /// An entry that cannot be read is left out: Python says what is wrong with a table.
    fn read_table(&mut self) {
        let read = |path| serde_json::from_slice(&std::fs::read(path).ok()?).ok();
        let Some(table) = self.table.as_ref().and_then(read) else { return };
        let table: Value = table;
        for entry in table["members"].as_array().into_iter().flatten() {
            let uid = entry["uid"].as_str().and_then(|uid| u128::from_str_radix(uid, 16).ok());
            if let (Some(uid), Some(key)) = (uid, entry["public"].as_str().and_then(parse_key)) {
                self.insert(uid, key);
            }
        }
    }
}

/// A key from its 64 hexadecimal digits.
pub fn parse_key(digits: &str) -> Option<Key> {
    let high = u128::from_str_radix(digits.get(..32)?, 16).ok()?;
    let low = u128::from_str_radix(digits.get(32..).filter(|low| low.len() == 32)?, 16).ok()?;
    let mut key = [0; 32];
    key[..16].copy_from_slice(&high.to_be_bytes());
    key[16..].copy_from_slice(&low.to_be_bytes());
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_owner_until_it_is_put_out() {
        let mut announced = Announced::default();
        announced.insert(7, [1; 32]);
        announced.insert(8, [2; 32]);
        assert_eq!((announced.owner(&[1; 32]), announced.key_of(8)), (Some(7), Some([2; 32])));
        announced.insert(7, [3; 32]);
        assert_eq!((announced.owner(&[1; 32]), announced.owner(&[3; 32])), (None, Some(7)));
        announced.expel(7);
        announced.insert(7, [3; 32]);
        assert_eq!((announced.owner(&[3; 32]), announced.key_of(7)), (None, None));
    }

    #[test]
    fn the_table_of_one_machine_is_read_for_an_unknown_key() {
        let path = std::env::temp_dir().join(format!("sfm-announced-{}", std::process::id()));
        let mut announced = Announced::new(Some(path.clone()));
        assert_eq!(announced.owner(&[0xab; 32]), None, "there is no table yet");
        let (uid, key) = ("0".repeat(31) + "7", "ab".repeat(32));
        let entries = format!(r#"{{"uid": "{uid}", "public": "{key}"}}, {{"uid": 5}}"#);
        std::fs::write(&path, format!(r#"{{"members": [{entries}]}}"#)).unwrap();
        assert_eq!(announced.owner(&[0xab; 32]), Some(7));
        std::fs::write(&path, "damaged").unwrap();
        assert_eq!(announced.owner(&[0xcd; 32]), None);
        assert_eq!(announced.owner(&[0xab; 32]), Some(7));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn keys_are_parsed_whole() {
        assert_eq!(parse_key(&"0f".repeat(32)), Some([15; 32]));
        for wrong in ["", "0f", &"0f".repeat(33), &"zz".repeat(32), &"é".repeat(32)] {
            assert_eq!(parse_key(wrong), None, "{wrong}");
        }
    }
}
