//! The envelope: a packet that is matched by two numbers, a source and a tag, and carries bytes.
//!
//! A message without names, such as one of MPI, needs no attribute table: the flag ENVELOPE in the
//! header means that the table holds three numbers, and behind them the bytes, or none of them if
//! there are so many that they are a buffer:
//!
//! ```text
//! 32 source i64 · 40 tag i64 · 48 note u64 · 56 the bytes, as long as the table says
//! ```
//!
//! Other readers see attributes all the same: `src` and `tag` are integers, `data` is bytes. So
//! templates, indexes, observers and Python need to know nothing of envelopes. The note is between
//! the two libraries: the message's kind.

use super::{
    u16_at, u32_at, u64_at, Attribute, Gather, Kind, Packet, ALIGN, DESCRIPTOR, ENTRY, HEADER,
    MAGIC, VERSION,
};

/// In the header's flags.
pub(super) const ENVELOPE: u8 = 1;
/// Bytes of the three numbers.
pub(super) const NUMBERS: usize = 24;
/// Header and numbers: the offset of bytes that are in the table.
pub const FRONT: usize = HEADER + NUMBERS;
/// Bytes from which on they are a buffer, which the sender's arena can hold.
const BUFFER_FROM: usize = 8 << 10;
/// The offset of that buffer.
const BUFFER_AT: usize = (FRONT + DESCRIPTOR).next_multiple_of(ALIGN);
/// An envelope's attributes for readers that go by names.
const NAMES: [&str; 3] = ["src", "tag", "data"];

/// The numbers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub context: u64,
    pub source: i64,
    pub tag: i64,
    pub note: u64,
}

/// The beginning of a packet that is about to be sent.
pub struct Front {
    bytes: [u8; BUFFER_AT],
    length: usize,
}

impl Envelope {
    /// The front for `length` bytes.
    pub fn front(&self, length: usize) -> Front {
        let is_buffer = length >= BUFFER_FROM;
        let table = if is_buffer { NUMBERS } else { NUMBERS + length };
        let start = if is_buffer { BUFFER_AT } else { FRONT };
        let mut bytes = [0; BUFFER_AT];
        bytes[..4].copy_from_slice(&MAGIC);
        (bytes[4], bytes[5]) = (VERSION, ENVELOPE);
        bytes[8..12].copy_from_slice(&(table as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&((start + length) as u64).to_le_bytes());
        bytes[24..32].copy_from_slice(&self.context.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.source.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.tag.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.note.to_le_bytes());
        if is_buffer {
            bytes[12] = 1;
            bytes[56..64].copy_from_slice(&(BUFFER_AT as u64).to_le_bytes());
            bytes[64..72].copy_from_slice(&(length as u64).to_le_bytes());
        }
        Front { bytes, length: start }
    }
}

impl Front {
    /// The length of the packet.
    pub fn packet_length(&self) -> usize {
        u64_at(&self.bytes, 16) as usize
    }

    /// The packet with the bytes at `from`, as many as the front was made for.
    ///
    /// # Safety
    /// The bytes must stay valid as long as the result is used.
    pub unsafe fn with(&self, from: *const u8, length: usize) -> Gather<'_> {
        let head = &self.bytes[..self.length];
        if length == 0 {
            return Gather::of(head);
        }
        // SAFETY: the caller keeps the source; one piece, right behind the head.
        unsafe { Gather::new(head, [(head.len(), from, length)], head.len() + length) }
    }
}

/// A packet's beginning that was found to be an envelope's: its numbers, and the range of its bytes
/// in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    pub envelope: Envelope,
    pub at: usize,
    pub length: usize,
}

/// Bytes of a packet that `open` needs to see, if it has as many.
pub const SEEN: usize = FRONT + DESCRIPTOR;

/// Read the beginning of a packet of `total` bytes: its first SEEN, or all if it has less. None if
/// it is no envelope, or if anything is odd: `validate` then names the fault.
pub fn open(bytes: &[u8], total: usize) -> Option<Opened> {
    if bytes.len() < FRONT.max(total.min(SEEN)) || bytes[5] != ENVELOPE {
        return None;
    }
    let table = u32_at(bytes, 8) as usize;
    let known = bytes[..4] == MAGIC && bytes[4] == VERSION && u16_at(bytes, 6) == 0;
    if !known || table < NUMBERS || u64_at(bytes, 16) != total as u64 {
        return None;
    }
    let (at, length) = match u32_at(bytes, 12) {
        0 => (FRONT, table - NUMBERS),
        1 if table == NUMBERS && bytes.len() >= SEEN => {
            let (at, length) = (u64_at(bytes, FRONT), u64_at(bytes, FRONT + 8));
            (usize::try_from(at).ok()?, usize::try_from(length).ok()?)
        }
        _ => return None,
    };
    let is_inside = at >= FRONT && at.checked_add(length)? <= total;
    is_inside.then(|| Opened { envelope: envelope_of(bytes), at, length })
}

