//! The trace: a process's latest events, in its segment, for observers to read at any time.
//!
//! The process's threads write it, and others read it without its help; overwritten events are
//! lost. A message's number is the same at both ends (the nth from this sender to this receiver),
//! so that an observer can draw it from its sending to its receipt. An event takes one read of the
//! clock and a few stores on two cache lines.

use std::ops::Range;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

use crate::clock::now;
use crate::code_location::CodeLocation;
use crate::sync::Padded;

/// Events that are kept.
pub const EVENTS: usize = 4096;

const BUSY: u64 = u64::MAX;

/// Words for a message's first attributes.
const ABOUT: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// A message went to `peer`.
    Sent = 1,
    /// A message of `peer` was received: it left the inbox.
    Received = 2,
    /// The process's state became that of code `number` (`segment::Activity`).
    Activity = 3,
    /// An acknowledgement went to `peer`: a message that no program has sent.
    AckSent = 4,
    /// An acknowledgement of `peer` was taken in.
    AckReceived = 5,
    /// An observer has asked: `number` differs if the program's variables do.
    Variables = 6,
}

impl EventKind {
    fn from_u8(code: u8) -> Option<EventKind> {
        use EventKind::*;
        [Sent, Received, Activity, AckSent, AckReceived, Variables]
            .into_iter()
            .find(|kind| *kind as u8 == code)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds since 1970; 0: set when the event is recorded.
    pub time: u64,
    pub kind: EventKind,
    /// The lower half of the peer's uid; 0 if there is no peer.
    pub peer: u64,
    /// The message's number between these two processes, from 1 on.
    pub number: u64,
    /// Bytes of the packet.
    pub bytes: u64,
    /// The message's context, as `mark` encodes it.
    pub context: u16,
    /// The location in the program.
    pub location: CodeLocation,
}

/// A few bits of a context's number, which distinguish it from most others; 0 for the user's own
/// messages.
pub fn mark(context: u64) -> u16 {
    match context {
        0 => 0,
        context => ((context >> 48) as u16).max(1),
    }
}

/// The shift of the context: packets have fewer bytes than 1 << MARK.
const MARK: u32 = 48;

impl Event {
    /// An event of which only the kind is known; it gets its time when it is recorded.
    pub fn of(kind: EventKind) -> Event {
        Event { time: 0, kind, peer: 0, number: 0, bytes: 0, context: 0, location: 0 }
    }
}

#[repr(C, align(128))]
struct Slot {
    /// Its event's position in the history, from 1 on, times 256, plus `EventKind`; BUSY while it
    /// is written.
    stamp: AtomicU64,
    time: AtomicU64,
    peer: AtomicU64,
    number: AtomicU64,
    bytes: AtomicU64,
    location: AtomicU64,
    /// Bytes of `about` that belong to the event.
    length: AtomicU64,
    about: [AtomicU64; ABOUT],
}

#[repr(C)]
pub struct Trace {
    /// Number of events ever recorded.
    count: Padded<AtomicU64>,
    /// 1 if nothing is recorded.
    off: AtomicU32,
    slots: [Slot; EVENTS],
}

impl Trace {
    pub fn switch_off(&self) {
        self.off.store(1, Ordering::Relaxed);
    }

    /// Record an event, with the beginning of a message's attributes (packet/mod.rs: the table).
    /// From any thread of the process.
    pub fn record(&self, event: Event, about: &[u8]) {
        if self.off.load(Ordering::Relaxed) != 0 {
            return;
        }
        let nth = self.count.0.fetch_add(1, Ordering::Relaxed);
        let slot = &self.slots[nth as usize % EVENTS];
        if slot.stamp.swap(BUSY, Ordering::Relaxed) == BUSY {
            return; // a thread was stopped here for a whole round: its event or ours
        }
        // SYNC POINT trace: the busy stamp before the event, the event before the new stamp.
        fence(Ordering::Release);
        let time = if event.time == 0 { now() } else { event.time };
        slot.time.store(time, Ordering::Relaxed);
        slot.peer.store(event.peer, Ordering::Relaxed);
        slot.number.store(event.number, Ordering::Relaxed);
        slot.bytes.store(event.bytes | u64::from(event.context) << MARK, Ordering::Relaxed);
        slot.location.store(event.location, Ordering::Relaxed);
        let about = &about[..about.len().min(ABOUT * 8)];
        slot.length.store(about.len() as u64, Ordering::Relaxed);
        for (word, chunk) in slot.about.iter().zip(about.chunks(8)) {
            let eight = <[u8; 8]>::try_from(chunk).unwrap_or_else(|_| {
                let mut eight = [0; 8];
                eight[..chunk.len()].copy_from_slice(chunk);
                eight
            });
            word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
        }
        slot.stamp.store((nth + 1) << 8 | event.kind as u64, Ordering::Release);
        // The history is larger than a cache: fetch the next slot in advance.
        prefetch(&self.slots[(nth as usize + 1) % EVENTS]);
    }

    /// Number of events ever recorded.
    pub fn count(&self) -> u64 {
        self.count.0.load(Ordering::Acquire)
    }

    /// The positions of those of `count` events from the `from`th on (0 is the first ever) that can
    /// still be there.
    pub fn available(from: u64, count: u64) -> Range<u64> {
        from.max(count.saturating_sub(EVENTS as u64)).min(count)..count
    }

