//! The line in which another process has sent a message, for errors: from the trace that each
//! process keeps for observers (core: trace.rs). Empty for processes of other machines, and if the
//! trace has later events only.

use std::thread;
use std::time::Duration;

use sfm_native::code_location::{code_of, line_of, words_of, CodeLocation};
use sfm_native::observed::ObservedSegment;
use sfm_native::packet::{next_entry, Kind};
use sfm_native::segment::segment_of;
use sfm_native::trace::{mark, Event, EventKind};

use super::engine;
use crate::errors::EDGE;
use crate::handles::c_int;

const MIDDLE: char = '\u{3}';
/// Looks, a millisecond apart.
const TRIES: usize = 200;

/// The line in which `process` has sent this process the message with this tag, " in a.py, line 3".
pub fn of_message(process: usize, context: u64, tag: c_int) -> String {
    patiently(|| found(process, context, tag))
}

/// The line of the call in which `process` is blocked, or is about to be.
pub fn of_blocked(process: usize) -> String {
    patiently(|| {
        let state = segment(process)?.state().ok()?;
        let code = state.code.filter(|_| state.activity.starts_with("blocked"))?;
        Some(in_words(&code, line_of(state.location)))
    })
}

/// A location in the program of `process`, which it has noted.
pub fn of_location(process: usize, location: CodeLocation) -> String {
    let find = || {
        let (_, _, codes) = segment(process)?.events(0).ok()?;
        noted(&codes, location)
    };
    find().unwrap_or_default()
}

/// A location in words, from the codes that its process has noted.
fn noted(codes: &[(u64, String)], location: CodeLocation) -> Option<String> {
    let (_, code) = codes.iter().find(|(code, _)| *code == code_of(location))?;
    Some(in_words(code, line_of(location)))
}

/// What is found within a moment: a process may be between an action and its record.
pub fn patiently(find: impl Fn() -> Option<String>) -> String {
    let later = || {
        thread::sleep(Duration::from_millis(1));
        find()
    };
    find().or_else(|| (0..TRIES).find_map(|_| later())).unwrap_or_default()
}

fn segment(process: usize) -> Option<ObservedSegment> {
    let home = &engine().endpoint;
    let path = || segment_of(home.folder(), home.uid(process));
    home.is_near(process).then(|| ObservedSegment::open(&path()).ok())?
}

fn found(process: usize, context: u64, tag: c_int) -> Option<String> {
    let (events, _, codes) = segment(process)?.events(0).ok()?;
    let here = engine().endpoint.uid(engine().rank) as u64;
    let is_it = |event: &Event, about: &[u8]| {
        (event.kind, event.peer, event.context) == (EventKind::Sent, here, mark(context))
            && tag_of(about) == Some(tag.into())
    };
    let (_, event, _) = events.iter().rev().find(|(_, event, about)| is_it(event, about))?;
    noted(&codes, event.location)
}

fn tag_of(about: &[u8]) -> Option<i64> {
    let (attribute, is_valid, _) = next_entry(about)?;
    let is_tag = attribute.name == "tag" && attribute.kind == Kind::Int && is_valid;
    is_tag.then(|| attribute.value.try_into().ok().map(i64::from_le_bytes))?
}

/// A location for a sentence, from the text of its code.
pub fn in_words(code: &str, line: u32) -> String {
    let is_binary = || code.split('\t').nth(3).is_some_and(|function| function.starts_with('@'));
    let address = || is_binary().then(|| format!("{EDGE}{code}{MIDDLE}{line}{EDGE}"));
    words_of(code, line).or_else(address).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::plain;

    #[test]
    fn a_location_in_a_binary_is_left_to_the_launcher() {
        assert_eq!(in_words("\t\t0\tstep\t/a/b.py", 3), " in b.py, line 3 (step)");
        let marked = in_words("\t\t0\t@0a1b\t/a/prog", 3);
        assert_eq!(marked, "\u{2}\t\t0\t@0a1b\t/a/prog\u{3}3\u{2}");
        assert_eq!(plain(&format!("sent{marked}, and")), "sent, and");
        assert_eq!(in_words("damaged", 3), "");
    }
}