/// Whether a packet is an envelope; its header has been checked.
pub(super) fn is_envelope(bytes: &[u8]) -> bool {
    bytes[5] == ENVELOPE
}

/// The numbers of a valid envelope.
fn envelope_of(bytes: &[u8]) -> Envelope {
    Envelope {
        context: u64_at(bytes, 24),
        source: u64_at(bytes, HEADER) as i64,
        tag: u64_at(bytes, HEADER + 8) as i64,
        note: u64_at(bytes, HEADER + 16),
    }
}

/// The `nth` attribute of a valid envelope.
pub(super) fn attribute(bytes: &[u8], nth: usize) -> Attribute<'_> {
    let (kind, value) = match nth {
        0 => (Kind::Int, &bytes[HEADER..HEADER + 8]),
        1 => (Kind::Int, &bytes[HEADER + 8..HEADER + 16]),
        _ if u32_at(bytes, 12) == 0 => {
            (Kind::Bytes, &bytes[FRONT..HEADER + u32_at(bytes, 8) as usize])
        }
        _ => (Kind::BigBytes, &[0; 4][..]), // the first and only buffer
    };
    Attribute { name: NAMES[nth], kind, value }
}

pub(super) const COUNT: usize = NAMES.len();

pub(super) fn find<'a>(bytes: &'a [u8], name: &str) -> Option<Attribute<'a>> {
    let nth = NAMES.iter().position(|known| *known == name)?;
    Some(attribute(bytes, nth))
}

/// The tag of an envelope's front, as an entry of a table, for a trace.
pub fn entry_of_tag(front: &[u8]) -> Option<[u8; ENTRY + 3 + 8]> {
    if front.len() < FRONT || !is_envelope(front) {
        return None;
    }
    let mut entry = [0; ENTRY + 3 + 8];
    (entry[0], entry[2], entry[4]) = (3, Kind::Int as u8, 8);
    entry[8..11].copy_from_slice(b"tag");
    entry[11..].copy_from_slice(&front[HEADER + 8..HEADER + 16]);
    Some(entry)
}

impl Packet {
    /// Its numbers, if it is an envelope.
    pub fn envelope(&self) -> Option<Envelope> {
        let bytes = self.tables();
        is_envelope(bytes).then(|| envelope_of(bytes))
    }

    /// The bytes that an envelope carries; none for another packet.
    pub fn payload(&self) -> &[u8] {
        let bytes = self.tables();
        match (is_envelope(bytes), u32_at(bytes, 12)) {
            (false, _) => &[],
            (true, 0) => &bytes[FRONT..HEADER + u32_at(bytes, 8) as usize],
            (true, _) => self.buffer_bytes(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{head, table, validate_foreign, Head};
    use super::*;

    fn made(length: usize) -> (Envelope, Packet, Vec<u8>) {
        let envelope = Envelope { context: 9, source: 3, tag: -7, note: 1 << 40 };
        let bytes: Vec<u8> = (0..length).map(|nth| nth as u8).collect();
        let front = envelope.front(length);
        // SAFETY: `bytes` lives until the packet is made.
        let packet = unsafe { front.with(bytes.as_ptr(), length) }.to_packet().unwrap();
        (envelope, packet, bytes)
    }

    #[test]
    fn envelopes_are_read_by_number_and_by_name() {
        for length in [0, 1, 8, 100, BUFFER_FROM - 1, BUFFER_FROM, 100_000] {
            let (envelope, packet, bytes) = made(length);
            let encoded = packet.contiguous().unwrap();
            validate_foreign(encoded).unwrap();
            assert_eq!(head(encoded), Ok(Head::Packet(encoded.len() as u64)));
            assert_eq!((packet.envelope(), packet.payload()), (Some(envelope), &bytes[..]));
            let opened = open(&encoded[..encoded.len().min(SEEN)], encoded.len()).unwrap();
            assert_eq!(opened.envelope, envelope);
            assert_eq!(&encoded[opened.at..opened.at + opened.length], bytes);
            assert_eq!(packet.find("src").unwrap().value, 3i64.to_le_bytes());
            assert_eq!(packet.find("tag").unwrap().value, (-7i64).to_le_bytes());
            assert!(packet.find("dest").is_none());
            assert_eq!(table(encoded).map(|attribute| attribute.name).collect::<Vec<_>>(), NAMES);
            assert_eq!(packet.context(), 9);
            for cut in 0..encoded.len().min(SEEN) {
                assert!(open(&encoded[..cut], encoded.len()).is_none());
                assert!(open(&encoded[..cut], cut).is_none());
            }
        }
    }

    #[test]
    fn a_trace_keeps_its_tag_as_an_entry() {
        let (_, packet, _) = made(5);
        let entry = entry_of_tag(packet.contiguous().unwrap()).unwrap();
        let pair = ("tag".to_string(), "-7".to_string());
        assert_eq!(crate::summary::summary_of(&entry), [pair]);
    }
}
