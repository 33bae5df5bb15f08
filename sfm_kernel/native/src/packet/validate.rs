//! The check of packets: afterwards every accessor may rely on them.

use super::{
    descriptor, envelope, head, table, u16_at, u32_at, Entry, Head, Kind, Shape, DESCRIPTOR, HEADER,
};

/// Check a whole packet from anywhere: afterwards every accessor may rely on it.
///
/// Cost: one walk over the table; allocates nothing, whatever the bytes claim.
pub fn validate_foreign(bytes: &[u8]) -> Result<(), String> {
    validate(bytes)?;
    unique_names(bytes, u16_at(bytes, 6) as usize)
}

/// Check a whole packet that our encoder has made, and that memory may have damaged since.
pub fn validate(bytes: &[u8]) -> Result<(), String> {
    match head(bytes)? {
        Head::Incomplete => return Err("truncated header".into()),
        Head::Packet(total) if total != bytes.len() as u64 => {
            return Err(format!("length says {total} bytes, there are {}", bytes.len()))
        }
        Head::Packet(_) => {}
    }
    validate_tables(bytes, 0, bytes.len() as u64)
}

/// Check a packet whose bytes from `head.len()` to `total`, all its buffers, lie elsewhere.
pub fn validate_split(front: &[u8], total: u64) -> Result<(), String> {
    if head(front)? != Head::Packet(total) {
        return Err(format!("its head does not say {total} bytes"));
    }
    let tables = u64::from(u32_at(front, 8)) + u64::from(u32_at(front, 12)) * DESCRIPTOR as u64;
    if (front.len() as u64) < HEADER as u64 + tables {
        return Err("truncated tables".into());
    }
    validate_tables(front, front.len() as u64, total)
}

/// `bytes` holds the tables; the buffers must lie in `least..total`.
fn validate_tables(bytes: &[u8], least: u64, total: u64) -> Result<(), String> {
    let count = u16_at(bytes, 6) as usize;
    let end = HEADER + u32_at(bytes, 8) as usize;
    let buffers = u32_at(bytes, 12) as u64;
    let mut used = 0;
    let mut rest = &bytes[HEADER..end];
    if envelope::is_envelope(bytes) {
        let least = envelope::NUMBERS + HEADER;
        if count != 0 || buffers > 1 || end < least || (buffers == 1 && end != least) {
            return Err("its envelope is damaged".into());
        }
        rest = &[];
    }
    for nth in 0..count {
        let damaged = || format!("attribute {nth} of {count} is damaged");
        let (entry, behind) = rest.split_first_chunk().ok_or_else(damaged)?;
        let Entry { name, kind, value } = Entry::of(*entry);
        let kind = Kind::from_u8(kind).ok_or_else(damaged)?;
        let (name, behind) = behind.split_at_checked(name).ok_or_else(damaged)?;
        let (value, behind) = behind.split_at_checked(value).ok_or_else(damaged)?;
        rest = behind;
        if !is_text(name) {
            return Err(damaged());
        }
        let fits = match kind {
            Kind::None | Kind::False | Kind::True => value.is_empty(),
            Kind::Int | Kind::Float => value.len() == 8,
            Kind::BigInt => !value.is_empty(),
            Kind::Str => is_text(value),
            Kind::Bytes => true,
            Kind::BigStr | Kind::BigBytes => {
                value.len() == 4 && u64::from(u32_at(value, 0)) < buffers
            }
            Kind::Pickle => value.len() >= 8 && in_range(value, buffers),
            Kind::BigPickle => value.len() == 8 && in_range(value, buffers) && u32_at(value, 4) > 0,
            Kind::Array => {
                value.len() >= 8
                    && u64::from(u32_at(value, 0)) < buffers
                    && Shape::of(value).is_some_and(|shape| {
                        shape.bytes() == Some(descriptor(bytes, end, u32_at(value, 0) as usize).1)
                    })
            }
        };
        if !fits {
            return Err(damaged());
        }
        // Each buffer belongs to one value: values are writable at the receiver.
        let (first, more) = match kind {
            Kind::BigStr | Kind::BigBytes | Kind::Array => (u32_at(value, 0), 1),
            Kind::Pickle | Kind::BigPickle => (u32_at(value, 0), u32_at(value, 4)),
            _ => continue,
        };
        if more > 0 && first != used {
            return Err(damaged());
        }
        used += more;
    }
    if !rest.is_empty() {
        return Err(format!("the table has {} bytes too many", rest.len()));
    }
    let least = least.max(end as u64 + buffers * DESCRIPTOR as u64);
    // Nor may two buffers share memory.
    let mut free = least;
    for nth in 0..buffers as usize {
        let (offset, length) = descriptor(bytes, end, nth);
        let last = offset.checked_add(length).filter(|last| *last <= total);
        if offset < least || last.is_none() {
            return Err(format!("buffer {nth} lies outside the packet"));
        }
        if offset < free {
            return Err(format!("buffer {nth} overlaps the one before"));
        }
        free = offset + length;
    }
    Ok(())
}

fn unique_names(bytes: &[u8], count: usize) -> Result<(), String> {
    let twice = |name: &str| Err(format!("attribute {name:?} stands twice"));
    if count <= 16 {
        for (nth, attribute) in table(bytes).enumerate() {
            if table(bytes).take(nth).any(|earlier| earlier.name == attribute.name) {
                return twice(attribute.name);
            }
        }
        return Ok(());
    }
    let mut seen = std::collections::HashSet::with_capacity(count);
    for attribute in table(bytes) {
        if !seen.insert(attribute.name) {
            return twice(attribute.name);
        }
    }
    Ok(())
}

/// Most text is ASCII, and that is quickly checked.
fn is_text(bytes: &[u8]) -> bool {
    bytes.is_ascii() || std::str::from_utf8(bytes).is_ok()
}

fn in_range(value: &[u8], buffers: u64) -> bool {
    u64::from(u32_at(value, 0)) + u64::from(u32_at(value, 4)) <= buffers
}
