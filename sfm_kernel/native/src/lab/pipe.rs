//! One direction of a long path, without a clock and without packets: when a packet arrives, if at
//! all.
//!
//! ```text
//! offer ── full? ──> queue ── rate ──> wire ── lost? ── delay ──> take
//!                      ^ cross traffic, which ends after the queue
//! ```
//!
//! The queue is a number, the bytes that wait or are being sent, which shrinks with time. So the
//! arrival of a packet is known when it is offered, and cross traffic needs no events: when the
//! next packet comes, the pipe adds the cross packets since the last one, in order.
//!
//! New settings apply to packets that come from then on: packets in flight arrive as they would
//! have, and nothing overtakes. A cut is immediate: it also takes packets in flight.

use std::collections::VecDeque;

use crate::splitmix::SplitMix;

/// Nanoseconds: earlier cross packets have left, or the queue is full of later ones.
const MEMORY: u64 = 100_000_000;
/// Bytes of a cross packet.
const CROSS_PACKET: f64 = 1500.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Nanoseconds from the end of the queue to the other side.
    pub delay: u64,
    /// Bits per second, of complete IP packets; infinite: no queue.
    pub rate: f64,
    /// Bytes that may wait, including the packet that is being sent.
    pub queue: u64,
    /// The share of packets that are lost after the queue.
    pub loss: f64,
    /// Bits per second of cross traffic, whose packets come at random (Poisson).
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

/// Counts of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub offered: u64,
    pub offered_bytes: u64,
    pub delivered: u64,
    pub delivered_bytes: u64,
    /// Dropped because the queue was full, lost at random, or cut.
    pub full: u64,
    pub lost: u64,
    pub cut: u64,
    /// Cross packets that went through, and that found the queue full.
    pub others: u64,
    pub others_full: u64,
    /// The most bytes in the queue.
    pub deepest: u64,
}

pub struct Pipe<T> {
    settings: Settings,
    random: SplitMix,
    pub counts: Counts,
    /// Packets in flight, in order: arrival time, bytes, packet.
    in_flight: VecDeque<(u64, usize, T)>,
    /// Bytes in the queue at time `at`.
    waiting: f64,
    at: u64,
    /// When the next cross packet comes.
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

    /// Offer a packet. A returned packet is dropped.
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

    /// The next packet that has arrived, and its time; `Err` if a cut took it.
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

    /// Bytes per nanosecond.
    fn speed(&self) -> f64 {
        self.settings.rate / 8e9
    }

    /// Nanoseconds until the next cross packet.
    fn pause(&mut self) -> u64 {
        if self.settings.cross > 0.0 {
            self.random.pause(CROSS_PACKET * 8e9 / self.settings.cross) as u64
        } else {
            u64::MAX
        }
    }

    /// Remove what has left the queue since the last call, and add cross packets.
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

    /// Put `bytes` into the queue; returns whether there was room.
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
