//! Where in a program something happens, for observers: a piece of code and a line in it.
//!
//! A place is one word: the number of the code in the upper half, the line in the lower. The code's
//! text (its file, its function, the cell of a notebook) is written into the segment once, when
//! something happens there for the first time; the latest 256 are kept.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::text::Text;

/// Pieces of code whose text is kept.
const KEPT: usize = 256;

/// Code number and line; 0 where nothing is known.
pub type Place = u64;

thread_local! {
    static HERE: Cell<Place> = const { Cell::new(0) };
}

/// The place of the call that this thread is in.
pub fn here() -> Place {
    HERE.with(Cell::get)
}

/// This thread has entered a call at `place`.
pub fn set_here(place: Place) {
    HERE.with(|here| here.set(place));
}

pub fn place(code: u64, line: u32) -> Place {
    code << 32 | u64::from(line)
}

pub fn code_of(place: Place) -> u64 {
    place >> 32
}

pub fn line_of(place: Place) -> u32 {
    place as u32
}

/// The codes of this process, which may have several segments.
struct Known {
    /// The number of the first that is kept; numbers begin with 1.
    first: u64,
    texts: VecDeque<String>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known { first: 1, texts: VecDeque::new() });

/// A number for a piece of code.
pub fn register(text: String) -> u64 {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.texts.push_back(text);
    if known.texts.len() > KEPT {
        known.texts.pop_front();
        known.first += 1;
    }
    known.first + known.texts.len() as u64 - 1
}

/// The texts of codes, in a segment.
#[repr(C)]
pub struct Places([Entry; KEPT]);

#[repr(C)]
struct Entry {
    code: AtomicU64,
    text: Text<32>,
}

impl Places {
    /// See to it that observers find the text of the code of `place`.
    pub fn note(&self, place: Place) {
        let code = code_of(place);
        if self.entry(code).code.load(Ordering::Relaxed) != code {
            self.write(code);
        }
    }

    fn entry(&self, code: u64) -> &Entry {
        &self.0[code as usize % KEPT]
    }

    #[cold]
    fn write(&self, code: u64) {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner); // one writer at a time
        let Some(nth) = code.checked_sub(known.first) else { return };
        let Some(text) = known.texts.get(nth as usize) else { return };
        let entry = self.entry(code);
        entry.code.store(0, Ordering::Release);
        entry.text.write(text);
        entry.code.store(code, Ordering::Release);
    }

    /// The text of a code; None where it was never noted, or another one has its place.
    pub fn read(&self, code: u64) -> Option<String> {
        let entry = self.entry(code);
        let same = || code != 0 && entry.code.load(Ordering::Acquire) == code;
        let text = same().then(|| entry.text.read())??;
        same().then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_codes_are_found_and_others_are_not_mistaken_for_them() {
        // SAFETY: atomics, for which zero is a valid value.
        let places: Box<Places> = unsafe { Box::new_zeroed().assume_init() };
        places.note(0);
        assert_eq!(places.read(0), None);
        let codes: Vec<u64> = (0..KEPT + 10).map(|n| register(format!("code {n}"))).collect();
        for code in &codes {
            places.note(place(*code, 7));
        }
        let last = *codes.last().unwrap();
        assert_eq!(places.read(last).unwrap(), format!("code {}", KEPT + 9));
        assert_eq!(places.read(last + KEPT as u64), None);
        assert_eq!((code_of(place(3, 7)), line_of(place(3, 7))), (3, 7));
    }
}
