//! What one peer delivers.

use std::sync::Arc;

use super::wire::{Header, Kind, HEADER};
use crate::core::{packet_from, Unfit};
use crate::packet::{self, Body, Packet, Tail};

/// A frame of memory that does not move with the value, is nobody else's, and may be written.
///
/// # Safety
/// All that must be true of `as_ref` where it has at least `KEEP` bytes.
pub unsafe trait Piece: AsRef<[u8]> + Send + Sync + 'static {}

/// Larger packets stay in the memory that they came in; others are copied from it.
pub const KEEP: usize = 64 << 10;

/// A packet that comes in parts.
struct Assembly {
    /// None where there is no memory for it: its sender was told, and will abort it.
    body: Option<Body>,
    /// Number of its first part.
    first: u64,
    length: usize,
    filled: usize,
}

/// What to do after a message was taken in.
#[derive(Default)]
pub struct Outcome {
    /// A packet is whole; true: to be acknowledged as soon as it is received.
    pub packet: Option<(Arc<Packet>, bool)>,
    /// A part was taken in: how many since the beginning.
    pub took: Option<u64>,
    /// There is no memory for the packet that has begun; to be said before `took`.
    pub refused: bool,
}

/// The receiving side of one peer: its lane in the inbox, and what must come next.
pub struct Source {
    pub lane: u32,
    pub address: String,
    /// Something is missing or makes no sense: no later message is accepted.
    pub broken: bool,
    /// When something came in (seconds of the monotonic clock).
    pub heard: f64,
    expected: u64,
    parts: u64,
    assembly: Option<Assembly>,
}

impl Source {
    pub fn new(lane: u32, address: String, now: f64) -> Source {
        Source { lane, address, broken: false, heard: now, expected: 1, parts: 0, assembly: None }
    }

    /// Whether all up to `number` has come.
    pub fn has_all(&self, number: u64) -> bool {
        number < self.expected
    }

    /// How many parts were taken in, ever.
    pub fn parts(&self) -> u64 {
        self.parts
    }

    /// The first part of a packet that comes now and for which there is no memory.
    pub fn refused(&self) -> Option<u64> {
        self.assembly.as_ref().filter(|one| one.body.is_none()).map(|one| one.first)
    }

    /// Take in a numbered message; the error says why nothing more can be accepted.
    pub fn take(&mut self, header: &Header, frame: impl Piece) -> Result<Outcome, String> {
        let body = &frame.as_ref()[HEADER..];
        if header.number != self.expected {
            return Err("messages from it were lost on the way".into());
        }
        self.expected += 1;
        let mut outcome = Outcome::default();
        match header.kind {
            Kind::Data => {
                let packet = packet_in(frame).map_err(damaged)?;
                outcome.packet = Some((Arc::new(packet), header.flag));
                return Ok(outcome);
            }
            Kind::Abort => {
                self.assembly = None;
                return Ok(outcome);
            }
            Kind::First => {
                let (length, part) =
                    body.split_at_checked(8).ok_or_else(|| damaged("no length"))?;
                let length = u64::from_le_bytes(length.try_into().expect("split"));
                outcome.refused = !self.begin(header.number, length, part)?;
            }
            _ => self.go_on(body)?,
        }
        self.parts += 1;
        outcome.took = Some(self.parts);
        if let Some(whole) = self.assembly.take_if(|one| one.filled == one.length) {
            let body = whole.body.ok_or("there was no memory for a message of its")?;
            let packet = Packet::new(body).map_err(damaged)?;
            outcome.packet = Some((Arc::new(packet), header.flag));
        }
        Ok(outcome)
    }

    /// Whether there is memory for it.
    fn begin(&mut self, first: u64, length: u64, part: &[u8]) -> Result<bool, String> {
        // Memory is asked for only as much as the packet itself says.
        if packet::head(part).map_err(damaged)? != packet::Head::Packet(length) {
            return Err(damaged("its length is not its packet's"));
        }
        let (body, length) = (Body::try_new(length as usize), length as usize);
        let there = body.is_some();
        self.assembly = Some(Assembly { body, first, length, filled: 0 });
        self.go_on(part)?;
        Ok(there)
    }

    fn go_on(&mut self, part: &[u8]) -> Result<(), String> {
        let assembly = self.assembly.as_mut().ok_or_else(|| damaged("a part of nothing"))?;
        if part.len() > assembly.length - assembly.filled {
            return Err(damaged("a part too much"));
        }
        if let Some(body) = &assembly.body {
            // SAFETY: `filled + part.len()` lies inside the body, which only this assembly knows.
            unsafe {
                let at = body.as_ptr().add(assembly.filled);
                std::ptr::copy_nonoverlapping(part.as_ptr(), at, part.len());
            }
        }
        assembly.filled += part.len();
        Ok(())
    }
}

