//! Reductions of objects, which mpi4py makes of its own messages on a communicator of its own: MPI
//! gets neither the operation nor the root. The messages carry them nevertheless, so that calls that
//! differ are refused as those of arrays are.
//!
//! They are read from the program's source. Where they are the same in every call of a line, that is
//! done once; otherwise for some calls, the same ones at all processes.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use sfm_endpoint::{sites, Reduction};

use crate::comm::Comm;
use crate::engine::{self, engine, Alike, Collective};
use crate::handles::c_int;
use crate::op;

/// What is known of each call of the program, by its number: a `Known`, or 0 if it was not asked for.
static CALLS: [AtomicU32; sites::ROOM + 1] = [const { AtomicU32::new(0) }; sites::ROOM + 1];

const ASKED: u32 = 1;
const IS_FIXED: u32 = 2;
const WHAT_AT: u32 = 2;
const ALIKE_AT: u32 = 8;

thread_local! {
    /// The latest answer about a call whose arguments differ: it has several messages. The
    /// communicator's context, the call's number, its tag, and a `Known`.
    static LATEST: Cell<(u64, u32, c_int, u32)> = const { Cell::new((0, 0, 0, 0)) };
}

/// The call that a message of a communicator belongs to, and its mark (`history`).
pub fn of(comm: &Comm, tag: c_int) -> ((Collective, Alike), u32) {
    let site = engine::site();
    if !comm.is_internal || comm.remote.is_some() {
        return ((Collective::Message, Alike::default()), site);
    }
    let known = known(comm, site, tag);
    let what = Collective::of((known >> WHAT_AT) as u8 & ((1 << (ALIKE_AT - WHAT_AT)) - 1));
    let alike = Alike::of(known >> ALIKE_AT);
    match what {
        Collective::Message => ((what, Alike::default()), site),
        _ => {
            let mark = engine::mark(site, alike);
            comm.history.note_of_objects(tag, what, mark);
            ((what, alike), mark)
        }
    }
}

fn known(comm: &Comm, site: u32, tag: c_int) -> u32 {
    let Some(call) = CALLS.get(site as usize).filter(|_| site != sites::NOWHERE) else {
        return 0;
    };
    let known = call.load(Relaxed);
    if known & IS_FIXED != 0 {
        return known;
    }
    let (context, latest_site, latest_tag, latest) = LATEST.get();
    if (context, latest_site, latest_tag) == (comm.context, site, tag) {
        return latest;
    }
    if known != 0 && !is_asked(tag) {
        return known;
    }
    let answer = engine().endpoint.surroundings().reduction();
    let (method, asked) = answer.as_ref().map_or((ASKED | IS_FIXED, 0), words);
    // The method is known from now on, and the rest if it does not differ.
    call.store(method | if method & IS_FIXED == 0 { 0 } else { asked }, Relaxed);
    LATEST.set((comm.context, site, tag, method | asked));
    method | asked
}

/// True for the first calls, and for few of the later ones. mpi4py counts the calls on a
/// communicator, and gives them these numbers as tags.
fn is_asked(tag: c_int) -> bool {
    (0..16).contains(&tag) || tag.count_ones() == 1 || tag % 8192 == 0
}

/// The parts of a `Known`: the method, and the arguments.
fn words(reduction: &Reduction) -> (u32, u32) {
    let what = Collective::of_method(&reduction.method);
    let op = reduction.op.as_ref().and_then(|name| op::predefined(name));
    let alike = Alike::new(reduction.root, op.as_ref());
    let is_fixed = if reduction.is_fixed { IS_FIXED } else { 0 };
    (ASKED | is_fixed | (what as u32) << WHAT_AT, alike.word() << ALIKE_AT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::history;

    #[test]
    fn a_reduction_fits_into_a_word() {
        let (method, op) = ("allreduce".to_owned(), Some("MPI_MAXLOC".to_owned()));
        let (root, is_fixed) = (Some((1 << 11) - 3), true);
        let (method, asked) = words(&Reduction { method, op, root, is_fixed });
        assert_eq!(method & asked, 0);
        assert_eq!(Collective::of((method >> WHAT_AT) as u8), Collective::Allreduce);
        let arguments = history::arguments(Alike::of(asked >> ALIKE_AT), None, 0);
        assert_eq!(arguments, [("op", "MPI_MAXLOC".into()), ("root", "2045".into())]);
    }

    #[test]
    fn some_calls_are_asked_for_their_arguments() {
        let asked: Vec<_> = (10..3000).filter(|tag| is_asked(*tag)).collect();
        assert_eq!(asked, [10, 11, 12, 13, 14, 15, 16, 32, 64, 128, 256, 512, 1024, 2048]);
    }
}
