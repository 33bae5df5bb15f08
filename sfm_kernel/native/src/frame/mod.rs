//! The wire format between machines: frames, each a clear header and a sealed text.
//!
//! ```text
//! header (64 bytes, clear)    length u32 · magic u8 · hops u8 · class u8 · version u8 · ahead u32 ·
//!                             from site u32 · to site u32 · clear u8 · zero [3] · sender u128 ·
//!                             receiver u128 · counter u64
//! text                        kind u8 · flag u8 · zero [6] · number u64 · arrived u64 · body
//! tag (16 bytes; not if the text is clear)
//! ```
//!
//! All numbers are little-endian. The header gives a frame's destination and size, which gateways
//! need. Between sites, the sender seals the text for the receiver (seal.rs), and authenticates the
//! header with it, except `hops`. Within a site the text is clear: only ZeroMQ carries it, and seals
//! whole connections (CURVE).
//!
//! In every version the magic, the version, the sender and the receiver are where they are now: a
//! process can say who speaks another version.

pub mod control;
pub mod gateway_key;
pub mod seal;

pub const HEADER: usize = 64;
pub const TAG: usize = 16;
/// Bytes before the body, in the sealed text.
pub const INNER: usize = 24;
/// Largest body, in bytes. Gateways schedule frames: a small message waits for one frame of a large
/// one, 5 ms at 100 Mbit/s. Also, malloc keeps blocks of less than 128 kB for reuse.
pub const LARGEST: usize = 60 << 10;
/// Largest sealed frame, in bytes.
pub const FRAME: usize = HEADER + INNER + LARGEST + TAG;
/// Largest body of a clear frame, in bytes. No gateway schedules it. ZeroMQ is slow with smaller ones,
/// and of a larger one the receiver decrypts nothing before the sender has encrypted all.
pub const LARGEST_CLEAR: usize = 512 << 10;
/// Largest clear frame, in bytes.
pub const CLEAR_FRAME: usize = HEADER + INNER + LARGEST_CLEAR;
/// The version of this format, from 1 to 255.
pub const VERSION: u8 = 1;
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
    /// May pass other frames of its flow, see `FrameKind::may_pass`.
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
    /// Bytes of the text and its tag.
    pub length: u32,
    pub hops: u8,
    pub class: Class,
    /// Bytes of this message that follow in later frames; at most `u32::MAX`.
    pub ahead: u32,
    pub from_site: u32,
    pub to_site: u32,
    /// The text is not sealed.
    pub clear: bool,
    pub sender: u128,
    pub receiver: u128,
    /// Different for every text that this sender seals for this receiver.
    pub counter: u64,
}

impl Header {
    pub fn write(&self, to: &mut [u8]) {
        to[..4].copy_from_slice(&self.length.to_le_bytes());
        (to[4], to[5], to[6], to[7]) = (MAGIC, self.hops, self.class as u8, VERSION);
        to[8..12].copy_from_slice(&self.ahead.to_le_bytes());
        to[12..16].copy_from_slice(&self.from_site.to_le_bytes());
        to[16..20].copy_from_slice(&self.to_site.to_le_bytes());
        to[20..24].copy_from_slice(&[u8::from(self.clear), 0, 0, 0]);
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
        let clear = match number(20) {
            0 => false,
            1 => true,
            _ => return None,
        };
        let (tag, largest) = if clear { (0, LARGEST_CLEAR) } else { (TAG, LARGEST) };
        let fits = (INNER + tag..=INNER + largest + tag).contains(&(length as usize));
        (bytes[4] == MAGIC && bytes[7] == VERSION && fits).then(|| Header {
            length,
            hops: bytes[5],
            class,
            ahead: number(8),
            from_site: number(12),
            to_site: number(16),
            clear,
            sender: uid(24),
            receiver: uid(40),
            counter: u64::from_le_bytes(bytes[56..64].try_into().expect("8")),
        })
    }