/// The packet that is the body of `frame`.
fn packet_in(frame: impl Piece) -> Result<Packet, String> {
    let body = &frame.as_ref()[HEADER..];
    if body.len() < KEEP || !(body.as_ptr() as usize).is_multiple_of(16) {
        return packet_from(body).map_err(|why| match why {
            Unfit::Malformed(why) => why,
            Unfit::NoMemory => "there is no memory for its message".to_owned(),
        });
    }
    packet::validate_foreign(body)?;
    let (tables, buffers) = body.split_at(packet::tables(body));
    let (front, total) = (Body::copy_of(tables), body.len() as u64);
    let (at, length) = (buffers.as_ptr().cast_mut(), buffers.len());
    // SAFETY: what a `Piece` promises.
    let tail = unsafe { Tail::new(at, length, Box::new(frame)) };
    Packet::split(front, tail, total)
}

fn damaged(why: impl std::fmt::Display) -> String {
    format!("it sent a damaged message: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Builder, Kind as Value};

    fn packet() -> Vec<u8> {
        let mut builder = Builder::new();
        builder.attribute("n", Value::Int, &[&7u64.to_le_bytes()]).unwrap();
        // SAFETY: it has no buffers.
        unsafe { builder.finish() }.head().to_vec()
    }

    fn header(kind: Kind, number: u64) -> Header {
        Header { kind, flag: false, sender: 1, receiver: 2, number }
    }

    fn first(packet: &[u8], length: usize) -> Vec<u8> {
        [&(packet.len() as u64).to_le_bytes()[..], &packet[..length]].concat()
    }

    /// A frame whose body is 16-byte aligned, as libzmq's are.
    struct Message(Vec<u128>, usize);
    // SAFETY: a vector's memory stays where it is.
    unsafe impl Piece for Message {}
    impl AsRef<[u8]> for Message {
        fn as_ref(&self) -> &[u8] {
            // SAFETY: as many bytes as `message` has written.
            unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>().add(8), self.1) }
        }
    }
    fn message(body: &[u8]) -> Message {
        let length = HEADER + body.len();
        let mut memory = vec![0u128; (8 + length).div_ceil(16)];
        // SAFETY: there is room for the body behind 8 bytes and the header.
        unsafe {
            let at = memory.as_mut_ptr().cast::<u8>().add(8 + HEADER);
            std::ptr::copy_nonoverlapping(body.as_ptr(), at, body.len());
        }
        Message(memory, length)
    }

    #[test]
    fn a_large_packet_stays_where_it_is() {
        let data = vec![7u8; KEEP];
        let mut builder = Builder::new();
        let buffer = builder.buffer(data.as_ptr(), data.len());
        builder.attribute("data", Value::BigBytes, &[&buffer.to_le_bytes()]).unwrap();
        // SAFETY: the data outlives it.
        let packet = unsafe { builder.finish() }.to_packet().unwrap();
        let frame = message(packet.whole().unwrap());
        let range = frame.as_ref().as_ptr_range();
        let mut source = Source::new(0, String::new(), 0.0);
        let kept = source.take(&header(Kind::Data, 1), frame).unwrap().packet.unwrap().0;
        assert!(kept.buffer_bytes(0) == data && range.contains(&kept.buffer(0).0.cast_const()));
        assert_eq!(kept.buffer(0).0 as usize % 16, 0);
        assert_eq!(kept.len(), packet.len());
        let damaged = message(&packet.whole().unwrap()[..KEEP + 40]);
        assert!(source.take(&header(Kind::Data, 2), damaged).is_err());
    }

    #[test]
    fn a_packet_in_parts_is_delivered_when_it_is_whole() {
        let (packet, mut source) = (packet(), Source::new(0, String::new(), 0.0));
        let begun = source.take(&header(Kind::First, 1), message(&first(&packet, 40))).unwrap();
        assert!(begun.packet.is_none() && begun.took == Some(1));
        let whole = source.take(&header(Kind::Part, 2), message(&packet[40..])).unwrap();
        assert_eq!(whole.packet.unwrap().0.whole(), Some(&packet[..]));
        assert_eq!(whole.took, Some(2));
    }

    #[test]
    fn an_aborted_packet_is_forgotten() {
        let (packet, mut source) = (packet(), Source::new(0, String::new(), 0.0));
        source.take(&header(Kind::First, 1), message(&first(&packet, 40))).unwrap();
        assert!(source.take(&header(Kind::Abort, 2), message(&[])).unwrap().packet.is_none());
        assert!(source.take(&header(Kind::Data, 3), message(&packet)).unwrap().packet.is_some());
        assert!(source.take(&header(Kind::Part, 4), message(&packet[40..])).is_err());
    }

    #[test]
    fn gaps_and_nonsense_are_refused() {
        let packet = packet();
        let fresh = || Source::new(0, String::new(), 0.0);
        assert!(fresh().take(&header(Kind::Data, 2), message(&packet)).is_err());
        assert!(fresh().take(&header(Kind::Data, 1), message(&packet[1..])).is_err());
        assert!(fresh().take(&header(Kind::First, 1), message(&packet[..4])).is_err());
        let lie = [&u64::MAX.to_le_bytes()[..], &packet[..40]].concat();
        assert!(fresh().take(&header(Kind::First, 1), message(&lie)).is_err());
        let mut source = fresh();
        source.take(&header(Kind::First, 1), message(&first(&packet, 40))).unwrap();
        assert!(source.take(&header(Kind::Part, 2), message(&packet)).is_err());
    }
}
