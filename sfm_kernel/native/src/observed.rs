//! An observer's reads and writes of a segment: through its file, never in shared memory.
//!
//! A process that touches a mapped page behind the end of its file is killed (SIGBUS), and any that
//! may write a file may also cut it. `pread` returns less instead: an observer outlives any damage to
//! a segment. A process of the same user that damages one may still kill its owner.
//!
//! A segment may change while it is read, so it is read between two copies of its versions, each by
//! its own system call: a text with the same version in both did not change between them.

mod judgement;
#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::{offset_of, size_of};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{fence, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::bell::Bell;
use crate::clock::now;
use crate::code_location::{code_of, CodeLocation, CodeTable};
use crate::main_thread::In;
use crate::polls::Series;
use crate::segment::{Activity, Shared, UNSETTLED};
use crate::shm::Owner;
use crate::trace::{Event, Trace};

/// The fields that each action changes; with the versions of its texts; all but its history.
const WORDS: Range<usize> = 0..offset_of!(Shared, waits);
const HEAD: Range<usize> = 0..offset_of!(Shared, summary) + size_of::<u64>();
const FRONT: Range<usize> = 0..offset_of!(Shared, codes);
/// The fields that change when an observer has made a request.
const ANSWERS: Range<usize> = offset_of!(Shared, main)..HEAD.end;
/// Reads of a text that its owner is writing, before the observer gives up.
const TRIES: usize = 10;

/// A segment, seen from outside.
pub struct ObservedSegment {
    owner: Owner,
    bells: OnceLock<Option<Bells>>,
}

/// The contents of a segment.
pub struct ProcessState {
    pub uid: u128,
    /// See `Activity`.
    pub activity: &'static str,
    pub call: u64,
    /// Nanoseconds since 1970.
    pub since: u64,
    pub until: u64,
    pub waits: Option<String>,
    pub facts: Option<String>,
    pub others: Option<String>,
    pub info: Option<String>,
    pub summary: Option<String>,
    pub location: CodeLocation,
    /// The text of the code at that location.
    pub code: Option<String>,
    pub depth: u64,
    pub bytes: u64,
    pub sent: u64,
    pub received: u64,
    pub arrived: u64,
    pub examined: u64,
    pub looked: u64,
    /// For each peer the lower half of its uid, and the counters of `Peer`, in that order.
    pub peers: Vec<(u64, [u64; 4])>,
    /// Its unsuccessful polls, and the text of the code that makes them.
    pub polls: Option<(Series, Option<String>)>,
    /// The activity of its main thread, the location, and the text of the code there.
    pub main: Option<(In, CodeLocation, Option<String>)>,
}

/// Events with their positions in the history, the position of the next, and the texts of their
/// codes.
pub type Events = (Vec<(u64, Event, Vec<u8>)>, u64, Vec<(u64, String)>);

/// The bytes are no segment (of this version), or incomplete.
#[derive(Debug, PartialEq, Eq)]
pub struct Damaged;

impl ObservedSegment {
    pub fn open(path: &Path) -> io::Result<ObservedSegment> {
        let options = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).write(true).custom_flags(options).open(path)?;
        // SAFETY: the call takes no arguments, and cannot fail.
        if file.metadata()?.uid() != unsafe { libc::geteuid() } {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(ObservedSegment { owner: Owner::of_file(file), bells: OnceLock::new() })
    }

    fn file(&self) -> &File {
        self.owner.file()
    }

    /// Whether its owner has died, or released it.
    pub fn is_dead(&self) -> bool {
        self.owner.is_dead()
    }

