//! A slow path between sites, emulated inside the gateway, for machines without network namespaces.
//!
//! Frames to other sites pass one link of a given rate and come out after a delay. This shows
//! routes, headers, the scheduler's order, and what delay and rate cost; it does not show what TCP
//! makes of such a path, because TCP does not see it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::connection::Delays;
use super::engine::Engine;
use super::flow::Frame;
use super::poll::Id;

pub const CANNOT_SHOW: &str = "the path between sites is emulated inside the gateway: its delay \
    and rate are real, but TCP does not see it, so that idle restarts, repair of losses and \
    congestion control cannot be seen here";

/// Bytes that may be in flight; more wait in their schedules.
const MAX_IN_FLIGHT: usize = 64 << 20;

pub struct Emulation {
    pub delay: Duration,
    /// Bytes per second.
    pub limit: Option<u64>,
    /// Lateness of the frames that have come out.
    pub late: Delays,
    /// When the link can take the next frame.
    free_at: Instant,
    in_flight: VecDeque<(Instant, Id, Frame)>,
    bytes: usize,
    turn: usize,
}

impl Emulation {
    pub fn new(delay: Duration, limit: Option<u64>) -> Emulation {
        let (free_at, late) = (Instant::now(), Delays::default());
        Emulation { delay, limit, late, free_at, in_flight: VecDeque::new(), bytes: 0, turn: 0 }
    }

    fn accepts(&self, now: Instant) -> bool {
        now >= self.free_at && self.bytes < MAX_IN_FLIGHT
    }

    /// A frame enters the link.
    fn put(&mut self, id: Id, frame: Frame, now: Instant) {
        // A frame that was waiting when the link became free entered it then, even if this is
        // noticed later.
        let start = self.free_at.max(frame.arrived_at).min(now);
        let lasts = self.limit.map_or(0.0, |limit| frame.size() as f64 / limit.max(1) as f64);
        self.free_at = start + Duration::from_secs_f64(lasts);
        self.bytes += frame.size();
        self.in_flight.push_back((self.free_at + self.delay, id, frame));
    }

    /// The next frame that has come out.
    fn next(&mut self, now: Instant) -> Option<(Id, Frame)> {
        let due = self.in_flight.front()?.0;
        if due > now {
            return None;
        }
        let (_, id, frame) = self.in_flight.pop_front()?;
        self.late.add(now - due);
        self.bytes -= frame.size();
        Some((id, frame))
    }
}

impl Engine {
    /// Move frames through the emulated path; returns whether there is something to write now.
    pub fn pump(&mut self) -> bool {
        let Some(mut path) = self.emulation.take() else { return false };
        let now = Instant::now();
        let mut wrote = false;
        let waits = |connection: &super::connection::Connection| {
            connection.wide.as_ref().is_some_and(|wide| !wide.sibling && !wide.schedule.is_empty())
        };
        let mut waiting = self.connections.ids(waits);
        while path.accepts(now) && !waiting.is_empty() {
            path.turn += 1;
            let index = path.turn % waiting.len();
            let id = waiting[index];
            let wide = self.connections.wide_mut(id);
            match wide.and_then(|wide| wide.schedule.pop(&self.weights)) {
                Some(frame) => {
                    self.release(frame.from, frame.size());
                    path.put(id, frame, now);
                }
                None => drop(waiting.swap_remove(index)),
            }
        }
        while let Some((id, frame)) = path.next(now) {
            if let Some(connection) = self.connections.get_mut(id) {
                connection.queue(frame);
                self.write_later(id);
                wrote = true;
            }
        }
        let entry = (!waiting.is_empty()).then_some(path.free_at);
        let exit = path.in_flight.front().map(|(due, ..)| *due);
        let next = [entry, exit].into_iter().flatten().min();
        self.poll.set_clock(next.map(|at| at.saturating_duration_since(now)));
        self.emulation = Some(path);
        wrote
    }
}

#[cfg(test)]
mod tests {
    use super::super::flow::tests::frame;
    use super::*;
    use crate::frame::Class;

    #[test]
    fn frames_come_out_in_order_at_the_rate_and_after_the_delay() {
        let delay = Duration::from_millis(20);
        let mut path = Emulation::new(delay, Some(1_000_000));
        let start = Instant::now();
        let mut sent = Duration::ZERO;
        for sender in 0..3 {
            let mut frame = frame(sender, 9, Class::Bulk, 9_896, 0); // 10 kB with all headers
            frame.arrived_at = start;
            sent += Duration::from_millis(10);
            assert!(path.accepts(start + sent));
            path.put(Id::NONE, frame, start + sent);
        }
        assert!(path.next(start + delay).is_none());
        for sender in 0..3 {
            let due = start + Duration::from_millis(10) * (sender + 1) + delay;
            assert!(path.next(due - Duration::from_millis(1)).is_none());
            let (_, exit) = path.next(due + Duration::from_millis(1)).unwrap();
            assert_eq!(exit.header.sender, u128::from(sender));
        }
        assert_eq!((path.late.count, path.bytes), (3, 0));
    }
}
