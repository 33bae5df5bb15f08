//! Collective calls of a file that wait for nobody here, as the standard allows: their numbers are
//! compared when the file is closed, or at the end of the program, which says what differs.

use std::sync::Mutex;

use sfm_endpoint::{callers, sites};
use sfm_native::sync::lock;

use super::{agreeing, File, FILES};
use crate::engine::{self, origin, Collective};
use crate::errors::Answer;

/// The calls of one process.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    count: u64,
    /// Of the kinds of the calls, in their order.
    hash: u64,
    /// The kind of the last one, and its number (`unfinished`).
    last: Option<(Collective, u32)>,
}

/// What the end of the program says.
static FOUND: Mutex<Option<String>> = Mutex::new(None);

/// Note a sentence for the end of the program, which says the first.
pub fn note(text: String) {
    lock(&FOUND).get_or_insert(text);
}

/// A call with its line; `name`: of the function, if the program's own is not known.
pub fn shown(name: &str, site: u32) -> String {
    sites::get(site).map_or_else(
        || name.into(),
        |site| format!("{}{}", site.call, origin::in_words(&site.code, site.line)),
    )
}

impl File {
    /// Count the program's present call, if it is one of all processes.
    pub fn count_call(&self) {
        let name = callers::name();
        let are_all = ["_all", "_ordered", "_sync", "_set_info"];
        if self.comm.size() == 1 || !are_all.iter().any(|part| name.contains(part)) {
            return;
        }
        let what = Collective::File.exactly();
        let mut tally = lock(&self.tally);
        tally.count += 1;
        tally.hash = tally.hash.wrapping_mul(31).wrapping_add(what as u64);
        tally.last = Some((what, engine::site()));
    }

    /// Compare the calls of all processes.
    ///
    /// Blocks: until all have come.
    pub fn compare_calls(&self) -> Answer {
        let tally = *lock(&self.tally);
        let all = agreeing::all(&self.comm, tally)?;
        let Some((what, site)) = tally.last else { return Ok(()) };
        // The one that has made more calls knows the line of one; of as many, the first.
        let is_other = |(rank, other): &(usize, &Tally)| {
            let is_first = other.count == tally.count && self.comm.rank as usize == 0 && *rank > 0;
            other.hash != tally.hash && (other.count < tally.count || is_first)
        };
        if let Some((rank, other)) = all.iter().enumerate().find(is_other) {
            let last = shown(what.name(), site);
            let (here, there) = (tally.count, other.count);
            let calls = if here == 1 { "call" } else { "calls" };
            let theirs = match other.last {
                Some((what, _)) if here == there => format!("ends with {}", what.name()),
                _ => format!("has made {there}"),
            };
            note(format!(
                "this process has made {here} collective {calls} of {:?}, the last of which is \
                 {last}, and process {rank} of the file's communicator {theirs}: all make the same \
                 collective calls of a file in the same order",
                self.name
            ));
        }
        Ok(())
    }
}

/// At the end of the program, to which all processes have come: compare the calls of files that are
/// still open, and return what was found.
pub fn found_at_end() -> Answer<Option<String>> {
    let mut open = FILES.all();
    open.retain(|file| file.comm.size() > 1);
    open.sort_by_key(|file| file.comm.context);
    open.iter().try_for_each(|file| file.compare_calls())?;
    Ok(lock(&FOUND).take())
}
