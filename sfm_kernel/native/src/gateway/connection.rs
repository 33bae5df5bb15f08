//! One connection of a gateway: reads and writes complete frames.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::flow::Frame;
use super::poll::Id;
use super::sockets;
use super::wide::Wide;
use crate::frame::control::LARGEST_HELLO;
use crate::frame::{Foreign, Header, HEADER};

/// Bytes of frames that the scheduler has given out, beyond the first frame.
pub const BATCH: usize = 64 << 10;
/// Frames in one write.
const BUFFERS_PER_WRITE: usize = 32;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote {
    /// It has not said Hello yet.
    Stranger,
    Process(u128),
    Gateway {
        uid: u128,
        slot: usize,
    },
    /// Made by this gateway, which waits for the Welcome with this number.
    Dialed {
        uid: u128,
        slot: usize,
        number: u64,
    },
}

/// The result of a read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Open,
    /// The connection has ended, or what came is not a frame.
    Ended,
    /// The other end speaks another version.
    Foreign(Foreign),
}

pub struct Connection {
    pub id: Id,
    pub stream: TcpStream,
    pub address: SocketAddr,
    pub remote: Remote,
    pub since: Instant,
    /// There may be something to read, or room to write.
    pub readable: bool,
    /// An end follows what can be read.
    pub ends: bool,
    pub writable: bool,
    /// It is queued to be read.
    pub in_turn: bool,
    /// Not read until fewer of its frames wait for the wide area.
    pub paused: bool,
    /// Bytes of its frames that wait for the wide area.
    pub held: usize,
    /// A frame for it was dropped because too much waits for it.
    pub overflowed: bool,
    /// Only for a connection between gateways.
    pub wide: Option<Box<Wide>>,
    pub received: Count,
    pub sent: Count,
    partial: Vec<u8>,
    out: VecDeque<Frame>,
    /// Bytes of the first frame that are written.
    written: usize,
    out_bytes: usize,
}

/// Frames and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    pub frames: u64,
    pub bytes: u64,
}

