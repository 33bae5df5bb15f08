//! The wire format between machines: frames, each a clear header and a sealed text.
//!
//! ```text
//! header (64 bytes, clear)    length u32 · magic u8 · hops u8 · class u8 · zero u8 · ahead u32 ·
//!                             from site u32 · to site u32 · zero u32 · sender u128 ·
//!                             receiver u128 · counter u64
//! sealed text                 kind u8 · flag u8 · zero [6] · number u64 · arrived u64 · body
//! tag (16 bytes)
//! ```
//!
//! All numbers are little-endian. The header gives a frame's destination and size, which gateways
//! need. Its sender seals the kind, the number and the content for the receiver (seal.rs), and
//! authenticates the header with them, except `hops`.

pub mod control;
pub mod seal;

pub const HEADER: usize = 64;
pub const TAG: usize = 16;
/// Bytes before the body, in the sealed text.
pub const INNER: usize = 24;
/// Largest body, in bytes. Gateways schedule frames: a small message waits for one frame of a large
/// one, 5 ms at 100 Mbit/s. Also, malloc keeps blocks of less than 128 kB for reuse.
pub const LARGEST: usize = 60 << 10;
/// Largest frame, in bytes.
pub const FRAME: usize = HEADER + INNER + LARGEST + TAG;
/// Gateways that a frame may pass.
pub const HOPS: u8 = 8;

const MAGIC: u8 = b'S';

/// The scheduling class of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Small, and others wait for it.
    Control = 0,
    Message = 1,
    /// A fragment of a message that takes several frames.
    Bulk = 2,
    /// May pass other frames of its flow, see `Kind::may_pass`.
    Status = 3,
    /// A `Hello` after a loss. Messages of its flow that are under way are useless: they come too
    /// late, or again after it.
    Resume = 4,
}

impl Class {
    /// Whether it is a message or a fragment of one.
    pub fn is_message(self) -> bool {
        matches!(self, Class::Message | Class::Bulk)
    }
}

/// The clear part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the sealed text and its tag.
    pub length: u32,
    pub hops: u8,
    pub class: Class,
    /// Bytes of this message that follow in later frames; at most `u32::MAX`.
    pub ahead: u32,
    pub from_site: u32,
    pub to_site: u32,
    pub sender: u128,
    pub receiver: u128,
    /// Different for every text that this sender seals for this receiver.
    pub counter: u64,
}

impl Header {
    pub fn write(&self, to: &mut [u8]) {
        to[..4].copy_from_slice(&self.length.to_le_bytes());
        (to[4], to[5], to[6], to[7]) = (MAGIC, self.hops, self.class as u8, 0);
        to[8..12].copy_from_slice(&self.ahead.to_le_bytes());
        to[12..16].copy_from_slice(&self.from_site.to_le_bytes());
        to[16..20].copy_from_slice(&self.to_site.to_le_bytes());
        to[20..24].fill(0);
        to[24..40].copy_from_slice(&self.sender.to_le_bytes());
        to[40..56].copy_from_slice(&self.receiver.to_le_bytes());
        to[56..64].copy_from_slice(&self.counter.to_le_bytes());
    }

    /// The header at the front of `bytes`; None if it is invalid.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.get(..HEADER)?;
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4"));
        let uid = |at: usize| u128::from_le_bytes(bytes[at..at + 16].try_into().expect("16"));
        let class = match bytes[6] {
            0 => Class::Control,
            1 => Class::Message,
            2 => Class::Bulk,
            3 => Class::Status,
            4 => Class::Resume,
            _ => return None,
        };
        let length = number(0);
        let fits = (INNER + TAG..=INNER + LARGEST + TAG).contains(&(length as usize));
        (bytes[4] == MAGIC && bytes[7] == 0 && number(20) == 0 && fits).then(|| Header {
            length,
            hops: bytes[5],
            class,
            ahead: number(8),
            from_site: number(12),
            to_site: number(16),
            sender: uid(24),
            receiver: uid(40),
            counter: u64::from_le_bytes(bytes[56..64].try_into().expect("8")),
        })
    }

    /// Bytes of the frame.
    pub fn frame(&self) -> usize {
        HEADER + self.length as usize
    }
}

