//! Events of a TCP connection that the kernel neither counts nor times: idle restarts, and recent
//! timeouts.
//!
//! After a silence longer than its retransmission timeout (RTO), a connection restarts with the
//! window of a new one (RFC 5681, section 4.1; Linux: `tcp_slow_start_after_idle`). Nothing is
//! lost, and nothing is counted. The first write after the silence shows it: before the write the
//! window is as large as it was, after it the window has fallen, although nothing was sent again.

use std::os::fd::RawFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::json::Json;
use crate::tcp_info::{self, TcpInfo};

/// A shorter silence is not checked: the kernel's timeouts are 200 ms and more, unless somebody has
/// made them shorter.
const MIN_SILENCE: Duration = Duration::from_millis(20);
/// Timeouts are recent for at least this time, and at most twice this time.
const RECENT: Duration = Duration::from_secs(5);

/// A window that fell for no other reason than silence.
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    pub at: Instant,
    pub silence: Duration,
    /// Packets.
    pub from: u64,
    pub to: u64,
    pub rtt: Duration,
    /// Bytes of a packet, and bytes that were written until the next silence.
    packet: u64,
    followed: u64,
}

impl Restart {
    /// The delay of the following data, compared with the former window: the additional round trips
    /// of slow start. Zero if the data fits into the smaller window; at most log2(from / to) round
    /// trips.
    pub fn cost(&self) -> Duration {
        let packets = self.followed.div_ceil(self.packet.max(1));
        let more =
            round_trips(packets, self.to, self.from) - round_trips(packets, self.from, self.from);
        self.rtt * more
    }
}

/// What the kernel reports before a write after this silence, if that may be an idle restart.
fn before(silence: Duration, look: impl FnOnce() -> Option<TcpInfo>) -> Option<TcpInfo> {
    let info = if silence > MIN_SILENCE { look()? } else { return None };
    let timeout = Duration::from_micros(info.number(tcp_info::RTO)?);
    (silence > timeout).then_some(info)
}

/// Round trips until `packets` packets have gone, with a window that doubles up to `limit`.
fn round_trips(packets: u64, window: u64, limit: u64) -> u32 {
    let (mut remaining, mut window, mut count) = (packets, window.max(1), 0);
    while remaining > 0 && window < limit {
        remaining = remaining.saturating_sub(window);
        window *= 2;
        count += 1;
    }
    count + remaining.div_ceil(limit.max(1)).min(1 << 20) as u32
}

/// Seconds since 1970.
pub fn unix_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}

#[derive(Clone)]
struct Expected {
    before: TcpInfo,
    silence: Duration,
    /// Bytes that were handed over for it, and after it.
    bytes: u64,
}

/// The history of one connection; its writer maintains it.
#[derive(Clone, Default)]
pub struct History {
    pub restarts: u64,
    pub last: Option<Restart>,
    /// Writes follow the last restart.
    follows_restart: bool,
    /// A write that another thread makes, after a silence.
    expected: Option<Expected>,
    /// Timeouts at the beginning of this period, and of the one before it.
    counted: Option<[(Instant, u64); 2]>,
}

impl History {
    /// Call `write` after this silence, and see whether the window has fallen.
    pub fn watch<T>(&mut self, socket: RawFd, silence: Duration, write: impl FnOnce() -> T) -> T {
        let before = before(silence, || TcpInfo::read(socket).ok());
        let done = write();
        if let Some(before) = before {
            self.follows_restart = false;
            if let Ok(after) = TcpInfo::read(socket) {
                self.compare(&before, &after, silence);
            }
        }
        done
    }

    /// Another thread is about to write after this silence. `look` reads what the kernel reports.
    pub fn expect(&mut self, silence: Duration, look: impl FnOnce() -> Option<TcpInfo>) {
        if let Some(before) = before(silence, look) {
            self.follows_restart = false;
            self.expected = Some(Expected { before, silence, bytes: 0 });
        }
    }

    /// See whether the window has fallen, once the expected write has been made.
    pub fn look_after(&mut self, look: impl FnOnce() -> Option<TcpInfo>) {
        let Some(silence) = self.expected.as_ref().map(|expected| expected.silence) else { return };
        let Some(after) = look() else { return };
        let quiet = after.number(tcp_info::LAST_DATA_SENT).map(Duration::from_millis);
        if quiet.is_none_or(|quiet| quiet > silence / 2) {
            return; // not yet
        }
        let Some(Expected { before, silence, bytes }) = self.expected.take() else { return };
        self.compare(&before, &after, silence);
        self.wrote(bytes);
    }

    fn compare(&mut self, before: &TcpInfo, after: &TcpInfo, silence: Duration) {
        let both = |field| Some((before.number(field)?, after.number(field)?));
        let same = |field| both(field).is_some_and(|(before, after)| before == after);
        let Some((from, to)) = both(tcp_info::SND_CWND) else { return };
        if to < from && same(tcp_info::TOTAL_RETRANS) && same(tcp_info::CA_STATE) {
            let number = |field| before.number(field).unwrap_or(0);
            self.restarts += 1;
            self.follows_restart = true;
            self.last = Some(Restart {
                at: Instant::now(),
                silence,
                from,
                to,
                rtt: Duration::from_micros(number(tcp_info::RTT)),
                packet: number(tcp_info::SND_MSS),
                followed: 0,
            });
        }
    }

    /// Record that `bytes` were written, or handed over to be written.
    pub fn wrote(&mut self, bytes: u64) {
        if let Some(expected) = &mut self.expected {
            expected.bytes += bytes;
        } else if let (true, Some(last)) = (self.follows_restart, &mut self.last) {
            last.followed += bytes;
        }
    }

