//! One direction of a long way, without a clock and without packets: what comes when, if at all.
//!
//! ```text
//! offer ── full? ──> queue ── rate ──> wire ── lost? ── delay ──> take
//!                      ^ other people's packets, which end after the queue
//! ```
//!
//! The queue is a number, the bytes that wait or are being sent, which shrinks with time. So when a
//! packet leaves it is known when it comes, and other people's packets need no events of their own:
//! all that came since the last look are added up, in order, when the next packet does.
//!
//! What is changed applies to what comes from then on: what is on its way arrives as it would have,
//! and nothing overtakes. A cut is at once: it also takes what is on its way.

use std::collections::VecDeque;

use super::splitmix::SplitMix;

/// Nanoseconds: other people's packets from before that have left, or the queue is full of later ones.
const MEMORY: u64 = 100_000_000;
/// Bytes of other people's packets.
const CROSS_PACKET: f64 = 1500.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Nanoseconds from the end of the queue to the other side.
    pub delay: u64,
    /// Bits a second, of whole IP packets; infinite: no queue ever.
    pub rate: f64,
    /// Bytes that may wait, with the packet that is being sent.
    pub queue: u64,
    /// The share of packets that get lost after the queue.
    pub loss: f64,
    /// Bits a second of other people's packets, which come by chance (Poisson).
    pub cross: f64,
    /// Everything disappears.
    pub down: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            delay: 0,
            rate: f64::INFINITY,
            queue: u64::MAX,
            loss: 0.0,
            cross: 0.0,
            down: false,
        }
    }
}

/// What became of packets so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub offered: u64,
    pub offered_bytes: u64,
    pub delivered: u64,
    pub delivered_bytes: u64,
    /// Dropped: the queue was full; lost by chance; the way was cut.
    pub full: u64,
    pub lost: u64,
    pub cut: u64,
    /// Other people's that went through, and that found the queue full.
    pub others: u64,
    pub others_full: u64,
    /// The most bytes that were ever in the queue.
    pub deepest: u64,
}

pub struct Pipe<T> {
    settings: Settings,
    random: SplitMix,
    pub counts: Counts,
    /// On their way: when they arrive, bytes, what they are. In order.
    in_flight: VecDeque<(u64, usize, T)>,
    /// Bytes in the queue at that time.
    waiting: f64,
    at: u64,
    /// When the next of other people's packets comes.
    others: u64,
}

impl<T> Pipe<T> {
    pub fn new(settings: Settings, seed: u64, now: u64) -> Pipe<T> {
        let mut pipe = Pipe {
            settings,
            random: SplitMix::new(seed),
            counts: Counts::default(),
            in_flight: VecDeque::new(),
            waiting: 0.0,
            at: now,
            others: u64::MAX,
        };
        pipe.set(settings, now);
        pipe
    }

    pub fn settings(&self) -> Settings {
        self.settings
    }

    pub fn set(&mut self, settings: Settings, now: u64) {
        self.catch_up(now);
        let cross = settings.cross != self.settings.cross || self.others == u64::MAX;
        self.settings = settings;
        if cross {
            self.others = now.saturating_add(self.pause());
        }
    }

    /// A packet comes. What is given back is dropped.
    pub fn offer(&mut self, now: u64, bytes: usize, packet: T) -> Option<T> {
        self.catch_up(now);
        self.counts.offered += 1;
        self.counts.offered_bytes += bytes as u64;
        if self.settings.down {
            self.counts.cut += 1;
            return Some(packet);
        }
        if !self.enqueue(bytes as f64) {
            self.counts.full += 1;
            return Some(packet);
        }
        if self.settings.loss > 0.0 && self.random.share() < self.settings.loss {
            self.counts.lost += 1;
            return Some(packet);
        }
        let leaves = now.saturating_add((self.waiting / self.speed()) as u64);
        let arrives = leaves.saturating_add(self.settings.delay);
        let last = self.in_flight.back().map_or(0, |last| last.0);
        self.in_flight.push_back((arrives.max(last), bytes, packet));
        None
    }

    /// When the next packet arrives.
    pub fn due(&self) -> Option<u64> {
        self.in_flight.front().map(|first| first.0)
    }

    /// The next packet that has arrived by now, and when. A cut takes it: then it is in `Err`.
    pub fn take(&mut self, now: u64) -> Option<(u64, Result<T, T>)> {
        let (due, bytes, packet) = self.arrived(now)?;
        if self.settings.down {
            self.counts.cut += 1;
            return Some((due, Err(packet)));
        }
        self.counts.delivered += 1;
        self.counts.delivered_bytes += bytes as u64;
        Some((due, Ok(packet)))
    }

    fn arrived(&mut self, now: u64) -> Option<(u64, usize, T)> {
        self.in_flight.front().filter(|first| first.0 <= now)?;
        self.in_flight.pop_front()
    }

    /// Bytes a nanosecond.
    fn speed(&self) -> f64 {
        self.settings.rate / 8e9
    }

    /// Nanoseconds until the next of other people's packets.
    fn pause(&mut self) -> u64 {
        if self.settings.cross > 0.0 {
            self.random.pause(CROSS_PACKET * 8e9 / self.settings.cross) as u64
        } else {
            u64::MAX
        }
    }

    /// Empty the queue by what has left since, and let other people's packets in.
    fn catch_up(&mut self, now: u64) {
        self.others = self.others.max(now.saturating_sub(MEMORY));
        while self.others <= now {
            self.drain(self.others);
            match self.enqueue(CROSS_PACKET) {
                true => self.counts.others += 1,
                false => self.counts.others_full += 1,
            }
            self.others = self.others.saturating_add(self.pause().max(1));
        }
        self.drain(now);
    }

    fn drain(&mut self, now: u64) {
        let passed = now.saturating_sub(self.at) as f64;
        if passed > 0.0 {
            self.waiting = (self.waiting - passed * self.speed()).max(0.0);
        }
        self.at = self.at.max(now);
    }

    /// Whether there is room for so many bytes, which are in the queue then.
    fn enqueue(&mut self, bytes: f64) -> bool {
        if self.settings.rate == f64::INFINITY {
            return true;
        }
        if self.waiting + bytes > self.settings.queue as f64 {
            return false;
        }
        self.waiting += bytes;
        self.counts.deepest = self.counts.deepest.max(self.waiting as u64);
        true
    }
}

#[cfg(test)]
#[path = "pipe_tests.rs"]
mod tests;