    /// A number that changes with anything in it except what the main thread is in; cheap.
    pub fn pulse(&self) -> Result<u64, Damaged> {
        with_copies(|copies| {
            let head = self.copy(&mut copies[0], HEAD)?;
            let words = [
                u64::from(head.activity.0.load(Ordering::Relaxed)),
                u64::from(self.is_dead()),
                u64::from(head.facts.version()) << 32 | u64::from(head.others.version()),
                u64::from(head.info.version()) << 1 | u64::from(head.polls.is_published()),
            ];
            let counters = [&head.call, &head.since, &head.sent, &head.received];
            let more = [&head.arrived, &head.examined, &head.depth, &head.location];
            let counted = counters.into_iter().chain(more).map(|word| word.load(Ordering::Relaxed));
            Ok(words.into_iter().chain(counted).fold(1, |pulse: u64, word| {
                (pulse.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            }))
        })
    }

    /// The owner's state, and the number of its latest blocked call; cheap.
    pub fn call(&self) -> Result<(&'static str, u64), Damaged> {
        with_copies(|copies| {
            let words = self.copy(&mut copies[0], WORDS)?;
            let activity = words.activity.0.load(Ordering::Relaxed);
            Ok((Activity::name(activity).ok_or(Damaged)?, words.call.load(Ordering::Relaxed)))
        })
    }

    /// Its present contents.
    pub fn state(&self) -> Result<ProcessState, Damaged> {
        with_copies(|copies| {
            self.copy(&mut copies[2], HEAD)?;
            for turn in 1.. {
                let [before, copy, after] = &mut *copies;
                std::mem::swap(before, after);
                self.copy(copy, FRONT)?;
                self.copy(after, HEAD)?;
                let mut state = state_of(before, copy, after)?;
                if state.is_complete() || turn == TRIES {
                    state.code = self.code(copies, code_of(state.location))?;
                    if let Some((series, code)) = &mut state.polls {
                        *code = self.code(copies, code_of(series.location))?;
                    }
                    if let Some((_, location, code)) = &mut state.main {
                        *code = self.code(copies, code_of(*location))?;
                    }
                    return Ok(state);
                }
                std::thread::yield_now(); // its owner may have been interrupted while writing
            }
            unreachable!("the last turn returns")
        })
    }

    /// The text of a code, if it is there.
    fn code(&self, copies: &mut [Box<Shared>; 3], code: u64) -> Result<Option<String>, Damaged> {
        if code == 0 {
            return Ok(None);
        }
        let range = behind(offset_of!(Shared, codes), CodeTable::range_of(code));
        let [before, copy, after] = self.copy_thrice(copies, range)?;
        Ok(copy.codes.read_between(code, &before.codes, &after.codes))
    }

    /// The latest events, from the `start`th on.
    pub fn events(&self, start: u64) -> Result<Events, Damaged> {
        with_copies(|copies| {
            let count = self.copy(&mut copies[0], trace_range(0..size_of::<u64>()))?.trace.count();
            let range = Trace::available(start, count);
            for range in Trace::byte_ranges(range.clone()) {
                self.copy_thrice(copies, trace_range(range))?;
            }
            let [before, copy, after] = &*copies;
            let events = copy.trace.read_between(range, &before.trace, &after.trace);
            let mut codes: Vec<_> =
                events.iter().map(|(_, event, _)| code_of(event.location)).collect();
            codes.sort_unstable();
            codes.dedup();
            let mut texts = Vec::new();
            for code in codes {
                texts.extend(self.code(copies, code)?.map(|text| (code, text)));
            }
            Ok((events, count, texts))
        })
    }

    /// Request a new summary of the owner's inbox. Returns the version of the present `summary`,
    /// which another one will replace.
    pub fn request_summary(&self) -> Result<u32, Damaged> {
        let answers = |copies: &mut [Box<Shared>; 3]| {
            self.copy(&mut copies[0], ANSWERS).map(|head| head.summary.version())
        };
        let version = with_copies(answers)?;
        // A new number, whatever other observers request at the same time.
        let request = (now() as u32).wrapping_add(std::process::id() << 20);
        self.write(&request.to_ne_bytes(), offset_of!(Shared, requests))?;
        self.ring(offset_of!(Shared, network));
        Ok(version)
    }

    /// Whether an answer may come in a moment: a summary newer than this version, and what the main
    /// thread is in.
    pub fn is_awaited(&self, version: u32) -> bool {
        let awaited =
            |shared: &Shared| shared.summary.version() == version || shared.main.is_awaited(now());
        with_copies(|copies| self.copy(&mut copies[0], ANSWERS).is_ok_and(awaited))
    }

    /// Read a range of the segment into a copy of it.
    fn copy<'a>(&self, copy: &'a mut Shared, range: Range<usize>) -> Result<&'a Shared, Damaged> {
        assert!(range.start <= range.end && range.end <= size_of::<Shared>());
        // SAFETY: inside the copy, which is ours alone and of atomics, for which any bytes are valid.
        let bytes = unsafe {
            let start = (&raw mut *copy).cast::<u8>().add(range.start);
            std::slice::from_raw_parts_mut(start, range.len())
        };
        self.file().read_exact_at(bytes, range.start as u64).map_err(|_| Damaged)?;
        // SYNC POINT text, trace: what is read next is read after this.
        fence(Ordering::SeqCst);
        if range.start == 0 && !copy.is_known() {
            return Err(Damaged);
        }
        Ok(copy)
    }

    fn copy_thrice<'a>(
        &self,
        copies: &'a mut [Box<Shared>; 3],
        range: Range<usize>,
    ) -> Result<&'a [Box<Shared>; 3], Damaged> {
        for copy in &mut *copies {
            self.copy(copy, range.clone())?;
        }
        Ok(copies)
    }

    fn write(&self, bytes: &[u8], offset: usize) -> Result<(), Damaged> {
        self.file().write_all_at(bytes, offset as u64).map_err(|_| Damaged)
    }

    fn ring(&self, offset: usize) {
        if let Some(bells) = self.bells.get_or_init(|| Bells::of(self.file())) {
            Bell::ring_from_outside(bells.0.as_ptr().wrapping_add(offset).cast());
        }
    }
}

