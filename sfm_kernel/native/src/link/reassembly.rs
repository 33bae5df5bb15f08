//! Puts one peer's numbered frames in order, and the fragments of a packet together.

use std::sync::Arc;

use crate::core::{packet_from, Unfit};
use crate::frame::{FrameKind, Inner};
use crate::packet::{self, Body, Packet};

/// A packet that comes in fragments.
struct Assembly {
    /// None if there is no memory for it: its sender knows, and will abort it.
    body: Option<Body>,
    /// Number of its first frame.
    first: u64,
    length: usize,
    filled: usize,
}

/// The result of a numbered frame.
pub enum Outcome {
    /// The frame was accepted.
    Accepted,
    /// A packet is complete; true: credit it as soon as it is received.
    Packet(Arc<Packet>, bool),
    /// There is no memory for the packet that has begun.
    Refused,
    /// The frame has come before.
    Duplicate,
    /// A frame before this one is missing.
    Gap,
}

/// The receiving side of one peer.
#[derive(Default)]
pub struct Reassembly {
    /// Number of the last accepted frame.
    arrived: u64,
    /// Number of the peer's last question, and whether this process has reported since then that
    /// something is missing.
    question: u64,
    gap_reported: bool,
    assembly: Option<Assembly>,
}

impl Reassembly {
    /// Number of the last frame that has come with all before it.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// The peer asks what has arrived.
    pub fn note_question(&mut self, number: u64) {
        if number > self.question {
            (self.question, self.gap_reported) = (number, false);
        }
    }

    /// The number of the last question, if the peer must be told now that something is missing; it
    /// then asks again. What comes before that question is missing as well.
    pub fn report_gap(&mut self) -> Option<u64> {
        (!std::mem::replace(&mut self.gap_reported, true)).then_some(self.question)
    }

    /// Number of the first frame of the incoming packet, if there is no memory for it.
    pub fn refused(&self) -> Option<u64> {
        self.assembly.as_ref().filter(|packet| packet.body.is_none()).map(|packet| packet.first)
    }

    /// Take in a numbered frame; the error says why nothing more can be accepted.
    pub fn take(&mut self, inner: &Inner, body: &[u8]) -> Result<Outcome, String> {
        if inner.number <= self.arrived {
            return Ok(Outcome::Duplicate);
        }
        if inner.number > self.arrived + 1 {
            return Ok(Outcome::Gap);
        }
        self.arrived += 1;
        match inner.kind {
            FrameKind::Data => {
                let packet = packet_from(body).map_err(|why| match why {
                    Unfit::Malformed(why) => damaged(why),
                    Unfit::NoMemory => damaged("there is no memory for its message"),
                })?;
                return Ok(Outcome::Packet(Arc::new(packet), inner.flag));
            }
            FrameKind::Abort => {
                self.assembly = None;
                return Ok(Outcome::Accepted);
            }
            FrameKind::First => {
                let (length, chunk) =
                    body.split_at_checked(8).ok_or_else(|| damaged("no length"))?;
                let length = u64::from_le_bytes(length.try_into().expect("split"));
                if !self.begin(inner.number, length, chunk)? {
                    return Ok(Outcome::Refused);
                }
            }
            _ => self.append(body)?,
        }
        let Some(complete) = self.assembly.take_if(|packet| packet.filled == packet.length) else {
            return Ok(Outcome::Accepted);
        };
        let body = complete.body.ok_or("there was no memory for one of its messages")?;
        let packet = Packet::new(body).map_err(damaged)?;
        Ok(Outcome::Packet(Arc::new(packet), inner.flag))
    }

    /// Returns whether there is memory for the packet.
    fn begin(&mut self, first: u64, length: u64, chunk: &[u8]) -> Result<bool, String> {
        // Allocate no more than the packet declares.
        if packet::head(chunk).map_err(damaged)? != packet::Head::Packet(length) {
            return Err(damaged("its length is not its packet's"));
        }
        let (body, length) = (Body::try_new(length as usize), length as usize);
        let has_memory = body.is_some();
        self.assembly = Some(Assembly { body, first, length, filled: 0 });
        self.append(chunk)?;
        Ok(has_memory)
    }

