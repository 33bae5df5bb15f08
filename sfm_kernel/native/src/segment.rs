//! A process's segment: what others may read and ring without its help.
//!
//! One small file for each process. Senders set a bit in `arrivals`, announce their ring in
//! `rings`, and ring the bell. The process keeps its state here, so that an observer sees what
//! it does while it hangs, holds the GIL, is stopped, or after it died.

use std::path::Path;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

use crate::bell::Bell;
use crate::clock::now;
use crate::life::Life;
use crate::shm::{Mapping, ShmError};
use crate::sync::Padded;
use crate::trace::{Trace, What};

/// Processes of one world: one bit each in `arrivals`. Also MAX_MEMBERS in transport/base.py.
pub const SLOTS: usize = 512;
const MAGIC: u64 = u64::from_le_bytes(*b"SFMSEG\0\x02");

/// What a process is doing, as its segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Doing {
    Idle = 0,
    Running = 1,
    Receiving = 2,
    Sending = 3,
    Left = 4,
    Collective = 5,
}

impl Doing {
    pub fn name(code: u32) -> &'static str {
        match code {
            0 => "idle",
            1 => "running",
            2 => "blocked in recv",
            3 => "blocked in send",
            5 => "blocked in collective",
            _ => "left",
        }
    }
}

#[repr(C)]
pub struct Shared {
    magic: AtomicU64,
    uid: [AtomicU64; 2],
    /// Rung when something arrived for a blocked call, and when a blocked sender may go on.
    pub bell: Padded<Bell>,
    /// Rung when the network thread has work: callbacks, a full ring, an observer's wish.
    pub network: Padded<Bell>,
    /// Bit n: the process in slot n has published something since the bit was taken.
    pub arrivals: Padded<[AtomicU64; SLOTS / 64]>,
    /// 1 while the network thread receives for callbacks; senders then ring `network` too.
    pub callbacks: AtomicU32,
    /// 1 while a receiving call sleeps where `bell` cannot wake it; senders ring `network` too.
    pub driving: AtomicU32,
    /// 1 when a sender's ring is full: the network thread must make room if nobody receives.
    pub pressure: AtomicU32,
    /// 1 once the process has left: sending to it is of no use.
    pub left: AtomicU32,
    /// Held by the network thread.
    pub life: Life,
    pub doing: Padded<AtomicU32>,
    /// Nanoseconds since 1970 at which `doing` became what it is.
    pub since: AtomicU64,
    pub depth: AtomicU64,
    pub bytes: AtomicU64,
    pub sent: AtomicU64,
    pub received: AtomicU64,
    /// An observer wants `summary` written anew; counts wishes.
    pub wishes: AtomicU32,
    pub waits: Text<128>,
    pub info: Text<512>,
    pub summary: Text<2048>,
    pub trace: Trace,
    /// The uid of the ring that the process in slot n sends through.
    rings: [[AtomicU64; 2]; SLOTS],
}

pub type Segment = Mapping<Shared>;

pub fn create(path: &Path, uid: u128, info: &str) -> Result<Segment, ShmError> {
    Mapping::create(path, std::mem::size_of::<Shared>(), 0, |shared: &Segment| {
        shared.init(uid);
        shared.info.write(info);
    })
}

/// Map another process's segment. Reaching it is the proof that memory is shared.
pub fn open(path: &Path, uid: Option<u128>) -> Result<Segment, ShmError> {
    let segment: Segment = Mapping::open(path, 0)?;
    if segment.magic.load(Ordering::Acquire) != MAGIC {
        return Err(ShmError::Invalid(format!("{} is no segment of this version", path.display())));
    }
    if uid.is_some_and(|uid| segment.uid() != uid) {
        return Err(ShmError::Invalid(format!("{} belongs to another process", path.display())));
    }
    Ok(segment)
}

fn split(uid: u128) -> [u64; 2] {
    [uid as u64, (uid >> 64) as u64]
}

fn join(parts: &[AtomicU64; 2]) -> u128 {
    let [low, high] = [parts[0].load(Ordering::Acquire), parts[1].load(Ordering::Acquire)];
    u128::from(low) | u128::from(high) << 64
}