fn behind(start: usize, range: Range<usize>) -> Range<usize> {
    start + range.start..start + range.end
}

fn trace_range(range: Range<usize>) -> Range<usize> {
    behind(offset_of!(Shared, trace), range)
}

impl ProcessState {
    fn is_complete(&self) -> bool {
        let texts = [&self.waits, &self.facts, &self.others, &self.info, &self.summary];
        texts.iter().all(|text| text.is_some())
    }
}

fn state_of(before: &Shared, copy: &Shared, after: &Shared) -> Result<ProcessState, Damaged> {
    let get = Ordering::Relaxed;
    let moves = |shared: &Shared| {
        let words = [&shared.since, &shared.call, &shared.until, &shared.examined, &shared.arrived];
        (shared.activity.0.load(get), words.map(|word| word.load(get)))
    };
    // All of one moment, if it is to prove anything.
    let examined = if moves(before) == moves(after) { copy.examined.load(get) } else { UNSETTLED };
    let peers = copy.peers.all().map(|(uid, peer)| {
        let counters = [&peer.sent, &peer.arrived, &peer.received, &peer.taken];
        (uid, counters.map(|counter| counter.load(get)))
    });
    let main = copy
        .activity_is(Activity::Running)
        .then(|| copy.main.seen(copy.since.load(get), now()))
        .flatten();
    Ok(ProcessState {
        uid: copy.uid(),
        activity: Activity::name(copy.activity.0.load(get)).ok_or(Damaged)?,
        call: copy.call.load(get),
        since: copy.since.load(get),
        until: copy.until.load(get),
        waits: copy.waits.read_between(&before.waits, &after.waits),
        facts: copy.facts.read_between(&before.facts, &after.facts),
        others: copy.others.read_between(&before.others, &after.others),
        info: copy.info.read_between(&before.info, &after.info),
        summary: copy.summary.read_between(&before.summary, &after.summary),
        location: copy.location.load(get),
        code: None,
        depth: copy.depth.load(get),
        bytes: copy.bytes.load(get),
        sent: copy.sent.load(get),
        received: copy.received.load(get),
        arrived: copy.arrived.load(get),
        examined,
        looked: before.looked.load(get),
        peers: peers.collect(),
        polls: copy.polls.read_between(&before.polls, &after.polls).map(|series| (series, None)),
        main: main.map(|(is_in, location)| (is_in, location, None)),
    })
}

/// The page of a segment that holds its bells: for the kernel, which rings them. Nobody reads it.
struct Bells(NonNull<u8>);

const PAGE: usize = 4096;
const _: () = assert!(offset_of!(Shared, network) + size_of::<Bell>() <= PAGE);
const _: () = assert!(offset_of!(Shared, bell) + size_of::<Bell>() <= PAGE);

// SAFETY: an address that only the kernel uses.
unsafe impl Send for Bells {}
// SAFETY: no method reads or writes the page: only the kernel uses its address.
unsafe impl Sync for Bells {}

impl Bells {
    fn of(file: &File) -> Option<Bells> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: it makes a fresh mapping at an address of the kernel's choice.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), PAGE, access, kind, file.as_raw_fd(), 0) };
        (start != libc::MAP_FAILED).then(|| NonNull::new(start.cast()).map(Bells))?
    }
}

impl Drop for Bells {
    fn drop(&mut self) {
        // SAFETY: the page was mapped in `of`, and is unmapped here only.
        unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE) };
    }
}

/// Memory for copies. It is reused: fresh pages cost more than what is read into them.
fn with_copies<T>(use_them: impl FnOnce(&mut [Box<Shared>; 3]) -> T) -> T {
    const MAX_SPARE: usize = 4;
    static SPARE: Mutex<Vec<[Box<Shared>; 3]>> = Mutex::new(Vec::new());
    // Never waited for: in a forked child it may be locked for ever.
    let known = SPARE.try_lock().ok().and_then(|mut spare| spare.pop());
    let mut copies = known.unwrap_or_else(|| std::array::from_fn(|_| fresh()));
    let outcome = use_them(&mut copies);
    if let Some(mut spare) = SPARE.try_lock().ok().filter(|spare| spare.len() < MAX_SPARE) {
        spare.push(copies);
    }
    outcome
}

fn fresh() -> Box<Shared> {
    let layout = std::alloc::Layout::new::<Shared>();
    // SAFETY: Shared is made of atomics, for which zero is a valid value, and has a size; on the
    // stack it would be too large.
    unsafe {
        let memory = std::alloc::alloc_zeroed(layout);
        if memory.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Box::from_raw(memory.cast())
    }
}
