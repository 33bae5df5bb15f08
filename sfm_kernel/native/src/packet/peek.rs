//! The beginning of a packet's table, as a trace has it: cut somewhere, and not checked.

use super::{envelope, u16_at, u32_at, u64_at, Attribute, Kind, Shape, ENTRY, HEADER};

/// Show the entries of a packet's front except `dest` and `src`, which every message has. For an
/// envelope they are made.
pub fn with_entries(front: &[u8], show: impl FnOnce(&[u8])) {
    match envelope::entry_of_tag(front) {
        Some(entry) => show(&entry),
        None => show(entries_behind_ends(front)),
    }
}

/// The entries behind the first two, which are `dest` and `src`.
fn entries_behind_ends(front: &[u8]) -> &[u8] {
    let end = front.len().min(HEADER + u32_at(front, 8) as usize);
    let mut position = HEADER;
    for _ in 0..2 {
        if position + ENTRY <= end {
            position +=
                ENTRY + usize::from(u16_at(front, position)) + u32_at(front, position + 4) as usize;
        }
    }
    &front[position.min(end)..end]
}

/// The context in a packet's front.
pub fn context_of(front: &[u8]) -> u64 {
    u64_at(front, 24)
}

/// Accounts of messages that were sent to a peer and not yet received: one of the user's messages,
/// and one of the library's own, which take no room of the user's.
pub const ACCOUNTS: usize = 2;

/// A bit of a context's number: it is the library's.
pub const LIBRARY: u64 = 4;

/// A bit of a context's number: its messages count as waiting until they are received. Those of
/// other contexts, which are for notifications, count as received when they arrive.
pub const COUNTED: u64 = 1;

/// Whether a context is for notifications.
pub fn is_news(context: u64) -> bool {
    context != 0 && context & COUNTED == 0
}

/// A bit of a context's number: the twin of that context in which its messages are answered. A
/// thread that waits there is in the middle of a send, and only acknowledgements arrive there.
pub const ANSWERS: u64 = 2;

pub fn is_answer(context: u64) -> bool {
    context & ANSWERS != 0
}

/// The account of a context's messages.
pub fn account(context: u64) -> usize {
    usize::from(context & LIBRARY != 0)
}

/// The first entry, whether its value is complete and valid, and the rest. None if not even its
/// name is there.
pub fn next_entry(entries: &[u8]) -> Option<(Attribute<'_>, bool, &[u8])> {
    let (front, behind) = entries.split_at_checked(ENTRY)?;
    let (name, behind) = behind.split_at_checked(usize::from(u16_at(front, 0)))?;
    let (kind, name) = (Kind::from_u8(front[2])?, std::str::from_utf8(name).ok()?);
    let length = u32_at(front, 4) as usize;
    let (value, rest) = behind.split_at_checked(length).unwrap_or((behind, &[]));
    let valid = value.len() == length
        && match kind {
            Kind::Int | Kind::Float => length == 8,
            Kind::Str => std::str::from_utf8(value).is_ok(),
            Kind::BigStr | Kind::BigBytes => length >= 4,
            Kind::Pickle | Kind::BigPickle => length >= 8,
            Kind::Array => Shape::of(value).is_some(),
            Kind::None | Kind::False | Kind::True | Kind::BigInt | Kind::Bytes => true,
        };
    Some((Attribute { name, kind, value }, valid, rest))
}

#[cfg(test)]
mod tests {
    use super::super::{Builder, Kind};
    use super::*;

    #[test]
    fn a_cut_table_is_shown_as_far_as_it_goes() {
        let mut builder = Builder::new();
        for (name, text) in [("dest", "B"), ("src", "A"), ("tag", "x"), ("long", "0123456789")] {
            builder.attribute(name, Kind::Str, &[text.as_bytes()]).unwrap();
        }
        // SAFETY: the packet has no buffers outside of itself that would have to live.
        let packet = unsafe { builder.finish() }.to_packet().unwrap();
        let entries = entries_behind_ends(packet.contiguous().unwrap());
        let names = |entries: &[u8]| {
            let (mut names, mut rest) = (Vec::new(), entries.to_vec());
            while let Some((attribute, complete, behind)) = next_entry(&rest) {
                names.push((attribute.name.to_string(), complete));
                rest = behind.to_vec();
            }
            names
        };
        let pair = |name: &str, complete| (name.to_string(), complete);
        assert_eq!(names(entries), [pair("tag", true), pair("long", true)]);
        assert_eq!(names(&entries[..entries.len() - 1]), [pair("tag", true), pair("long", false)]);
        for end in 0..entries.len() {
            assert!(names(&entries[..end]).len() <= 2);
        }
    }
}
