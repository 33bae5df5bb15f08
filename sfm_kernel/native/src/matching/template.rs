//! Templates: the native part of what a receive wants.

use crate::packet::Packet;
use crate::value::{compare, key_of, Key, Keyed, Verdict};

/// One condition of a template.
#[derive(Clone, Debug)]
pub struct Condition {
    pub name: Box<str>,
    /// The value, where it can be compared natively; None leaves the comparison to Python.
    pub key: Option<Key>,
    /// The wanted value can equal nothing that is native (NaN).
    pub never_native: bool,
}

/// The native part of a template.
#[derive(Clone, Debug, Default)]
pub struct Template {
    pub conditions: Vec<Condition>,
}

/// None: does not match. Some(true): matches. Some(false): matches if Python agrees.
pub fn matches(template: &Template, packet: &Packet) -> Option<bool> {
    let mut certain = true;
    for wanted in &template.conditions {
        let one = packet.find(&wanted.name)?;
        let verdict = match &wanted.key {
            Some(key) => compare(key, &one),
            None if wanted.never_native && !matches!(key_of(&one), Keyed::Opaque) => Verdict::No,
            None => Verdict::Unknown,
        };
        match verdict {
            Verdict::Yes => {}
            Verdict::No => return None,
            Verdict::Unknown => certain = false,
        }
    }
    Some(certain)
}