impl Count {
    pub fn add(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

impl Connection {
    pub fn new(id: Id, stream: TcpStream, address: SocketAddr, remote: Remote) -> Connection {
        Connection {
            id,
            stream,
            address,
            remote,
            since: Instant::now(),
            readable: false,
            ends: false,
            writable: false,
            in_turn: false,
            paused: false,
            held: 0,
            overflowed: false,
            wide: None,
            received: Count::default(),
            sent: Count::default(),
            partial: Vec::new(),
            out: VecDeque::new(),
            written: 0,
            out_bytes: 0,
        }
    }

    /// Bytes that wait to be written, without those in the schedule.
    pub fn waiting(&self) -> usize {
        self.out_bytes
    }

    /// Read once, and put the complete frames into `frames`.
    pub fn read(&mut self, buffer: &mut [u8], frames: &mut Vec<Frame>) -> Outcome {
        let limit = match self.remote {
            Remote::Stranger => LARGEST_HELLO,
            _ => buffer.len(),
        };
        match (&self.stream).read(&mut buffer[..limit]) {
            Ok(0) => Outcome::Ended,
            Ok(count) => {
                // The read has emptied the socket; epoll reports what comes later, but an end that
                // came together with these bytes it has reported already.
                self.readable = count == limit || self.ends;
                self.cut(&buffer[..count], frames)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => {
                    self.readable = false;
                    Outcome::Open
                }
                ErrorKind::Interrupted => Outcome::Open,
                _ => Outcome::Ended,
            },
        }
    }

    /// Cut what has come into frames; the front of an incomplete frame stays in `partial`.
    fn cut(&mut self, mut bytes: &[u8], frames: &mut Vec<Frame>) -> Outcome {
        let now = Instant::now();
        while !bytes.is_empty() {
            // The header first, then as much as the header says.
            let mut needed = HEADER;
            if self.partial.len() >= HEADER {
                needed = Header::read_sealed(&self.partial).map_or(0, |header| header.frame());
            }
            let taken = needed.saturating_sub(self.partial.len()).min(bytes.len());
            self.partial.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.partial.len() < HEADER {
                continue;
            }
            let Some(header) = Header::read_sealed(&self.partial) else {
                return Foreign::read(&self.partial).map_or(Outcome::Ended, Outcome::Foreign);
            };
            let is_hello = self.remote == Remote::Stranger && frames.is_empty();
            if is_hello && header.frame() > LARGEST_HELLO {
                return Outcome::Ended;
            }
            if self.partial.len() == header.frame() {
                self.received.add(header.frame());
                let bytes = std::mem::take(&mut self.partial);
                frames.push(Frame::new(header, bytes, self.id, now));
            } else {
                self.partial.reserve_exact(header.frame() - self.partial.len());
            }
        }
        Outcome::Open
    }

    /// Write this frame after all others.
    pub fn queue(&mut self, frame: Frame) {
        self.out_bytes += frame.size();
        self.out.push_back(frame);
    }

    /// Write as much as the kernel takes; add the time that each written frame spent here to
    /// `delays`.
    pub fn write(&mut self, delays: &mut Delays) -> Outcome {
        while self.writable && !self.out.is_empty() {
            let mut buffers = Vec::with_capacity(self.out.len().min(BUFFERS_PER_WRITE));
            for (nth, frame) in self.out.iter().take(BUFFERS_PER_WRITE).enumerate() {
                let rest = &frame.bytes[if nth == 0 { self.written } else { 0 }..];
                let (iov_base, iov_len) = (rest.as_ptr().cast_mut().cast(), rest.len());
                buffers.push(libc::iovec { iov_base, iov_len });
            }
            match sockets::write(&self.stream, &buffers) {
                Ok(count) => self.wrote(count, delays),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => self.writable = false,
                    ErrorKind::Interrupted => {}
                    _ => return Outcome::Ended,
                },
            }
        }
        Outcome::Open
    }

    fn wrote(&mut self, count: usize, delays: &mut Delays) {
        let now = Instant::now();
        self.written += count;
        self.out_bytes -= count;
        while let Some(frame) = self.out.front() {
            if self.written < frame.size() {
                break;
            }
            self.written -= frame.size();
            self.sent.add(frame.size());
            if frame.from != Id::NONE {
                delays.add(now - frame.arrived_at);
            }
            self.out.pop_front();
        }
    }

    /// The frames that were not written.
    pub fn take_unsent(&mut self) -> Vec<Frame> {
        (self.out_bytes, self.written) = (0, 0);
        self.out.drain(..).collect()
    }
}

/// A histogram of the time that frames spend in this gateway, in powers of two of a microsecond.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delays {
    pub count: u64,
    pub total: Duration,
    pub longest: Duration,
    buckets: [u64; 32],
}

impl Delays {
    pub fn add(&mut self, delay: Duration) {
        self.count += 1;
        self.total += delay;
        self.longest = self.longest.max(delay);
        let bucket = 64 - (delay.as_micros() as u64).leading_zeros() as usize;
        self.buckets[bucket.min(31)] += 1;
    }

    pub fn mean(&self) -> f64 {
        self.total.as_secs_f64() / self.count.max(1) as f64
    }

    /// Seconds below which this share of the delays lies, rounded up to a power of two of a
    /// microsecond.
    pub fn below(&self, share: f64) -> f64 {
        let mut remaining = (self.count as f64 * share).ceil() as u64;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            if remaining <= count {
                return (1u64 << bucket) as f64 * 1e-6;
            }
            remaining -= count;
        }
        self.longest.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::super::flow::tests::frame;
    use super::super::poll::Poll;
    use super::*;
    use crate::frame::{Class, LARGEST};

