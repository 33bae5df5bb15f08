//! Templates: the natively comparable part of a receive's conditions.

use smallvec::SmallVec;

use crate::packet::{Envelope, Packet};
use crate::value::{compare, from_attribute, Native, Scalar, Verdict};

#[derive(Clone, Copy, Debug)]
pub struct Condition<'a> {
    pub name: &'a str,
    /// The value, if it can be compared natively; None leaves the comparison to Python.
    pub expected: Option<Scalar<'a>>,
    /// The value can equal no native one (NaN).
    pub never_native: bool,
}

/// The native part of a template.
#[derive(Clone, Debug, Default)]
pub struct Template<'a> {
    pub conditions: SmallVec<[Condition<'a>; 4]>,
    /// The conditions as numbers, if they are about an envelope's numbers and nothing else.
    pub numbers: Option<Numbers>,
}

/// The envelope numbers that a receive accepts; None: any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub source: Option<i64>,
    pub tag: Option<i64>,
}

impl Numbers {
    pub fn fit(&self, envelope: &Envelope) -> bool {
        self.source.is_none_or(|source| source == envelope.source)
            && self.tag.is_none_or(|tag| tag == envelope.tag)
    }
}

impl Template<'_> {
    /// The template of a receive by numbers. The same as one by the names `src` and `tag`, by which
    /// the queue finds them, but compared faster, and met by envelopes only.
    pub fn of(numbers: Numbers) -> Template<'static> {
        let condition = |name, number: Option<i64>| {
            let expected = Some(Scalar::Int(number?));
            Some(Condition { name, expected, never_native: false })
        };
        let both = [condition("tag", numbers.tag), condition("src", numbers.source)];
        Template { conditions: both.into_iter().flatten().collect(), numbers: Some(numbers) }
    }
}

/// None: does not match. Some(true): matches. Some(false): matches if Python agrees.
pub fn matches(template: &Template<'_>, packet: &Packet) -> Option<bool> {
    if let Some(numbers) = &template.numbers {
        return numbers.fit(&packet.envelope()?).then_some(true);
    }
    let mut certain = true;
    for condition in &template.conditions {
        let attribute = packet.find(condition.name)?;
        let verdict = match &condition.expected {
            Some(expected) => compare(expected, &attribute),
            None if condition.never_native
                && !matches!(from_attribute(&attribute), Native::Opaque) =>
            {
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
