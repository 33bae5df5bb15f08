//! State of a connection between gateways: warmth, silence, and the kernel's numbers.

use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use super::schedule::{Schedule, Scheduler};
use super::sockets::{self, Given};
use crate::tcp_history::History;
use crate::tcp_info::{self, Field, TcpInfo};

/// Time between two beats of a connection that was used in the last `WARM`, and of another one.
/// Measured: a beat every 0.15 s keeps cubic's window open, one every 0.25 s does not.
pub const BEAT: Duration = Duration::from_millis(100);
pub const SLOW_BEAT: Duration = Duration::from_secs(1);
pub const WARM: Duration = Duration::from_secs(60);
/// Time, and number of round trips, without an acknowledgement after which a connection is silent:
/// the longer one counts.
const SILENT: Duration = Duration::from_millis(1200);
const SILENT_TRIPS: u32 = 4;
/// Nothing has come for this time, although the other side beats: its gateway is stopped.
const NOTHING_RECEIVED: Duration = Duration::from_secs(4);
/// Unsent data in the kernel, in time and bytes: as little as never runs out before this thread is
/// woken. If it runs out, BBR takes the sender's rate for the path's, stays in its startup, and
/// floods the path: with 1 ms (200 Mbit/s, RTT 20 ms) it sent 15 % twice.
const UNSENT_SECONDS: f64 = 5e-3;
const UNSENT: (f64, f64) = (32768.0, 524288.0);
/// The same in bytes, while the rate is unknown or BBR searches for it.
const UNSENT_AT_FIRST: f64 = 131072.0;
/// Time for which the fastest rate counts: between messages the kernel measures the sender's
/// pauses.
const RATE_COUNTS: Duration = Duration::from_secs(10);

pub struct Wide {
    pub schedule: Schedule,
    /// Made by this gateway, not by the other one.
    pub dialed: bool,
    /// It leads to another gateway of the same site.
    pub sibling: bool,
    pub asked: String,
    pub given: Given,
    /// When a process's frame last went over it, in either direction.
    pub used: Instant,
    pub wrote: Instant,
    pub received_at: Instant,
    /// Frames that are sent now do not arrive.
    pub silent: bool,
    pub silences: u64,
    pub history: History,
    pub info: Option<TcpInfo>,
    acked: u64,
    /// When the other side last acknowledged something, or nothing was unacknowledged.
    acked_at: Instant,
    unsent: u32,
    /// The kernel's fastest recent rate, in bytes per second, and its time.
    fastest: (u64, Instant),
}

impl Wide {
    pub fn new(scheduler: Scheduler, dialed: bool, sibling: bool) -> Wide {
        let now = Instant::now();
        Wide {
            schedule: Schedule::new(scheduler),
            dialed,
            sibling,
            asked: String::new(),
            given: Given::default(),
            // Warm from the beginning.
            used: now,
            wrote: now,
            received_at: now,
            silent: false,
            silences: 0,
            history: History::default(),
            info: None,
            acked: 0,
            acked_at: now,
            unsent: 0,
            fastest: (0, now),
        }
    }

    /// Set what can be set only on an established connection.
    pub fn begin(&mut self, stream: &TcpStream, mptcp: bool) {
        let now = Instant::now();
        self.given = sockets::given(stream, mptcp);
        (self.used, self.wrote, self.received_at, self.acked_at) = (now, now, now, now);
        self.set_unsent(stream, UNSENT_AT_FIRST);
    }

    fn set_unsent(&mut self, stream: &TcpStream, bytes: f64) {
        let bytes = bytes.clamp(UNSENT.0, UNSENT.1) as u32;
        if self.unsent.abs_diff(bytes) > self.unsent / 4 {
            self.unsent = bytes;
            sockets::set_unsent(stream, bytes);
        }
    }

    /// The kernel's value of a field; 0 if it has none.
    pub fn number(&self, field: Field) -> u64 {
        self.info.as_ref().and_then(|info| info.number(field)).unwrap_or(0)
    }

    pub fn rtt(&self) -> Duration {
        Duration::from_micros(self.number(tcp_info::RTT))
    }

    /// Whether a beat is due.
    pub fn beat_is_due(&self, now: Instant) -> bool {
        let every = if now < self.used + WARM { BEAT } else { SLOW_BEAT };
        now >= self.wrote + every
    }

