//! Templates: the native part of what a receive wants.

use smallvec::SmallVec;

use crate::packet::Packet;
use crate::value::{compare, of_attribute, Native, Scalar, Verdict};

/// One condition of a template.
#[derive(Clone, Copy, Debug)]
pub struct Condition<'a> {
    pub name: &'a str,
    /// The value, where it can be compared natively; None leaves the comparison to Python.
    pub wanted: Option<Scalar<'a>>,
    /// The wanted value can equal nothing that is native (NaN).
    pub never_native: bool,
}

/// The native part of a template.
#[derive(Clone, Debug, Default)]
pub struct Template<'a> {
    pub conditions: SmallVec<[Condition<'a>; 4]>,
}

/// None: does not match. Some(true): matches. Some(false): matches if Python agrees.
pub fn matches(template: &Template<'_>, packet: &Packet) -> Option<bool> {
    let mut certain = true;
    for condition in &template.conditions {
        let one = packet.find(condition.name)?;
        let verdict = match &condition.wanted {
            Some(wanted) => compare(wanted, &one),
            None if condition.never_native && !matches!(of_attribute(&one), Native::Opaque) => {
                Verdict::No
            }
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