impl Shared {
    pub fn init(&self, uid: u128) {
        for (word, part) in self.uid.iter().zip(split(uid)) {
            word.store(part, Ordering::Relaxed);
        }
        self.set_doing(Doing::Running);
        self.magic.store(MAGIC, Ordering::Release);
    }

    pub fn uid(&self) -> u128 {
        join(&self.uid)
    }

    /// A sender in `slot` says which ring it writes to; before its first `announce_arrival`.
    pub fn announce_ring(&self, slot: usize, uid: u128) {
        for (word, part) in self.rings[slot].iter().zip(split(uid)) {
            word.store(part, Ordering::Release);
        }
    }

    pub fn ring_of(&self, slot: usize) -> u128 {
        join(&self.rings[slot])
    }

    /// Tell the owner that `slot` has published something, and wake it.
    pub fn announce_arrival(&self, slot: usize) {
        // SYNC POINT segment/arrivals: the bit is set before the bell is rung; the owner takes
        // the bits after it has read the bell's word.
        self.arrivals.0[slot / 64].fetch_or(1 << (slot % 64), Ordering::SeqCst);
        self.bell.0.ring();
        // SYNC POINT core/driving: with the flag's owner, who looks for arrivals after it set it.
        if self.callbacks.load(Ordering::SeqCst) | self.driving.load(Ordering::SeqCst) != 0 {
            self.network.0.ring();
        }
    }

    /// A sender sleeps for room in its ring.
    pub fn announce_pressure(&self) {
        self.pressure.store(1, Ordering::SeqCst);
        self.network.0.ring();
    }

    pub fn has_arrivals(&self) -> bool {
        self.arrivals.0.iter().any(|word| word.load(Ordering::SeqCst) != 0)
    }

    pub fn set_doing(&self, doing: Doing) {
        self.since.store(now(), Ordering::Relaxed);
        self.doing.0.store(doing as u32, Ordering::Release);
        self.trace.record(What::Doing, 0, doing as u64, 0);
    }

    pub fn set_depth(&self, depth: usize, bytes: u64) {
        self.depth.store(depth as u64, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}

/// Text that one process writes and others read at any time: a sequence lock.
///
/// The writer makes `version` odd while it writes. A writer killed meanwhile leaves it odd, and
/// readers give up instead of waiting for it.
#[repr(C)]
pub struct Text<const WORDS: usize> {
    version: AtomicU32,
    length: AtomicU32,
    // Words, not bytes: fewer atomic operations; and atomics, because a racing read must be defined.
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Text<WORDS> {
    /// Replace the text; what does not fit is cut at a character. One writer at a time.
    pub fn write(&self, text: &str) {
        let mut length = text.len().min(WORDS * 8);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        let version = self.version.load(Ordering::Relaxed) | 1;
        self.version.store(version, Ordering::Relaxed);
        // SYNC POINT text: odd version before the words; the words before the even version.
        fence(Ordering::Release);
        self.length.store(length as u32, Ordering::Relaxed);
        for (word, chunk) in self.words.iter().zip(text.as_bytes()[..length].chunks(8)) {
            let mut bytes = [0u8; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
        self.version.store(version.wrapping_add(1), Ordering::Release);
    }

    /// The text, or None if the writer was at it all the time (or died in it).
    pub fn read(&self) -> Option<String> {
        for _ in 0..1000 {
            let version = self.version.load(Ordering::Acquire);
            if version & 1 == 1 {
                std::thread::yield_now();
                continue;
            }
            let length = (self.length.load(Ordering::Relaxed) as usize).min(WORDS * 8);
            let mut bytes = Vec::with_capacity(length + 8);
            for word in &self.words[..length.div_ceil(8)] {
                bytes.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            // SYNC POINT text: the words before the second look at the version.
            fence(Ordering::Acquire);
            if self.version.load(Ordering::Relaxed) == version {
                bytes.truncate(length);
                return Some(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        None
    }

    /// Grows with each `write`.
    pub fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }
}