    /// Record what the kernel reports now.
    pub fn sample(&mut self, info: &TcpInfo) {
        self.count(info.number(tcp_info::TOTAL_RTO).unwrap_or(0), Instant::now());
    }

    fn count(&mut self, timeouts: u64, now: Instant) {
        let [this, before] = self.counted.get_or_insert([(now, timeouts); 2]);
        if now - this.0 >= RECENT {
            (*before, *this) = (*this, (now, timeouts));
        }
    }

    /// Write idle restarts and recent timeouts for observers. What has not changed is written as
    /// before.
    pub fn report(&self, info: Option<&TcpInfo>, out: &mut Json) {
        let (timeouts, seconds) = info.map_or((0, 0.0), |info| self.timeouts(info));
        out.raw("timeouts_lately", timeouts);
        out.raw("lately_s", format_args!("{:.0}", if timeouts > 0 { seconds } else { 0.0 }));
        out.raw("idle_restarts", self.restarts);
        let Some(last) = &self.last else { return out.raw("last_restart", "null") };
        out.object(Some("last_restart"), |out| {
            out.raw("at", format_args!("{:.0}", unix_time() - last.at.elapsed().as_secs_f64()));
            out.raw("silence_s", format_args!("{:.2}", last.silence.as_secs_f64()));
            out.raw("from", last.from);
            out.raw("to", last.to);
            out.raw("rtt_s", last.rtt.as_secs_f64());
            out.raw("cost_s", last.cost().as_secs_f64());
        });
    }

    /// Recent timeouts, and the seconds in which they happened.
    pub fn timeouts(&self, info: &TcpInfo) -> (u64, f64) {
        let Some([_, (since, before)]) = self.counted else { return (0, 0.0) };
        let total = info.number(tcp_info::TOTAL_RTO).unwrap_or(0);
        (total.saturating_sub(before), since.elapsed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    use super::*;

    fn restart(followed: u64) -> Restart {
        let (silence, rtt) = (Duration::from_secs(1), Duration::from_millis(20));
        Restart { at: Instant::now(), silence, from: 80, to: 10, rtt, packet: 1000, followed }
    }

    #[test]
    fn the_cost_of_a_restart_depends_on_the_data_that_follows() {
        let cost = |packets: u64| restart(packets * 1000).cost().as_millis();
        assert_eq!(cost(0), 0);
        assert_eq!(cost(10), 0, "the small window was enough");
        assert_eq!(cost(11), 20);
        assert_eq!(cost(31), 40);
        assert_eq!(cost(80), 60);
        assert_eq!(cost(1_000_000), 60, "eight times: three round trips, whatever follows");
    }

    #[test]
    fn timeouts_are_recent_or_forgotten() {
        let (mut history, begin) = (History::default(), Instant::now());
        let before = |history: &History| history.counted.unwrap()[1].1;
        history.count(3, begin);
        history.count(5, begin + RECENT / 2);
        assert_eq!(before(&history), 3);
        history.count(5, begin + RECENT);
        assert_eq!(before(&history), 3);
        history.count(6, begin + RECENT * 2);
        assert_eq!(before(&history), 5);
    }

    #[test]
    fn a_silence_is_counted_if_the_window_falls() {
        const SIZE: usize = 1 << 20;
        let (mut sender, mut other) = tcp_info::tests::pair();
        tcp_info::set_congestion(sender.as_raw_fd(), "reno").unwrap();
        let reader = std::thread::spawn(move || {
            let mut room = vec![0; SIZE];
            for _ in 0..10 {
                other.read_exact(&mut room).unwrap();
            }
        });
        let data = vec![0; SIZE];
        for _ in 0..8 {
            sender.write_all(&data).unwrap();
        }
        std::thread::sleep(Duration::from_millis(700));
        let window =
            || TcpInfo::read(sender.as_raw_fd()).unwrap().number(tcp_info::SND_CWND).unwrap();
        let (mut history, mut stream, before) = (History::default(), &sender, window());
        history.watch(sender.as_raw_fd(), Duration::ZERO, || ());
        assert_eq!(history.restarts, 0, "no silence");
        let first = &data[..1]; // after more bytes the window would have grown again
        history
            .watch(sender.as_raw_fd(), Duration::from_millis(700), || stream.write_all(first))
            .unwrap();
        stream.write_all(&data[1..]).unwrap();
        history.wrote(SIZE as u64);

        // The same if another thread writes: what it does is seen once it has done it.
        let (mut other, silence) = (History::default(), Duration::from_millis(700));
        let look = || TcpInfo::read(sender.as_raw_fd()).ok();
        std::thread::sleep(silence);
        let again = window();
        other.expect(silence, look);
        other.wrote(SIZE as u64);
        other.look_after(look);
        assert!(other.expected.is_some() && other.restarts == 0);
        stream.write_all(first).unwrap();
        other.look_after(look);
        stream.write_all(&data[1..]).unwrap();
        assert!(other.expected.is_none());
        if let Some(last) = other.last {
            assert_eq!((other.restarts, last.from, last.followed), (1, again, SIZE as u64));
        }
        reader.join().unwrap();
        let forgets = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_slow_start_after_idle");
        let Some(last) = history.last else {
            assert!(before <= 20 || forgets.is_ok_and(|on| on.trim() != "1"), "from {before}");
            return;
        };
        assert_eq!((history.restarts, last.from, last.followed), (1, before, SIZE as u64));
        assert!(last.to < last.from && last.silence > last.rtt);
    }
}
