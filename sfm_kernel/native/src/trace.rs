//! The trace: a process's latest events, in its segment, for observers to read at any time.
//!
//! Written by the process's own threads, read by others without its help; what was overwritten is
//! gone. A message's number is the same at both ends (the nth from this sender to this receiver),
//! so that an observer can draw it from its sending to its receipt. An event takes one look at the
//! clock and five stores.

use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

use crate::clock::now;
use crate::sync::Padded;

/// Events that are kept.
pub const EVENTS: usize = 4096;

const BUSY: u64 = u64::MAX;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// A message went to `peer`.
    Sent = 1,
    /// A message of `peer` was received: it left the inbox.
    Received = 2,
    /// The process's state became that of code `number` (`segment::Doing`).
    Doing = 3,
}

impl What {
    fn from_u8(code: u8) -> Option<What> {
        [What::Sent, What::Received, What::Doing].into_iter().find(|one| *one as u8 == code)
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds since 1970.
    pub time: u64,
    pub what: What,
    /// The lower half of the peer's uid; 0 where there is no peer.
    pub peer: u64,
    /// Which message of this pair it is, from 1 on.
    pub number: u64,
    /// Bytes of the packet.
    pub bytes: u64,
}

#[repr(C)]
struct Slot {
    /// Its event's place in the history, from 1 on, times 256, plus `What`; BUSY while it is written.
    stamp: AtomicU64,
    time: AtomicU64,
    peer: AtomicU64,
    number: AtomicU64,
    bytes: AtomicU64,
}

#[repr(C)]
pub struct Trace {
    /// Events ever.
    count: Padded<AtomicU64>,
    /// 1 where nothing is recorded.
    off: AtomicU32,
    slots: [Slot; EVENTS],
}

impl Trace {
    pub fn switch_off(&self) {
        self.off.store(1, Ordering::Relaxed);
    }

    /// Record an event that happens now. From any thread of the process.
    pub fn record(&self, what: What, peer: u64, number: u64, bytes: u64) {
        if self.off.load(Ordering::Relaxed) != 0 {
            return;
        }
        self.write(Event { time: now(), what, peer, number, bytes });
    }

    fn write(&self, event: Event) {
        let nth = self.count.0.fetch_add(1, Ordering::Relaxed);
        let slot = &self.slots[nth as usize % EVENTS];
        if slot.stamp.swap(BUSY, Ordering::Relaxed) == BUSY {
            return; // a thread was stopped here for a whole round: its event or ours
        }
        // SYNC POINT trace: the busy stamp before the event, the event before the new stamp.
        fence(Ordering::Release);
        slot.time.store(event.time, Ordering::Relaxed);
        slot.peer.store(event.peer, Ordering::Relaxed);
        slot.number.store(event.number, Ordering::Relaxed);
        slot.bytes.store(event.bytes, Ordering::Relaxed);
        slot.stamp.store((nth + 1) << 8 | event.what as u64, Ordering::Release);
    }

    /// Events from the `from`th on (0 is the first ever) that are still there, each with its
    /// place; and the place of the next.
    pub fn read(&self, from: u64) -> (Vec<(u64, Event)>, u64) {
        let next = self.count.0.load(Ordering::Acquire);
        let first = from.max(next.saturating_sub(EVENTS as u64));
        let events = (first..next).filter_map(|nth| Some((nth, self.event(nth)?))).collect();
        (events, next)
    }

    /// The nth event; None where it is overwritten, or being written.
    fn event(&self, nth: u64) -> Option<Event> {
        let slot = &self.slots[nth as usize % EVENTS];
        let stamp = slot.stamp.load(Ordering::Acquire);
        let event = Event {
            what: What::from_u8(stamp as u8)?,
            time: slot.time.load(Ordering::Relaxed),
            peer: slot.peer.load(Ordering::Relaxed),
            number: slot.number.load(Ordering::Relaxed),
            bytes: slot.bytes.load(Ordering::Relaxed),
        };
        // SYNC POINT trace: the event before the second look at the stamp.
        fence(Ordering::Acquire);
        let same = slot.stamp.load(Ordering::Relaxed) == stamp && stamp >> 8 == nth + 1;
        same.then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Box<Trace> {
        // SAFETY: atomics, for which zero is a valid value.
        unsafe { Box::new_zeroed().assume_init() }
    }

    #[test]
    fn the_latest_events_are_there_and_older_ones_are_not_made_up() {
        let trace = fresh();
        for number in 0..EVENTS as u64 + 10 {
            trace.record(What::Sent, 7, number, 100);
        }
        let (events, next) = trace.read(0);
        assert_eq!((events.len(), next), (EVENTS, EVENTS as u64 + 10));
        assert!(events.iter().all(|(nth, event)| event.number == *nth && event.peer == 7));
        // The clock may be set back a little while it is adjusted.
        let slack = 1_000_000;
        assert!(events.windows(2).all(|pair| pair[0].1.time <= pair[1].1.time + slack));
        assert_eq!(trace.read(next - 1).0.len(), 1);
        assert_eq!(trace.read(next + 100).0.len(), 0);
    }

    #[test]
    fn nothing_is_recorded_while_it_is_off() {
        let trace = fresh();
        trace.switch_off();
        trace.record(What::Doing, 0, 1, 0);
        assert_eq!(trace.read(0), (vec![], 0));
    }

    #[test]
    fn a_reader_never_sees_half_an_event() {
        let trace = fresh();
        let trace = &*trace;
        std::thread::scope(|scope| {
            for writer in 1..=2u64 {
                scope.spawn(move || {
                    for n in 0..200_000 {
                        let number = n * 2 + writer;
                        let event = Event {
                            time: number,
                            what: What::Received,
                            peer: number,
                            number,
                            bytes: number,
                        };
                        trace.write(event);
                    }
                });
            }
            let mut seen = 0;
            while seen < 400_000 {
                let (events, next) = trace.read(seen);
                for (_, event) in events {
                    let Event { time, peer, number, bytes, .. } = event;
                    assert!(time == number && peer == number && bytes == number, "{event:?}");
                }
                seen = next;
            }
        });
    }
}