    /// The bytes of the `available` events, from the trace's start, in two ranges at most.
    pub fn byte_ranges(positions: Range<u64>) -> [Range<usize>; 2] {
        let slots = std::mem::offset_of!(Trace, slots);
        let byte_of = |slot: usize| slots + slot * std::mem::size_of::<Slot>();
        let first = positions.start as usize % EVENTS;
        let end = first + (positions.end - positions.start) as usize;
        [byte_of(first)..byte_of(end.min(EVENTS)), byte_of(0)..byte_of(end.saturating_sub(EVENTS))]
    }

    /// The events at these positions, each with its own; without overwritten or unfinished ones.
    /// From a copy that was made between two others.
    pub fn read_between(
        &self,
        positions: Range<u64>,
        before: &Trace,
        after: &Trace,
    ) -> Vec<(u64, Event, Vec<u8>)> {
        positions.filter_map(|nth| self.event(nth, before, after)).collect()
    }

    fn event(&self, nth: u64, before: &Trace, after: &Trace) -> Option<(u64, Event, Vec<u8>)> {
        let index = nth as usize % EVENTS;
        let slot = &self.slots[index];
        let stamp = before.slots[index].stamp.load(Ordering::Acquire);
        let bytes = slot.bytes.load(Ordering::Relaxed);
        let event = Event {
            kind: EventKind::from_u8(stamp as u8)?,
            time: slot.time.load(Ordering::Relaxed),
            peer: slot.peer.load(Ordering::Relaxed),
            number: slot.number.load(Ordering::Relaxed),
            bytes: bytes & ((1 << MARK) - 1),
            context: (bytes >> MARK) as u16,
            location: slot.location.load(Ordering::Relaxed),
        };
        let words = slot.about.iter().map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        let mut about: Vec<u8> = words.flatten().collect();
        about.truncate(slot.length.load(Ordering::Relaxed) as usize);
        // SYNC POINT trace: the event before the second read of the stamp.
        fence(Ordering::Acquire);
        let still = after.slots[index].stamp.load(Ordering::Relaxed);
        (still == stamp && stamp >> 8 == nth + 1).then_some((nth, event, about))
    }
}

/// Fetch a slot into the cache.
fn prefetch(slot: &Slot) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..2 {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: a hint; the address is inside the slot.
        unsafe { _mm_prefetch::<_MM_HINT_T0>((slot as *const Slot).cast::<i8>().add(line * 64)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Box<Trace> {
        // SAFETY: atomics, for which zero is a valid value.
        unsafe { Box::new_zeroed().assume_init() }
    }

    fn read(trace: &Trace, from: u64) -> (Vec<(u64, Event, Vec<u8>)>, u64) {
        let count = trace.count();
        (trace.read_between(Trace::available(from, count), trace, trace), count)
    }

    #[test]
    fn byte_ranges_are_inside_and_as_long_as_their_events() {
        let size = |from, count| {
            let ranges = Trace::byte_ranges(Trace::available(from, count));
            assert!(ranges.iter().all(|range| range.end <= std::mem::size_of::<Trace>()));
            ranges.iter().map(|range| range.len()).sum::<usize>() / std::mem::size_of::<Slot>()
        };
        assert_eq!([size(0, 0), size(0, 5), size(3, 5), size(9, 5)], [0, 5, 2, 0]);
        let many = EVENTS as u64 + 3;
        assert_eq!([size(0, many), size(many - 4, many), size(0, u64::MAX)], [EVENTS, 4, EVENTS]);
    }

    #[test]
    fn the_latest_events_are_available_and_older_events_are_not_made_up() {
        let trace = fresh();
        for number in 0..EVENTS as u64 + 10 {
            trace.record(Event { peer: 7, number, ..Event::of(EventKind::Sent) }, b"tag");
        }
        let (events, next) = read(&trace, 0);
        assert_eq!((events.len(), next), (EVENTS, EVENTS as u64 + 10));
        assert!(events.iter().all(|(nth, event, about)| {
            event.number == *nth && event.peer == 7 && about == b"tag"
        }));
        // The clock may be set back a little while it is adjusted.
        let slack = 1_000_000;
        assert!(events.windows(2).all(|pair| pair[0].1.time <= pair[1].1.time + slack));
        assert_eq!(read(&trace, next - 1).0.len(), 1);
        assert_eq!(read(&trace, next + 100).0.len(), 0);
    }

    #[test]
    fn nothing_is_recorded_while_it_is_off() {
        let trace = fresh();
        trace.switch_off();
        trace.record(Event::of(EventKind::Activity), &[]);
        assert_eq!(read(&trace, 0), (vec![], 0));
    }

    #[test]
    fn a_reader_never_sees_half_an_event() {
        let trace = fresh();
        let trace = &*trace;
        std::thread::scope(|scope| {
            for writer in 1..=2u64 {
                scope.spawn(move || {
                    for n in 0..200_000usize {
                        let number = n as u64 * 2 + writer;
                        let event = Event {
                            time: number,
                            kind: EventKind::Received,
                            peer: number,
                            number,
                            bytes: number,
                            context: number as u16,
                            location: number,
                        };
                        trace.record(event, &number.to_le_bytes().repeat(n % ABOUT));
                    }
                });
            }
            let mut seen = 0;
            while seen < 400_000 {
                let (events, next) = read(trace, seen);
                for (_, event, about) in events {
                    let Event { time, peer, number, bytes, context, location, .. } = event;
                    let same = [time, peer, bytes, location].iter().all(|word| *word == number)
                        && context == number as u16;
                    let words: Vec<_> = about.chunks(8).collect();
                    assert!(
                        same && words.iter().all(|word| *word == number.to_le_bytes()),
                        "{event:?}"
                    );
                }
                seen = next;
            }
        });
    }
}