    /// Check the connection; returns whether `silent` has changed.
    pub fn check(&mut self, stream: &TcpStream, now: Instant) -> bool {
        self.info = TcpInfo::read(stream.as_raw_fd()).ok();
        if let Some(info) = &self.info {
            self.history.sample(info);
        }
        let acked = self.number(tcp_info::BYTES_ACKED);
        if acked != self.acked || self.number(tcp_info::UNACKED) == 0 {
            (self.acked, self.acked_at) = (acked, now);
        }
        let rate = self.number(tcp_info::DELIVERY_RATE);
        if rate >= self.fastest.0 || now >= self.fastest.1 + RATE_COUNTS {
            self.fastest = (rate, now);
        }
        let known = self.fastest.0 as f64 * UNSENT_SECONDS;
        let least = if sockets::is_starting(stream) { UNSENT_AT_FIRST } else { 0.0 };
        self.set_unsent(stream, known.max(least));
        let limit = SILENT.max(self.rtt() * SILENT_TRIPS);
        let receive_limit = NOTHING_RECEIVED.max(self.rtt() * SILENT_TRIPS);
        let silent = now >= self.acked_at + limit || now >= self.received_at + receive_limit;
        let changed = silent != self.silent;
        self.silent = silent;
        self.silences += u64::from(changed && silent);
        changed
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::tcp_info::tests::pair;

    #[test]
    fn a_window_that_fell_in_silence_is_seen() {
        const GROWN: u64 = 20;
        let file = std::fs::read("/proc/sys/net/ipv4/tcp_slow_start_after_idle");
        let remembers = file.is_ok_and(|text| text.starts_with(b"0"));
        let (mut stream, mut other) = pair();
        crate::tcp_info::set_congestion(stream.as_raw_fd(), "reno").unwrap();
        let mut wide = Wide::new(Scheduler::Fifo, true, false);
        wide.begin(&stream, false);
        let reader = std::thread::spawn(move || std::io::copy(&mut other, &mut std::io::sink()));
        let start = Instant::now();
        while wide.number(tcp_info::SND_CWND) < GROWN {
            assert!(start.elapsed() < Duration::from_secs(60), "the window does not grow");
            stream.write_all(&[0; 1 << 20]).unwrap();
            wide.check(&stream, Instant::now());
        }
        wide.wrote = Instant::now();
        // A busy connection does not restart, nor does one without a silence.
        let fd = stream.as_raw_fd();
        let silence = wide.wrote.elapsed();
        wide.history.watch(fd, silence, || stream.write_all(b"x").unwrap());
        assert_eq!(wide.history.restarts, 0);
        while sockets::in_kernel(&stream) > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let rto = Duration::from_micros(wide.number(tcp_info::RTO));
        std::thread::sleep(rto * 4 + Duration::from_millis(100));
        let silence = wide.wrote.elapsed();
        wide.history.watch(fd, silence, || stream.write_all(b"x").unwrap());
        assert_eq!(wide.history.restarts, u64::from(!remembers));
        let fell = wide.history.last.is_none_or(|last| last.to < last.from && last.silence >= rto);
        assert!(fell, "{:?}", wide.history.last);
        drop(stream);
        reader.join().unwrap().unwrap();
    }

    #[test]
    fn a_warm_connection_beats_fast() {
        let wide = Wide::new(Scheduler::Fifo, true, false);
        assert!(!wide.beat_is_due(wide.wrote) && wide.beat_is_due(wide.wrote + BEAT));
        let mut cold = Wide::new(Scheduler::Fifo, true, false);
        cold.wrote += WARM;
        assert!(!cold.beat_is_due(cold.wrote + BEAT) && cold.beat_is_due(cold.wrote + SLOW_BEAT));
    }

    #[test]
    fn a_connection_is_silent_while_nothing_comes() {
        let (stream, _other) = pair();
        let mut wide = Wide::new(Scheduler::Fifo, true, false);
        wide.begin(&stream, false);
        let now = Instant::now();
        assert!(!wide.check(&stream, now) && !wide.silent);
        assert!(wide.check(&stream, now + NOTHING_RECEIVED) && wide.silent);
        assert!(!wide.check(&stream, now + NOTHING_RECEIVED));
        wide.received_at = now + NOTHING_RECEIVED;
        assert!(wide.check(&stream, now + NOTHING_RECEIVED) && !wide.silent);
        assert_eq!(wide.silences, 1);
    }
}
