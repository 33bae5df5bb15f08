//! The packet (SFP): a message as it travels. Pure: bytes in, views out.
//!
//! Layout, little-endian, everything relative to the packet's first byte:
//!
//! ```text
//!  0  magic     4 bytes  "SFP\xB5"   (the high byte catches transports that are not 8-bit clean)
//!  4  version   u8       2
//!  5  flags     u8       1 for an envelope (envelope.rs), otherwise 0
//!  6  count     u16      attributes
//!  8  table     u32      bytes of the attribute table
//! 12  buffers   u32      out-of-band buffers
//! 16  total     u64      bytes of the whole packet
//! 24  context   u64      0 for the user's messages, otherwise a context's number (core/queues.rs)
//! 32  table:    count x { name length u16, kind u8, 0 u8, value length u32, name, value }
//!     buffers:  n x { offset u64, length u64 }, then the bytes, each at a multiple of 64
//! ```
//!
//! Small values of Python's own scalar types stand in the table, so that a template is matched
//! without running Python. Everything else is a pickle (protocol 5) whose buffers, such as the
//! memory of an array, are out of band and aligned for SIMD.
//! Source: SFM paper, section 4.1 (header of magic and length), grown by the attribute table.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

mod body;
mod builder;
mod envelope;
mod gather;
mod pages;
mod peek;
mod shape;
mod validate;

pub use body::{Body, Tail};
pub use builder::Builder;
pub use envelope::{open, Envelope, Opened, SEEN};
pub use gather::Gather;
pub use peek::{account, context_of, is_answer, is_news, next_entry, with_entries};
pub use peek::{ACCOUNTS, ANSWERS, COUNTED, LIBRARY};
pub use shape::{Shape, MAX_DIMENSIONS};
pub use validate::validate_foreign;
use validate::{validate, validate_split};

use crate::sync::lock;

pub const MAGIC: [u8; 4] = *b"SFP\xB5";
pub const VERSION: u8 = 2;
pub const HEADER: usize = 32;
pub const ALIGN: usize = 64;
const ENTRY: usize = 8;
const DESCRIPTOR: usize = 16;

/// A packet's cost to its receiver beyond its bytes: the queue's node, the indexes, malloc.
pub const OVERHEAD: u64 = 128;

/// The encoding of a value. The numbers are the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    None = 0,
    False = 1,
    True = 2,
    Int = 3,        // i64
    BigInt = 4,     // two's complement, little-endian, any length
    Float = 5,      // f64
    Str = 6,        // UTF-8
    Bytes = 7,      //
    Pickle = 8,     // first buffer u32, buffers u32, pickle
    BigStr = 9,     // buffer index u32
    BigBytes = 10,  // buffer index u32
    BigPickle = 11, // first buffer u32, buffers u32; the first holds the pickle itself
    Array = 12,     // buffer u32, kind u8, item size u8, order u8, dimensions u8, each extent u64
}

impl Kind {
    fn from_u8(byte: u8) -> Option<Kind> {
        use Kind::*;
        Some(match byte {
            0 => None,
            1 => False,
            2 => True,
            3 => Int,
            4 => BigInt,
            5 => Float,
            6 => Str,
            7 => Bytes,
            8 => Pickle,
            9 => BigStr,
            10 => BigBytes,
            11 => BigPickle,
            12 => Array,
            _ => return Option::None,
        })
    }
}

/// One attribute of a valid packet.
#[derive(Clone, Copy)]
pub struct Attribute<'a> {
    pub name: &'a str,
    pub kind: Kind,
    pub value: &'a [u8],
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The numbers in front of an attribute: bytes of its name and of its value, and its kind.
struct Entry {
    name: usize,
    kind: u8,
    value: usize,
}

impl Entry {
    fn of(bytes: [u8; ENTRY]) -> Entry {
        let word = u64::from_le_bytes(bytes);
        let (name, kind) = (usize::from(word as u16), (word >> 16) as u8);
        Entry { name, kind, value: (word >> 32) as usize }
    }
}

/// The result of `head`.
#[derive(Debug, PartialEq, Eq)]
pub enum Head {
    /// Not enough bytes to tell.
    Incomplete,
    /// A packet of this many bytes begins here (they need not all be there yet).
    Packet(u64),
}