    /// The same for a sealed frame only: gateways and what passes them know no others.
    pub fn read_sealed(bytes: &[u8]) -> Option<Header> {
        Header::read(bytes).filter(|header| !header.clear)
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
pub enum FrameKind {
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

impl FrameKind {
    fn from_u8(byte: u8) -> Option<FrameKind> {
        use FrameKind::*;
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
        matches!(
            self,
            FrameKind::Welcome
                | FrameKind::Arrived
                | FrameKind::Credit
                | FrameKind::Ask
                | FrameKind::Beat
        )
    }

    /// The class of an unnumbered frame with this `number`.
    pub fn class(self, number: u64) -> Class {
        match self {
            FrameKind::Hello if number > 0 => Class::Resume,
            _ if self.may_pass() => Class::Status,
            _ => Class::Control,
        }
    }
}

/// The part of the sealed text before the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inner {
    pub kind: FrameKind,
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
            kind: FrameKind::from_u8(front[0])?,
            flag: front[1] != 0,
            number: u64::from_le_bytes(front[8..16].try_into().ok()?),
            arrived: u64::from_le_bytes(front[16..24].try_into().ok()?),
        })
    }
}

/// A frame of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    pub version: u8,
    pub sender: u128,
    pub receiver: u128,
}

impl Foreign {
    /// What stands at the front of `bytes`, if it is a frame of another version.
    pub fn read(bytes: &[u8]) -> Option<Foreign> {
        let bytes = bytes.get(..HEADER)?;
        let uid = |at: usize| u128::from_le_bytes(bytes[at..at + 16].try_into().expect("16"));
        let (version, sender, receiver) = (bytes[7], uid(24), uid(40));
        (bytes[4] == MAGIC && version != VERSION).then_some(Foreign { version, sender, receiver })
    }

    /// A frame whose header tells the sender which version this process speaks.
    pub fn answer(&self) -> Vec<u8> {
        let header = Header {
            length: INNER as u32,
            hops: HOPS,
            class: Class::Control,
            ahead: 0,
            from_site: 0,
            to_site: 0,
            clear: true,
            sender: self.receiver,
            receiver: self.sender,
            counter: 0,
        };
        let mut frame = vec![0; HEADER + INNER];
        header.write(&mut frame);
        Inner { kind: FrameKind::Broken, flag: false, number: 0, arrived: 0 }
            .write(&mut frame[HEADER..]);
        frame
    }
}

impl std::fmt::Display for Foreign {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = self.version;
        write!(
            to,
            "it speaks version {version} of the wire format, and this process version {VERSION}: \
             install the same version of sfm-kernel for both"
        )
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
            clear: false,
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
        for (at, byte) in [(3, 1), (4, 0), (6, 5), (7, 0), (20, 2), (21, 1)] {
            let mut bad = good;
            bad[at] = byte;
            assert_eq!(Header::read(&bad), None, "{at}");
        }
        let mut short = good;
        short[..4].copy_from_slice(&((INNER + TAG - 1) as u32).to_le_bytes());
        assert_eq!(Header::read(&short), None);
    }

    #[test]
    fn a_clear_frame_is_larger_and_none_for_gateways() {
        let mut bytes = [0; HEADER];
        let clear = Header { clear: true, length: (INNER + LARGEST_CLEAR) as u32, ..header() };
        clear.write(&mut bytes);
        assert_eq!(Header::read(&bytes), Some(clear));
        assert_eq!(Header::read_sealed(&bytes), None);
        bytes[20] = 0;
        assert_eq!(Header::read(&bytes), None);
    }

    #[test]
    fn a_frame_of_another_version_is_known_for_one() {
        let mut bytes = [0; HEADER];
        header().write(&mut bytes);
        assert_eq!(Foreign::read(&bytes), None);
        bytes[7] = VERSION + 1;
        let foreign = Foreign::read(&bytes).unwrap();
        let (sender, receiver) = (header().sender, header().receiver);
        assert_eq!(foreign, Foreign { version: VERSION + 1, sender, receiver });
        let answer = Header::read(&foreign.answer()).unwrap();
        assert_eq!((answer.sender, answer.receiver), (receiver, sender));
    }

    #[test]
    fn an_inner_header_comes_back() {
        let inner = Inner { kind: FrameKind::Welcome, flag: true, number: 1 << 60, arrived: 3 };
        let mut text = [0; INNER];
        inner.write(&mut text);
        assert_eq!(Inner::read(&text), Some(inner));
        text[0] = b'?';
        assert_eq!(Inner::read(&text), None);
        assert_eq!(Inner::read(&text[1..]), None);
    }
}