    fn append(&mut self, chunk: &[u8]) -> Result<(), String> {
        let assembly =
            self.assembly.as_mut().ok_or_else(|| damaged("a fragment without a beginning"))?;
        if chunk.len() > assembly.length - assembly.filled {
            return Err(damaged("a fragment too many"));
        }
        if let Some(body) = &assembly.body {
            // SAFETY: `filled + chunk.len()` lies inside the body, which only this assembly knows.
            unsafe {
                let at = body.as_ptr().add(assembly.filled);
                std::ptr::copy_nonoverlapping(chunk.as_ptr(), at, chunk.len());
            }
        }
        assembly.filled += chunk.len();
        Ok(())
    }
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
        // SAFETY: the packet has no buffers outside of itself that would have to live.
        unsafe { builder.finish() }.head().to_vec()
    }

    fn inner(kind: FrameKind, number: u64) -> Inner {
        Inner { kind, flag: false, number, arrived: 0 }
    }

    fn first(packet: &[u8], length: usize) -> Vec<u8> {
        [&(packet.len() as u64).to_le_bytes()[..], &packet[..length]].concat()
    }

    #[test]
    fn a_packet_in_parts_is_delivered_when_it_is_whole() {
        let (packet, mut reassembly) = (packet(), Reassembly::default());
        let begun = reassembly.take(&inner(FrameKind::First, 1), &first(&packet, 40)).unwrap();
        assert!(matches!(begun, Outcome::Accepted));
        let Outcome::Packet(received, false) =
            reassembly.take(&inner(FrameKind::Fragment, 2), &packet[40..]).unwrap()
        else {
            panic!("not complete")
        };
        assert_eq!(received.contiguous(), Some(&packet[..]));
        assert_eq!(reassembly.arrived(), 2);
    }

    #[test]
    fn an_aborted_packet_is_forgotten() {
        let (packet, mut reassembly) = (packet(), Reassembly::default());
        reassembly.take(&inner(FrameKind::First, 1), &first(&packet, 40)).unwrap();
        assert!(matches!(reassembly.take(&inner(FrameKind::Abort, 2), b""), Ok(Outcome::Accepted)));
        assert!(matches!(
            reassembly.take(&inner(FrameKind::Data, 3), &packet),
            Ok(Outcome::Packet(..))
        ));
        assert!(reassembly.take(&inner(FrameKind::Fragment, 4), &packet[40..]).is_err());
    }

    #[test]
    fn duplicates_are_skipped_and_early_frames_must_come_again() {
        let (packet, mut reassembly) = (packet(), Reassembly::default());
        assert!(matches!(reassembly.take(&inner(FrameKind::Data, 2), &packet), Ok(Outcome::Gap)));
        for number in [1, 2] {
            let outcome = reassembly.take(&inner(FrameKind::Data, number), &packet);
            assert!(matches!(outcome, Ok(Outcome::Packet(..))));
        }
        assert!(matches!(
            reassembly.take(&inner(FrameKind::Data, 1), &packet),
            Ok(Outcome::Duplicate)
        ));
        assert_eq!(reassembly.arrived(), 2);
    }

    #[test]
    fn nonsense_is_refused() {
        let packet = packet();
        let fresh = Reassembly::default;
        assert!(fresh().take(&inner(FrameKind::Data, 1), &packet[1..]).is_err());
        assert!(fresh().take(&inner(FrameKind::First, 1), &packet[..4]).is_err());
        let lie = [&u64::MAX.to_le_bytes()[..], &packet[..40]].concat();
        assert!(fresh().take(&inner(FrameKind::First, 1), &lie).is_err());
        let mut reassembly = fresh();
        reassembly.take(&inner(FrameKind::First, 1), &first(&packet, 40)).unwrap();
        assert!(reassembly.take(&inner(FrameKind::Fragment, 2), &packet).is_err());
    }
}