/// Check the front of a stream. Refuses impossible packets as early as possible.
pub fn head(bytes: &[u8]) -> Result<Head, String> {
    let seen = bytes.len().min(4);
    if bytes[..seen] != MAGIC[..seen] {
        return Err(format!("wrong magic {:02x?}, expected {:02x?}", &bytes[..seen], MAGIC));
    }
    if bytes.len() > 4 && bytes[4] != VERSION {
        return Err(format!(
            "version {}, and this sfm-kernel reads version {VERSION}: install the same release on both sides",
            bytes[4]
        ));
    }
    if bytes.len() < HEADER {
        return Ok(Head::Incomplete);
    }
    let table = u64::from(u32_at(bytes, 8));
    let buffers = u64::from(u32_at(bytes, 12));
    let total = u64_at(bytes, 16);
    let least = HEADER as u64 + table + buffers * DESCRIPTOR as u64;
    if bytes[5] & !envelope::ENVELOPE != 0 {
        return Err(format!("unknown flags {:#04x}", bytes[5]));
    }
    if total < least || total > isize::MAX as u64 {
        return Err(format!("length {total} cannot hold the {least} bytes of its tables"));
    }
    Ok(Head::Packet(total))
}

/// The offset at which the tables of a valid packet end.
pub fn tables(bytes: &[u8]) -> usize {
    HEADER + u32_at(bytes, 8) as usize + u32_at(bytes, 12) as usize * DESCRIPTOR
}

fn descriptor(bytes: &[u8], table_end: usize, nth: usize) -> (u64, u64) {
    let at = table_end + nth * DESCRIPTOR;
    (u64_at(bytes, at), u64_at(bytes, at + 8))
}

/// The attributes of a valid packet, in order.
pub fn table(bytes: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    let is_envelope = envelope::is_envelope(bytes);
    let count = if is_envelope { envelope::COUNT } else { usize::from(u16_at(bytes, 6)) };
    let mut at = HEADER;
    (0..count).map(move |nth| {
        if is_envelope {
            return envelope::attribute(bytes, nth);
        }
        let name = u16_at(bytes, at) as usize;
        let kind = Kind::from_u8(bytes[at + 2]).expect("validated");
        let value = u32_at(bytes, at + 4) as usize;
        let name_at = at + ENTRY;
        at = name_at + name + value;
        Attribute {
            // SAFETY: `validate` has checked that the name is UTF-8.
            name: unsafe { std::str::from_utf8_unchecked(&bytes[name_at..name_at + name]) },
            kind,
            value: &bytes[name_at + name..at],
        }
    })
}

/// The attribute `name` of a valid packet: as `table` would find it, comparing only the names.
pub fn find<'a>(bytes: &'a [u8], name: &str) -> Option<Attribute<'a>> {
    if envelope::is_envelope(bytes) {
        return envelope::find(bytes, name);
    }
    find_in(&bytes[HEADER..end_of_table(bytes)], name).map(|found| found.0)
}

fn end_of_table(bytes: &[u8]) -> usize {
    HEADER + u32_at(bytes, 8) as usize
}

/// The attribute `name` among these entries, and the entries behind it.
fn find_in<'a>(mut entries: &'a [u8], name: &str) -> Option<(Attribute<'a>, &'a [u8])> {
    let wanted = name.as_bytes();
    while let Some((entry, behind)) = entries.split_first_chunk() {
        let entry = Entry::of(*entry);
        // Most names differ in their length or their first byte, which saves a call of memcmp.
        let similar = entry.name == wanted.len() && behind.first() == wanted.first();
        if similar || wanted.is_empty() {
            let (found, behind) = behind.split_at_checked(entry.name)?;
            if found == wanted {
                let kind = Kind::from_u8(entry.kind).expect("validated");
                // SAFETY: the bytes are equal to those of a str, so they are valid UTF-8.
                let name = unsafe { std::str::from_utf8_unchecked(found) };
                let (value, behind) = behind.split_at(entry.value);
                return Some((Attribute { name, kind, value }, behind));
            }
        }
        entries = behind.get(entry.name + entry.value..)?;
    }
    None
}

/// A valid packet in its own memory.
///
/// The tables are never written again. The memory of out-of-band buffers is handed to Python as
/// writable, once for each value; Rust reads it only before that.
pub struct Packet {
    /// The whole packet, or its tables only.
    body: Body,
    /// The buffers, if they are elsewhere: all bytes behind the body.
    tail: Option<Tail>,
    /// The Python layer keeps decoded values here while the message is queued, so that a predicate
    /// that reads it again and again does not decode them each time. Values may refer to the
    /// packet: what leaves the queue must be emptied, or they would keep each other alive.
    decoded: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
    /// Whether there may be any: most messages are received before anything was decoded.
    is_decoded: AtomicBool,
}

impl Packet {
    /// Take over `body`, whose bytes must all be written.
    pub fn new(body: Body) -> Result<Packet, String> {
        validate(body.bytes())?;
        Ok(Packet::of(body, None))
    }

