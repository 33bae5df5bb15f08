//! Calls in the program's source, by number: the end of the program lists operations that were
//! begun there.
//!
//! The number is looked up whenever an operation is begun, so it must cost next to nothing: the
//! location's name is found out the first time, and kept. There is room for more calls than a
//! program written by people has; the calls beyond that have no number.

use std::sync::OnceLock;

use sfm_native::code_location::{self, CodeLocation};

/// A call, as people know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// Its function: `MPI_Irecv`, `comm.irecv`.
    pub call: String,
    /// The code that contains it, as observers see it (core: code_location.rs); empty if that is
    /// not known.
    pub code: String,
    pub line: u32,
    /// Code and line for the core.
    pub location: CodeLocation,
}

impl Site {
    pub fn new(call: String, code: String, line: u32) -> Site {
        let location = match code.as_str() {
            "" => 0,
            _ => code_location::location(code_location::register(code.clone()), line),
        };
        Site { call, code, line, location }
    }
}

/// Distinguishes two calls: addresses, which do not change.
pub type Key = (usize, usize);

/// No known call.
pub const NOWHERE: u32 = 0;

/// Numbers are not larger.
pub const ROOM: usize = 1024;
/// Entries that a call may be in; more would be a search.
const TRIES: usize = 8;

type Entry = (Key, Option<Site>);

static ENTRIES: [OnceLock<Entry>; ROOM] = [const { OnceLock::new() }; ROOM];

/// The result of a search for a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    Known(u32),
    /// None of the program's: its caller may be one.
    Hidden,
    /// It can be added.
    New,
    /// There is no room for it.
    Full,
}

fn first(key: Key) -> usize {
    let mixed = (key.0 ^ key.1.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed >> (usize::BITS - ROOM.ilog2())
}

fn tries(key: Key) -> impl Iterator<Item = usize> {
    (0..TRIES).map(move |more| (first(key) + more) % ROOM)
}

fn lookup(nth: usize, entry: &Entry) -> Lookup {
    match entry.1 {
        Some(_) => Lookup::Known(nth as u32 + 1),
        None => Lookup::Hidden,
    }
}

#[inline]
pub fn find(key: Key) -> Lookup {
    for nth in tries(key) {
        match ENTRIES[nth].get() {
            None => return Lookup::New,
            Some(entry) if entry.0 == key => return lookup(nth, entry),
            Some(_) => {}
        }
    }
    Lookup::Full
}

/// Record a call; `site`: None for one that is none of the program's.
pub fn add(key: Key, site: Option<Site>) -> Lookup {
    let mut new = Some((key, site));
    for nth in tries(key) {
        let entry = ENTRIES[nth].get_or_init(|| new.take().expect("put into one entry"));
        if entry.0 == key {
            return lookup(nth, entry);
        }
    }
    Lookup::Full
}

/// The call of a number.
pub fn get(number: u32) -> Option<&'static Site> {
    ENTRIES.get((number as usize).checked_sub(1)?)?.get()?.1.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(line: u32) -> Option<Site> {
        Some(Site::new("MPI_Irecv".into(), String::new(), line))
    }

    #[test]
    fn a_call_keeps_its_number_and_a_hidden_one_has_none() {
        let keys: Vec<Key> = (0..40).map(|nth| (0x7f00_0000_1000 + 16 * nth, 7)).collect();
        assert_eq!(find(keys[0]), Lookup::New);
        let numbers: Vec<_> = keys.iter().map(|key| add(*key, site(key.0 as u32))).collect();
        for (key, number) in keys.iter().zip(numbers) {
            assert_eq!((find(*key), add(*key, None)), (number, number));
            let Lookup::Known(number) = number else { panic!("no room for 40 calls") };
            assert_eq!(get(number), site(key.0 as u32).as_ref());
        }
        assert_eq!((add((1, 2), None), find((1, 2))), (Lookup::Hidden, Lookup::Hidden));
        assert_eq!((get(NOWHERE), get(ROOM as u32 + 1)), (None, None));
    }

    #[test]
    fn a_call_beyond_the_capacity_has_no_number() {
        // Apart from the other tests' calls, which are few: these all have the same entries.
        let same = (0..).map(|nth| (3 + 16 * nth, 5)).filter(|key| first(*key) == first((3, 0)));
        let same: Vec<Key> = same.take(TRIES + 1).collect();
        let added: Vec<_> = same.iter().map(|key| add(*key, None)).collect();
        assert!(added.contains(&Lookup::Full));
        assert!(same.iter().any(|key| find(*key) == Lookup::Full));
    }
}
