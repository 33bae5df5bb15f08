//! Writing a packet.

use super::{Body, Kind, Packet, ALIGN, DESCRIPTOR, HEADER, MAGIC, VERSION};

/// Builds a packet in two passes: attributes first (small values inline), then `finish` lays out
/// the buffers, whose bytes the caller copies in.
#[derive(Default)]
pub struct Builder {
    table: Vec<u8>,
    count: usize,
    lengths: Vec<u64>,
}

impl Builder {
    pub fn new() -> Builder {
        Builder { table: Vec::with_capacity(256), ..Builder::default() }
    }

    /// Announce an out-of-band buffer; its index.
    pub fn buffer(&mut self, length: usize) -> u32 {
        self.lengths.push(length as u64);
        (self.lengths.len() - 1) as u32
    }

    pub fn buffers(&self) -> u32 {
        self.lengths.len() as u32
    }

    /// Add an attribute whose value is the concatenation of `parts`.
    pub fn attribute(&mut self, name: &str, kind: Kind, parts: &[&[u8]]) -> Result<(), String> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if name.len() > u16::MAX as usize {
            return Err("its name is longer than 65535 bytes".into());
        }
        if self.count >= u16::MAX as usize {
            return Err("a message has at most 65535 attributes".into());
        }
        let length = u32::try_from(length).map_err(|_| "its value is too long".to_string())?;
        self.count += 1;
        self.table.extend_from_slice(&(name.len() as u16).to_le_bytes());
        self.table.extend_from_slice(&[kind as u8, 0]);
        self.table.extend_from_slice(&length.to_le_bytes());
        self.table.extend_from_slice(name.as_bytes());
        for part in parts {
            self.table.extend_from_slice(part);
        }
        Ok(())
    }

    /// The packet with its tables written; `fill(nth, memory)` must write buffer `nth` whole.
    pub fn finish(self, mut fill: impl FnMut(usize, &mut [u8])) -> Option<Packet> {
        let mut end = HEADER + self.table.len() + self.lengths.len() * DESCRIPTOR;
        let descriptors: Vec<(usize, usize)> = (self.lengths.iter())
            .map(|&length| {
                let at = end.next_multiple_of(ALIGN);
                end = at + length as usize;
                (at, length as usize)
            })
            .collect();
        let body = Body::try_new(end)?;
        // SAFETY: fresh memory that only this function sees. Zero the tables and the first gap;
        // gaps between buffers are zeroed below, so that no old memory travels.
        let bytes = unsafe {
            let first = descriptors.first().map_or(end, |one| one.0);
            std::ptr::write_bytes(body.as_ptr(), 0, first);
            std::slice::from_raw_parts_mut(body.as_ptr(), end)
        };
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[6..8].copy_from_slice(&(self.count as u16).to_le_bytes());
        bytes[8..12].copy_from_slice(&(self.table.len() as u32).to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.lengths.len() as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&(end as u64).to_le_bytes());
        bytes[HEADER..HEADER + self.table.len()].copy_from_slice(&self.table);
        let mut at = HEADER + self.table.len();
        let mut written = end;
        for (nth, &(offset, length)) in descriptors.iter().enumerate() {
            bytes[at..at + 8].copy_from_slice(&(offset as u64).to_le_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&(length as u64).to_le_bytes());
            at += DESCRIPTOR;
            if nth > 0 {
                bytes[written..offset].fill(0);
            }
            fill(nth, &mut bytes[offset..offset + length]);
            written = offset + length;
        }
        Some(Packet::of(body))
    }
}
