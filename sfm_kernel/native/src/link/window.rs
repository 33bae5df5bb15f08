//! The number of bytes that may be under way to one peer: enough to fill the connection.
//!
//! For each frame the sender measures the rate at which frames arrive and the time until the
//! acknowledgement, as BBR does (Cardwell et al., ACM Queue 14(5), 2016): the largest recent rate
//! and the shortest recent time. Twice their product keeps a connection busy, also while it turns
//! out to be faster.

use crate::clock::SECOND;

/// Bytes that may always be under way. A short connection needs no more.
const MIN_SIZE: usize = 2 << 20;
/// Largest window, in bytes: what one sender may have in an inbox by default.
const MAX_SIZE: usize = 64 << 20;
/// Shortest round trips for which a measured rate counts, at least a second; and the time for which
/// a round trip counts.
const RATE_COUNTS_ROUNDS: u64 = 10;
const ROUND_TRIP_COUNTS: u64 = 10 * SECOND;

/// All times are nanoseconds of one clock.
pub struct Window {
    /// Bytes that have arrived since the beginning.
    pub delivered: u64,
    /// The shortest recent round trip; `u64::MAX` before the first acknowledgement.
    shortest: u64,
    shortest_at: u64,
    /// Bytes per nanosecond.
    rate: f64,
    rate_at: u64,
}

impl Default for Window {
    fn default() -> Window {
        Window { delivered: 0, shortest: u64::MAX, shortest_at: 0, rate: 0.0, rate_at: 0 }
    }
}

impl Window {
    /// Bytes that may be under way.
    pub fn size(&self) -> usize {
        if self.shortest == u64::MAX {
            return MIN_SIZE;
        }
        ((2.0 * self.rate * self.shortest as f64) as usize).clamp(MIN_SIZE, MAX_SIZE)
    }

    /// `bytes` more have arrived. The latest of them was sent at `sent`, when `before` had arrived.
    /// `alone`: some of them were sent when nothing was under way.
    pub fn arrived(&mut self, bytes: u64, sent: u64, before: u64, alone: bool, now: u64) {
        self.delivered += bytes;
        let time = now.saturating_sub(sent).max(1);
        // A frame that waits behind this sender's other frames measures the window, which would
        // then grow for ever.
        let is_outdated = alone && now.saturating_sub(self.shortest_at) > ROUND_TRIP_COUNTS;
        if time <= self.shortest || is_outdated {
            (self.shortest, self.shortest_at) = (time, now);
        }
        let rate = (self.delivered - before) as f64 / time as f64;
        let counts = (RATE_COUNTS_ROUNDS * self.shortest).max(SECOND);
        if rate >= self.rate || now.saturating_sub(self.rate_at) > counts {
            (self.rate, self.rate_at) = (rate, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window after `rounds` rounds on a connection that delivers `rate` bytes per ns, `time`
    /// ns after they were sent; the sender fills the window at once when the last one has arrived.
    fn after(rounds: u64, rate: f64, time: u64) -> usize {
        const FRAME: u64 = 60_000;
        let mut window = Window::default();
        let mut now = 1;
        for _ in 0..rounds {
            let before = window.delivered;
            for frame in 1..=window.size() as u64 / FRAME {
                let takes = (frame as f64 * FRAME as f64 / rate) as u64;
                window.arrived(FRAME, now, before, frame == 1, now + time + takes);
            }
            now += time + (window.size() as f64 / rate) as u64;
        }
        window.size()
    }

    #[test]
    fn a_short_connection_has_the_smallest_window() {
        assert_eq!(Window::default().size(), MIN_SIZE);
        assert_eq!(after(20, 1.0, 100_000), MIN_SIZE);
    }

    /// In such bursts the measured rate includes the time in which the connection empties.
    #[test]
    fn a_long_connection_gets_what_it_holds() {
        // 200 Mbit/s and 100 ms are 2.5 MB.
        let size = after(20, 0.025, 100_000_000);
        assert!((2_400_000..=8_000_000).contains(&size), "{size}");
    }

    /// A connection of 1 MB/s and 20 ms, and a sender that always fills the window: frames wait 2 s
    /// for their turn.
    #[test]
    fn the_window_does_not_grow_by_frames_that_wait_in_it() {
        const FRAME: u64 = 50_000;
        const STEP: u64 = FRAME * 1000;
        let mut window = Window::default();
        let (mut now, mut sent) = (1, std::collections::VecDeque::new());
        for step in 0..2000 {
            now += STEP;
            while sent.len() as u64 * FRAME < window.size() as u64 {
                sent.push_back((now.max(20_000_000), window.delivered, sent.is_empty()));
            }
            let (at, before, alone) = sent.pop_front().expect("the window is never empty");
            let at = if step == 0 { now - 20_000_000 } else { at };
            window.arrived(FRAME, at, before, alone, now);
        }
        assert_eq!(window.size(), MIN_SIZE);
    }

    #[test]
    fn a_longer_round_trip_is_noticed_after_a_silence() {
        let mut window = Window::default();
        window.arrived(1000, 0, 0, true, 20_000_000);
        for nth in 1..100 {
            let (at, before, alone) = (nth * SECOND, window.delivered, nth == 50);
            window.arrived(1000, at, before, alone, at + 50_000_000);
            let shortest = if nth < 50 { 20_000_000 } else { 50_000_000 };
            assert_eq!(window.shortest, shortest);
        }
    }

    #[test]
    fn the_window_grows_until_the_connection_is_full_or_to_its_limit() {
        assert!(after(3, 10.0, 100_000_000) > 2 * MIN_SIZE);
        assert_eq!(after(30, 10.0, 1_000_000_000), MAX_SIZE);
    }
}
