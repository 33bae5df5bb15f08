//! Writing a packet's tables.

use super::{Gather, Kind, ALIGN, DESCRIPTOR, HEADER, MAGIC, VERSION};

/// An out-of-band buffer: the present address of its bytes.
struct Source {
    from: *const u8,
    len: usize,
}

/// Builds a packet: small values go into the table, large ones stay in place until the
/// packet is gathered. May be used again after `clear`, which keeps its memory.
#[derive(Default)]
pub struct Builder {
    /// Header and table, later the descriptors, too.
    head: Vec<u8>,
    sources: Vec<Source>,
    count: usize,
    context: u64,
}

impl Builder {
    pub fn new() -> Builder {
        let mut builder = Builder::default();
        builder.clear();
        builder
    }

    /// Begin another packet.
    pub fn clear(&mut self) {
        self.head.clear();
        self.head.extend_from_slice(&[0; HEADER]);
        self.sources.clear();
        (self.count, self.context) = (0, 0);
    }

    /// Set the context in which the packet is matched.
    pub fn set_context(&mut self, context: u64) {
        self.context = context;
    }

    /// Add an out-of-band buffer, and return its index. Its bytes are read when the packet is
    /// gathered.
    pub fn buffer(&mut self, from: *const u8, len: usize) -> u32 {
        self.sources.push(Source { from, len });
        (self.sources.len() - 1) as u32
    }

    pub fn buffers(&self) -> u32 {
        self.sources.len() as u32
    }

    /// Add an attribute whose value is the concatenation of `chunks`.
    pub fn attribute(&mut self, name: &str, kind: Kind, chunks: &[&[u8]]) -> Result<(), String> {
        let length: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        if name.len() > u16::MAX as usize {
            return Err("its name is longer than 65535 bytes".into());
        }
        let length = u32::try_from(length).map_err(|_| "its value is too long".to_string())?;
        let mut entry = [0u8; 8];
        entry[..2].copy_from_slice(&(name.len() as u16).to_le_bytes());
        entry[2] = kind as u8;
        entry[4..].copy_from_slice(&length.to_le_bytes());
        if self.count >= u16::MAX as usize {
            return Err("a message has at most 65535 attributes".into());
        }
        self.count += 1;
        self.head.extend_from_slice(&entry);
        self.head.extend_from_slice(name.as_bytes());
        for chunk in chunks {
            self.head.extend_from_slice(chunk);
        }
        Ok(())
    }

    /// Begin with `count` attributes without buffers, as another builder has written them
    /// (`entries`).
    pub fn extend(&mut self, entries: &[u8], count: usize) {
        self.count += count;
        self.head.extend_from_slice(entries);
    }

    /// The table so far.
    pub fn entries(&self) -> &[u8] {
        &self.head[HEADER..]
    }

    /// The packet. Nothing may be added afterwards.
    ///
    /// # Safety
    /// The sources of all buffers must stay valid as long as the result is used.
    pub unsafe fn finish(&mut self) -> Gather<'_> {
        let table = self.head.len() - HEADER;
        let mut end = self.head.len() + self.sources.len() * DESCRIPTOR;
        let mut buffers = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            let at = end.next_multiple_of(ALIGN);
            end = at + source.len;
            self.head.extend_from_slice(&(at as u64).to_le_bytes());
            self.head.extend_from_slice(&(source.len as u64).to_le_bytes());
            buffers.push((at, source.from, source.len));
        }
        if let Some(first) = buffers.first() {
            self.head.resize(first.0, 0); // the head ends where the buffers begin
        }
        let header = &mut self.head[..HEADER];
        header[..4].copy_from_slice(&MAGIC);
        header[4] = VERSION;
        header[6..8].copy_from_slice(&(self.count as u16).to_le_bytes());
        header[8..12].copy_from_slice(&(table as u32).to_le_bytes());
        header[12..16].copy_from_slice(&(self.sources.len() as u32).to_le_bytes());
        header[16..24].copy_from_slice(&(end as u64).to_le_bytes());
        header[24..32].copy_from_slice(&self.context.to_le_bytes());
        // SAFETY: the caller keeps the sources; the buffers are in order and do not overlap.
        unsafe { Gather::new(&self.head, buffers, end) }
    }
}