    /// A packet of `total` bytes whose buffers are in `tail`.
    pub fn split(body: Body, tail: Tail, total: u64) -> Result<Packet, String> {
        validate_split(body.bytes(), total)?;
        if body.len() as u64 + tail.len() as u64 != total {
            return Err(format!("its parts are not {total} bytes"));
        }
        Ok(Packet::of(body, Some(tail)))
    }

    /// The packet in memory that is known to be valid.
    fn of(body: Body, tail: Option<Tail>) -> Packet {
        Packet { body, tail, decoded: Mutex::new(None), is_decoded: AtomicBool::new(false) }
    }

    /// The decoded values; `make` makes their store. All callers name the same type.
    pub fn decoded<T: Any + Send + Sync>(&self, make: impl Fn() -> Arc<T>) -> Arc<T> {
        let mut decoded = lock(&self.decoded);
        match decoded.clone().and_then(|any| any.downcast().ok()) {
            Some(decoded) => decoded,
            None => {
                let made = make();
                // SYNC POINT packet/decoded: with `forget_decoded`. The values are written under
                // the lock, which both take.
                self.is_decoded.store(true, Ordering::Release);
                *decoded = Some(made.clone());
                made
            }
        }
    }

    /// The decoded values, which now belong to the message's owner.
    pub fn take_decoded<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.forget_decoded().and_then(|any| any.downcast().ok())
    }

    /// The same for a packet that nobody will read any more. To be dropped without locks: that may
    /// run Python.
    pub fn forget_decoded(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        // SYNC POINT packet/decoded: with `decoded`.
        if !self.is_decoded.load(Ordering::Acquire) {
            return None;
        }
        lock(&self.decoded).take()
    }

    /// The bytes up to the end of the tables, at least.
    pub fn tables(&self) -> &[u8] {
        // Buffers in the body are never read through this slice.
        self.body.bytes()
    }

    /// All bytes, if they are contiguous. Not to be called once a buffer was handed out.
    pub fn contiguous(&self) -> Option<&[u8]> {
        self.tail.is_none().then(|| self.body.bytes())
    }

    /// Bytes of the whole packet.
    pub fn len(&self) -> usize {
        self.body.len() + self.tail.as_ref().map_or(0, Tail::len)
    }
    pub fn is_empty(&self) -> bool {
        false
    }
    /// Its cost in flow control.
    pub fn cost(&self) -> u64 {
        cost(self.len())
    }
    /// The context in which it is matched; 0 for messages of users.
    pub fn context(&self) -> u64 {
        u64_at(self.tables(), 24)
    }
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'_>> {
        table(self.tables())
    }
    pub fn find(&self, name: &str) -> Option<Attribute<'_>> {
        find(self.tables(), name)
    }
    /// The same for a caller that mostly asks for the attributes in their order: with the position
    /// behind the attribute, which the next call gets as `near`; 0 for the first.
    pub fn find_near(&self, name: &str, near: usize) -> Option<(Attribute<'_>, usize)> {
        let (bytes, end) = (self.tables(), end_of_table(self.tables()));
        if envelope::is_envelope(bytes) {
            return envelope::find(bytes, name).map(|found| (found, 0));
        }
        let behind = bytes.get(near.max(HEADER)..end).and_then(|entries| find_in(entries, name));
        let (found, rest) = behind.or_else(|| find_in(&bytes[HEADER..end], name))?;
        Some((found, end - rest.len()))
    }

    /// The address of buffer `nth`, and its length.
    pub fn buffer(&self, nth: usize) -> (*mut u8, usize) {
        let bytes = self.tables();
        let (offset, length) = descriptor(bytes, HEADER + u32_at(bytes, 8) as usize, nth);
        let (at, length) = (offset as usize, length as usize);
        let start = match &self.tail {
            // SAFETY: validated: the buffer lies in the tail, which begins where the body ends.
            Some(tail) => unsafe { tail.as_ptr().add(at - self.body.len()) },
            // SAFETY: validated: the buffer lies in the body.
            None => unsafe { self.body.as_ptr().add(at) },
        };
        (start, length)
    }

    /// The bytes of buffer `nth`, before it is handed out as writable.
    pub fn buffer_bytes(&self, nth: usize) -> &[u8] {
        let (at, length) = self.buffer(nth);
        // SAFETY: valid as long as self; see the type's comment on writes.
        unsafe { std::slice::from_raw_parts(at, length) }
    }
}

/// The cost of a packet of `len` bytes in flow control, at both ends.
pub fn cost(len: usize) -> u64 {
    len as u64 + OVERHEAD
}

#[cfg(test)]
mod tests;
