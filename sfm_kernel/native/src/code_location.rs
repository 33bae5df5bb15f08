//! Code locations, for observers: a piece of code and a line in it.
//!
//! A location is one word: the number of the code in the upper half, the line in the lower. The
//! code's text (its file, its function, the cell of a notebook) is written into the segment once,
//! when the first event happens there; the latest 256 are kept.
//!
//! Python sets its location when it enters a call. A program without Python cannot: there a finder
//! is asked when something happens (endpoint/src/callers.rs). Its code is a binary, and its line
//! the address of an instruction in it; observers find the source line.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::sync::lock;
use crate::text::Text;

/// Pieces of code whose text is kept.
const CAPACITY: usize = 256;

/// Code number and line; 0 if nothing is known.
pub type CodeLocation = u64;

thread_local! {
    static CURRENT: Cell<CodeLocation> = const { Cell::new(0) };
}

/// Finds the location of the call that this thread is in; 0 if it is in none.
static FINDER: OnceLock<fn() -> CodeLocation> = OnceLock::new();

/// Use this finder from now on, in all threads. Only the first call has an effect.
pub fn set_finder(finder: fn() -> CodeLocation) {
    let _ = FINDER.set(finder);
}

/// The location of the call that this thread is in.
pub fn current() -> CodeLocation {
    FINDER.get().map_or_else(|| CURRENT.with(Cell::get), |find| find())
}

/// This thread has entered a call at `location`.
pub fn set_current(location: CodeLocation) {
    CURRENT.with(|current| current.set(location));
}

pub fn location(code: u64, line: u32) -> CodeLocation {
    code << 32 | u64::from(line)
}

pub fn code_of(location: CodeLocation) -> u64 {
    location >> 32
}

pub fn line_of(location: CodeLocation) -> u32 {
    location as u32
}

/// The codes of this process, which may have several segments.
static KNOWN: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// The number of the first code that is kept; numbers begin with 1. Changed under KNOWN's lock.
static FIRST: AtomicU64 = AtomicU64::new(1);

/// A number for a piece of code; the same for the same text, as long as it is kept.
pub fn register(text: String) -> u64 {
    let mut known = lock(&KNOWN);
    let first = FIRST.load(Ordering::Relaxed);
    if let Some(nth) = known.iter().position(|other| *other == text) {
        return first + nth as u64;
    }
    known.push_back(text);
    let last = first + known.len() as u64 - 1;
    if known.len() > CAPACITY {
        known.pop_front();
        FIRST.store(first + 1, Ordering::Relaxed);
    }
    last
}

/// Whether the code of a location is still kept.
pub fn is_registered(location: CodeLocation) -> bool {
    code_of(location) >= FIRST.load(Ordering::Relaxed)
}

/// A location for a sentence, " in a.py, line 3 (step)"; empty if it is unknown.
pub fn words(location: CodeLocation) -> String {
    let known = lock(&KNOWN);
    let nth = code_of(location).checked_sub(FIRST.load(Ordering::Relaxed));
    let code = nth.and_then(|nth| known.get(nth as usize));
    code.and_then(|code| words_of(code, line_of(location))).unwrap_or_default()
}

/// The same, from the text of its code (sfm_kernel/observe/code_locations.py). None for a binary.
pub fn words_of(code: &str, line: u32) -> Option<String> {
    let [cell, _, before, function, file] =
        code.splitn(5, '\t').collect::<Vec<_>>().try_into().ok()?;
    if function.starts_with('@') {
        return None;
    }
    let file = file.rsplit('/').next().unwrap_or_default();
    let file = if cell.is_empty() { file.to_owned() } else { format!("cell {cell}") };
    let line = line + before.parse::<u32>().ok()?;
    let function = match function.starts_with('<') {
        true => String::new(),
        false => format!(" ({function})"),
    };
    Some(format!(" in {file}, line {line}{function}"))
}

/// The texts of codes, in a segment.
#[repr(C)]
pub struct CodeTable([Entry; CAPACITY]);

#[repr(C)]
struct Entry {
    code: AtomicU64,
    text: Text<32>,
}

impl CodeTable {
    /// Make sure that observers find the text of the location's code.
    pub fn note(&self, location: CodeLocation) {
        let code = code_of(location);
        if self.entry(code).code.load(Ordering::Relaxed) != code {
            self.write(code);
        }
    }

    fn entry(&self, code: u64) -> &Entry {
        &self.0[code as usize % CAPACITY]
    }

    #[cold]
    fn write(&self, code: u64) {
        let known = lock(&KNOWN); // one writer at a time
        let Some(nth) = code.checked_sub(FIRST.load(Ordering::Relaxed)) else { return };
        let Some(text) = known.get(nth as usize) else { return };
        let entry = self.entry(code);
        entry.code.store(0, Ordering::Release);
        entry.text.write(text);
        entry.code.store(code, Ordering::Release);
    }

    /// The bytes of a code's entry, from the table's start.
    pub fn range_of(code: u64) -> Range<usize> {
        let size = std::mem::size_of::<Entry>();
        let start = code as usize % CAPACITY * size;
        start..start + size
    }

    /// The text of a code; None if it was never noted, or another code has its entry. From a copy
    /// that was made between two others.
    pub fn read_between(&self, code: u64, before: &CodeTable, after: &CodeTable) -> Option<String> {
        let has_code = |table: &CodeTable| table.entry(code).code.load(Ordering::Acquire) == code;
        let entries = [before, self, after].map(|table| &table.entry(code).text);
        let text = (code != 0 && has_code(before)).then(|| {
            let [before, text, after] = entries;
            text.read_between(before, after)
        })??;
        has_code(after).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_codes_are_found_and_others_are_not_mistaken_for_them() {
        // SAFETY: atomics, for which zero is a valid value.
        let table: Box<CodeTable> = unsafe { Box::new_zeroed().assume_init() };
        table.note(0);
        let read = |code| table.read_between(code, &table, &table);
        assert_eq!(read(0), None);
        let codes: Vec<u64> = (0..CAPACITY + 10).map(|n| register(format!("code {n}"))).collect();
        for code in &codes {
            table.note(location(*code, 7));
        }
        let last = *codes.last().unwrap();
        assert_eq!(read(last).unwrap(), format!("code {}", CAPACITY + 9));
        assert_eq!(read(last + CAPACITY as u64), None);
        assert_eq!((code_of(location(3, 7)), line_of(location(3, 7))), (3, 7));
    }

    #[test]
    fn a_location_is_in_words() {
        let code = register("\t\t0\t<module>\t/a/b.py".into());
        assert_eq!(words(location(code, 3)), " in b.py, line 3");
        assert_eq!(words(0), "");
        let of = |code| words_of(code, 3);
        assert_eq!(of("7\tid\t1\tstep\t/a").as_deref(), Some(" in cell 7, line 4 (step)"));
        assert_eq!((of("\t\t0\t@0a1b\t/a/prog"), of("damaged")), (None, None));
    }
}