/// The kind of a frame. The numbers are the wire format.
///
/// `Data`, `First`, `Fragment` and `Abort` are numbered together, from 1, for each pair of
/// processes and direction. Their sender keeps them until they have arrived, and sends them again
/// if a connection broke, so they come once and in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Body: a packet. Flag: acknowledge as soon as it is received.
    Data = b'D',
    /// Body: length of a large packet (u64), and its first bytes.
    First = b'F',
    /// Body: the next bytes. Flag, on the last fragment: as for `Data`.
    Fragment = b'P',
    /// The packet that has begun will not be completed.
    Abort = b'X',
    /// First on every connection, and sent when a connection may have lost something: then it asks
    /// what has arrived. Number: counts the sender's questions; 0: no question. Body: its address.
    /// For gateways: see control.rs.
    Hello = b'H',
    /// The answer to `Hello`, with its number.
    Welcome = b'W',
    /// Acknowledges numbered frames (`arrived`, as every frame does). Flag: something is missing.
    /// Number: of the last question that has come.
    Arrived = b'R',
    /// Number: what was received since the beginning, in the units of `SendCredit`. Flag: on the
    /// library's account.
    Credit = b'A',
    /// The sender waits for credit: credit what is received next, or already was.
    Ask = b'Q',
    /// There is no memory for the packet whose `First` has this number.
    Refused = b'N',
    /// The sender leaves: nothing follows.
    Bye = b'B',
    /// The receiver could not understand a frame and accepts nothing more from this process. Body:
    /// why.
    Broken = b'L',
    /// Keeps a long connection's congestion window open.
    Beat = b'.',
    /// From a gateway. Body: the uid of a receiver (u128) and why frames to it were dropped.
    Dropped = b'Z',
}

impl Kind {
    fn from_u8(byte: u8) -> Option<Kind> {
        use Kind::*;
        [
            Data, First, Fragment, Abort, Hello, Welcome, Arrived, Credit, Ask, Refused, Bye,
            Broken, Beat, Dropped,
        ]
        .into_iter()
        .find(|&kind| kind as u8 == byte)
    }

    /// Whether it may pass earlier frames of its sender: it reports a state, and later reports say
    /// no less. A peer that waits for it does not wait for large messages to other receivers.
    pub fn may_pass(self) -> bool {
        matches!(self, Kind::Welcome | Kind::Arrived | Kind::Credit | Kind::Ask | Kind::Beat)
    }

    /// The class of an unnumbered frame with this `number`.
    pub fn class(self, number: u64) -> Class {
        match self {
            Kind::Hello if number > 0 => Class::Resume,
            _ if self.may_pass() => Class::Status,
            _ => Class::Control,
        }
    }
}

/// The part of the sealed text before the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inner {
    pub kind: Kind,
    pub flag: bool,
    pub number: u64,
    /// Number of the last frame in the other direction that has come with all before it.
    pub arrived: u64,
}

impl Inner {
    pub fn write(&self, to: &mut [u8]) {
        to[..8].copy_from_slice(&[self.kind as u8, u8::from(self.flag), 0, 0, 0, 0, 0, 0]);
        to[8..16].copy_from_slice(&self.number.to_le_bytes());
        to[16..24].copy_from_slice(&self.arrived.to_le_bytes());
    }

    /// The front of an opened text; None if it is invalid.
    pub fn read(text: &[u8]) -> Option<Inner> {
        let front = text.get(..INNER)?;
        Some(Inner {
            kind: Kind::from_u8(front[0])?,
            flag: front[1] != 0,
            number: u64::from_le_bytes(front[8..16].try_into().ok()?),
            arrived: u64::from_le_bytes(front[16..24].try_into().ok()?),
        })
    }
}

/// A site's number, computed from its name (FNV-1a): processes agree on it without a registry.
pub fn site_number(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn header() -> Header {
        Header {
            length: (INNER + TAG + 5) as u32,
            hops: HOPS,
            class: Class::Bulk,
            ahead: 77,
            from_site: 1,
            to_site: u32::MAX,
            sender: 1 << 100,
            receiver: 7,
            counter: 1 << 60,
        }
    }

    #[test]
    fn a_header_comes_back() {
        let mut frame = [9; HEADER + 3];
        header().write(&mut frame);
        assert_eq!(Header::read(&frame), Some(header()));
        assert_eq!(Header::read(&frame[..HEADER - 1]), None);
    }

    #[test]
    fn invalid_headers_are_refused() {
        let mut good = [0; HEADER];
        header().write(&mut good);
        for (at, byte) in [(3, 1), (4, 0), (6, 5), (7, 1), (20, 1)] {
            let mut bad = good;
            bad[at] = byte;
            assert_eq!(Header::read(&bad), None, "{at}");
        }
        let mut short = good;
        short[..4].copy_from_slice(&((INNER + TAG - 1) as u32).to_le_bytes());
        assert_eq!(Header::read(&short), None);
    }

    #[test]
    fn an_inner_header_comes_back() {
        let inner = Inner { kind: Kind::Welcome, flag: true, number: 1 << 60, arrived: 3 };
        let mut text = [0; INNER];
        inner.write(&mut text);
        assert_eq!(Inner::read(&text), Some(inner));
        text[0] = b'?';
        assert_eq!(Inner::read(&text), None);
        assert_eq!(Inner::read(&text[1..]), None);
    }
}
