use super::*;
use crate::packet::{Builder, Envelope, Kind, Packet};
use crate::random::Random;
use crate::ring::{Arrival, RingReader, RingWriter};

#[test]
fn a_damaged_ring_is_read_or_refused() {
    let folder = std::env::temp_dir().join(format!("sfm-ring-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.ring");
    let ring = Arc::new(RingFile::create(&path, 8192, 1 << 16).unwrap());
    let mut writer = RingWriter::new(ring.clone());
    for n in 0..20i64 {
        let front = Envelope { context: 9, source: n, tag: 0, note: 0 }.front(8);
        // SAFETY: the bytes live as long as the packet.
        let packet = unsafe { front.with(b"12345678".as_ptr(), 8) };
        assert_eq!(writer.write(&packet, 0), packet.len());
        let mut builder = Builder::new();
        builder.attribute("n", Kind::Int, &[&n.to_le_bytes()]).unwrap();
        builder.attribute("text", Kind::Str, &[&b"x".repeat(n as usize * 5)]).unwrap();
        // SAFETY: the packet has no buffers outside of itself that would have to live.
        let packet = unsafe { builder.finish() };
        if n % 4 == 0 && n > 0 {
            writer.write_split(packet.head(), packet.len() + 4096, n as u64, n as u64 * 1024);
        } else {
            assert_eq!(writer.write(&packet, 0), packet.len());
        }
    }
    let intact = std::fs::read(&path).unwrap();
    let (mut chance, rounds) = Random::new(300, 23_500);
    let (mut arrived, mut landed) = (0, 0);
    for _ in 0..rounds {
        let mut damaged = intact.clone();
        let control = std::mem::size_of::<Front>();
        let (start, end) = [(0, control), (DATA, 8192), (0, DATA + 8192)][chance.below(3)];
        chance.damage(&mut damaged[start..], end, 30);
        std::fs::write(&path, &damaged).unwrap();
        let Ok(ring) = RingFile::open(&path) else { continue };
        let mut reader = RingReader::new(ring);
        loop {
            if let Some(frame) = reader.envelope().filter(|_| chance.below(2) == 0) {
                reader.take(&frame, |first, second| landed += first.len() + second.len());
                continue;
            }
            let packet = match reader.read() {
                Ok(Arrival::Nothing) | Err(_) => break,
                Ok(Arrival::Fragment) => continue,
                Ok(Arrival::Packet(body)) => Packet::new(body),
                Ok(Arrival::Split { head, total, block, offset }) => total
                    .checked_sub(head.len() as u64)
                    .ok_or_else(String::new)
                    .and_then(|length| reader.memory().lease(block, offset, length))
                    .and_then(|tail| Packet::split(head, tail, total)),
            };
            if let Ok(packet) = packet {
                arrived +=
                    packet.attributes().map(|attribute| attribute.value.len()).sum::<usize>();
            }
        }
    }
    assert!(arrived > 0 && landed > 0, "not all of it is damaged");
    std::fs::remove_dir_all(&folder).unwrap();
}