    fn pair(remote: Remote) -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, address) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        (Connection::new(Id::new(0, 0), stream, address, remote), other)
    }

    /// Read until `count` frames have come, or the connection ends.
    fn read(connection: &mut Connection, buffer: usize, count: usize) -> (Outcome, Vec<Frame>) {
        let mut frames = Vec::new();
        let mut buffer = vec![0; buffer];
        while frames.len() < count {
            if connection.read(&mut buffer, &mut frames) == Outcome::Ended {
                return (Outcome::Ended, frames);
            }
        }
        (Outcome::Open, frames)
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let (mut connection, mut other) = pair(Remote::Process(1));
        let sent: Vec<_> = [0, 1, 100, LARGEST, 5, 40_000]
            .map(|length| frame(1, 2, Class::Bulk, length, 0).bytes)
            .to_vec();
        for buffer in [7, 64, 1000, 1 << 18] {
            other.write_all(&sent.concat()).unwrap();
            let (_, frames) = read(&mut connection, buffer, sent.len());
            assert_eq!(frames.into_iter().map(|frame| frame.bytes).collect::<Vec<_>>(), sent);
        }
        other.write_all(&[0; HEADER]).unwrap();
        assert_eq!(read(&mut connection, 1000, 1).0, Outcome::Ended);
    }

    #[test]
    fn an_end_that_comes_together_with_a_frame_is_read() {
        let (mut connection, mut other) = pair(Remote::Process(1));
        other.write_all(&frame(1, 2, Class::Bulk, 100, 0).bytes).unwrap();
        drop(other);
        let (poll, mut events) = (Poll::new().unwrap(), Vec::new());
        let fd = connection.stream.as_raw_fd();
        poll.add(fd, connection.id, libc::EPOLLIN | libc::EPOLLRDHUP).unwrap();
        poll.wait(-1, &mut events);
        assert!(events[0].readable && events[0].ends, "both are reported at once, and once");
        connection.ends = events[0].ends;
        assert_eq!(read(&mut connection, 1000, 1).0, Outcome::Open);
        assert!(connection.readable);
        assert_eq!(read(&mut connection, 1000, 1).0, Outcome::Ended);
    }

    #[test]
    fn a_stranger_cannot_make_us_keep_much() {
        for remote in [Remote::Stranger, Remote::Process(1)] {
            let (mut connection, mut other) = pair(remote);
            other.write_all(&frame(1, 2, Class::Bulk, 1000, 0).bytes).unwrap();
            let is_member = remote != Remote::Stranger;
            assert_eq!(read(&mut connection, 4000, 1).0 == Outcome::Open, is_member);
        }
    }

    #[test]
    fn frames_are_written_whole_and_in_order() {
        let (mut connection, mut other) = pair(Remote::Process(1));
        let (mut delays, mut expected) = (Delays::default(), Vec::<u8>::new());
        connection.writable = true;
        for length in (0..200).map(|n| n * 37 % 5000) {
            let frame = frame(1, 2, Class::Bulk, length, length as u32);
            expected.extend(&frame.bytes);
            connection.queue(frame);
        }
        assert_eq!(connection.write(&mut delays), Outcome::Open);
        let mut came = vec![0; expected.len() - connection.waiting()];
        other.read_exact(&mut came).unwrap();
        connection.writable = true;
        connection.write(&mut delays);
        assert_eq!(connection.waiting(), 0);
        let mut rest = vec![0; expected.len() - came.len()];
        other.read_exact(&mut rest).unwrap();
        came.extend(rest);
        assert!(came == expected);
        assert_eq!((connection.sent.frames, connection.sent.bytes), (200, expected.len() as u64));
    }

    #[test]
    fn delays_are_rounded_to_powers_of_two() {
        let mut delays = Delays::default();
        for micros in [3, 3, 3, 100] {
            delays.add(Duration::from_micros(micros));
        }
        assert_eq!((delays.below(0.5), delays.below(1.0)), (4e-6, 128e-6));
        assert_eq!(Delays::default().mean(), 0.0);
    }
}
