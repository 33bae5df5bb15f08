use super::*;
use crate::value::Native;

fn sample() -> Packet {
    let mut builder = Builder::new();
    builder.attribute("dest", Kind::Str, &[b"B"]).unwrap();
    builder.attribute("tag", Kind::Int, &[&42i64.to_le_bytes()]).unwrap();
    let first = builder.buffer([1u8; 5].as_ptr(), 5);
    let second = builder.buffer([2u8; 3].as_ptr(), 3);
    builder.attribute("raw", Kind::BigBytes, &[&first.to_le_bytes()]).unwrap();
    builder.attribute("more", Kind::BigBytes, &[&second.to_le_bytes()]).unwrap();
    // SAFETY: the buffers are constants, which live for ever.
    unsafe { builder.finish() }.to_packet().unwrap()
}

#[test]
fn built_packets_are_valid_and_read_back() {
    let packet = sample();
    validate_foreign(packet.contiguous().unwrap()).unwrap();
    assert_eq!(head(packet.contiguous().unwrap()), Ok(Head::Packet(packet.len() as u64)));
    let names: Vec<&str> =
        table(packet.contiguous().unwrap()).map(|attribute| attribute.name).collect();
    assert_eq!(names, ["dest", "tag", "raw", "more"]);
    assert_eq!(packet.find("tag").unwrap().value, 42i64.to_le_bytes());
    assert_eq!(packet.buffer(1).0 as usize % ALIGN, 0);
    assert_eq!(packet.buffer_bytes(1), [2u8, 2, 2]);
}

#[test]
fn attributes_are_found_from_any_other() {
    let mut builder = Builder::new();
    let names = ["dest", "data", "", "d", "datb", "src", "b"];
    for (name, value) in names.iter().zip(0u8..) {
        builder.attribute(name, Kind::Bytes, &[&vec![value; usize::from(value)]]).unwrap();
    }
    // SAFETY: the packet has no buffers outside of itself that would have to live.
    let packet = unsafe { builder.finish() }.to_packet().unwrap();
    let positions = names.map(|name| packet.find_near(name, 0).unwrap().1);
    for near in positions {
        for (name, value) in names.iter().zip(0u8..) {
            let (found, behind) = packet.find_near(name, near).unwrap();
            assert_eq!((found.name, found.value), (*name, &*vec![value; usize::from(value)]));
            assert_eq!(behind, positions[usize::from(value)]);
        }
        assert!(packet.find_near("dat", near).is_none() && packet.find("x").is_none());
    }
}

#[test]
fn every_truncation_is_incomplete_or_refused_never_a_panic() {
    let packet = sample();
    for cut in 0..packet.len() {
        let bytes = &packet.contiguous().unwrap()[..cut];
        if cut < HEADER {
            assert_eq!(head(bytes), Ok(Head::Incomplete));
        }
        assert!(validate_foreign(bytes).is_err());
    }
}

#[test]
fn every_single_byte_damage_is_survived() {
    let good = sample();
    let mut refused = 0;
    for at in 0..good.len() {
        for flip in [1u8, 0x80, 0xff] {
            let mut bytes = good.contiguous().unwrap().to_vec();
            bytes[at] ^= flip;
            match validate_foreign(&bytes) {
                Err(_) => refused += 1,
                // Damage inside a value or a gap is not visible to the format: the walk
                // over the tables must then still be safe.
                Ok(()) => {
                    for attribute in table(&bytes) {
                        std::hint::black_box((attribute.name.len(), attribute.value.len()));
                    }
                    let packet = Packet::new(Body::copy_of(&bytes)).unwrap();
                    std::hint::black_box(packet.buffer_bytes(0).len());
                }
            }
        }
    }
    assert!(refused > 200, "the check refuses what it should: {refused}");
}

#[test]
fn any_range_of_a_gathered_packet_is_that_of_the_packet() {
    let (numbers, text) = (vec![7u8; 1000], vec![9u8; 3]);
    let mut builder = Builder::new();
    let first = builder.buffer(numbers.as_ptr(), numbers.len());
    builder.attribute("a", Kind::BigBytes, &[&first.to_le_bytes()]).unwrap();
    let second = builder.buffer(text.as_ptr(), 0);
    builder.attribute("empty", Kind::BigBytes, &[&second.to_le_bytes()]).unwrap();
    let third = builder.buffer(text.as_ptr(), text.len());
    builder.attribute("b", Kind::BigBytes, &[&third.to_le_bytes()]).unwrap();
    // SAFETY: both vectors live longer than the packet that refers to them.
    let gather = unsafe { builder.finish() };
    let encoded = gather.to_packet().unwrap();
    let encoded = encoded.contiguous().unwrap();
    validate(encoded).unwrap();
    for at in (0..encoded.len()).step_by(7) {
        for length in [0, 1, 63, 64, 500, encoded.len() - at] {
            let length = length.min(encoded.len() - at);
            let mut chunk = Vec::new();
            gather.each(at, length, |bytes| chunk.extend_from_slice(bytes));
            assert_eq!(chunk, encoded[at..at + length], "{at} {length}");
        }
    }
}

#[test]
fn a_split_packet_reads_like_a_contiguous_one() {
    let packet = sample();
    let encoded = packet.contiguous().unwrap();
    let cut = encoded.len() - (64 + 3); // two buffers, the first 64 bytes before the second
    let tail = encoded[cut..].to_vec();
    let make = |front: &[u8], total: usize| {
        let memory: &'static mut [u8] = Box::leak(tail.clone().into_boxed_slice());
        // SAFETY: the memory is leaked, so it lives longer than the tail.
        let tail = unsafe { Tail::new(memory.as_mut_ptr(), memory.len(), Box::new(())) };
        Packet::split(Body::copy_of(front), tail, total as u64)
    };
    let split = make(&encoded[..cut], encoded.len()).unwrap();
    assert_eq!((split.buffer_bytes(0), split.buffer_bytes(1)), (&[1u8; 5][..], &[2u8; 3][..]));
    assert_eq!(split.len(), packet.len());
    assert!(split.contiguous().is_none());
    for front in 0..cut {
        assert!(make(&encoded[..front], encoded.len()).is_err());
    }
    assert!(make(&encoded[..cut], encoded.len() + 1).is_err());
}

#[test]
fn an_array_shape_gives_the_length_of_its_buffer() {
    let data = [0u8; 48];
    let array = |kind: u8, item: u8, order: u8, extents: &[u64], length: usize| {
        let mut builder = Builder::new();
        let index = builder.buffer(data.as_ptr(), length).to_le_bytes();
        let front = [kind, item, order, extents.len() as u8];
        let extents: Vec<u8> = extents.iter().flat_map(|extent| extent.to_le_bytes()).collect();
        builder.attribute("a", Kind::Array, &[&index, &front, &extents]).unwrap();
        // SAFETY: `data` lives longer than the packet that refers to it.
        let packet = unsafe { builder.finish() }.to_packet().unwrap();
        validate(packet.contiguous().unwrap()).is_ok()
    };
    assert!(array(b'f', 8, b'C', &[2, 3], 48) && array(b'c', 16, b'F', &[3], 48));
    assert!(array(b'b', 1, b'C', &[], 1) && array(b'i', 4, b'C', &[0, 5], 0));
    assert!(!array(b'f', 8, b'C', &[2, 3], 47)); // too short
    assert!(!array(b'f', 3, b'C', &[2, 8], 48)); // no such number
    assert!(!array(b'O', 8, b'C', &[2, 3], 48)); // objects have no bytes
    assert!(!array(b'f', 8, b'x', &[2, 3], 48)); // no such order
    assert!(!array(b'f', 8, b'C', &[u64::MAX, u64::MAX], 48)); // overflow
    assert!(!array(b'i', 1, b'C', &[1; 33], 1)); // too many dimensions
}

#[test]
fn each_buffer_belongs_to_one_value() {
    let bytes = [1u8; 100];
    let packet = |second: u32| {
        let mut builder = Builder::new();
        let first = builder.buffer(bytes.as_ptr(), bytes.len());
        let _ = builder.buffer(bytes.as_ptr(), bytes.len());
        builder.attribute("a", Kind::BigBytes, &[&first.to_le_bytes()]).unwrap();
        builder.attribute("b", Kind::BigBytes, &[&second.to_le_bytes()]).unwrap();
        // SAFETY: `bytes` lives longer than the packet that refers to it.
        let gather = unsafe { builder.finish() };
        let mut encoded = Vec::new();
        gather.each(0, gather.len(), |bytes| encoded.extend_from_slice(bytes));
        encoded
    };
    assert!(validate_foreign(&packet(1)).is_ok());
    assert!(validate_foreign(&packet(0)).is_err());
}

#[test]
fn damaged_packets_are_read_or_refused() {
    let array: Vec<u8> = [0u32.to_le_bytes().as_slice(), b"f\x08C\x02"].concat();
    let extents = [2u64.to_le_bytes(), 3u64.to_le_bytes()].concat();
    let numbers = [1u8; 48];
    let mut builder = Builder::new();
    builder.buffer(numbers.as_ptr(), numbers.len());
    builder.attribute("array", Kind::Array, &[&array, &extents]).unwrap();
    builder.attribute("name", Kind::Str, &["Zoë".as_bytes()]).unwrap();
    builder.attribute("pickle", Kind::Pickle, &[&[0; 8], b"\x80\x05N."]).unwrap();
    builder.attribute("big", Kind::BigInt, &[&[255; 9]]).unwrap();
    // SAFETY: the numbers live longer than the packet that refers to them.
    let other = unsafe { builder.finish() }.to_packet().unwrap();
    let front = Envelope { context: 5, source: 1, tag: 7, note: 0 };
    let (small, large) = (front.front(48), front.front(8192));
    let payload = [3u8; 8192];
    // SAFETY: the payload lives longer than both packets that refer to it.
    let envelopes =
        unsafe { [small.with(payload.as_ptr(), 48), large.with(payload.as_ptr(), 8192)] };
    let [small, large] = envelopes.map(|gather| gather.to_packet().unwrap());
    let samples =
        [sample(), other, small, large].map(|packet| packet.contiguous().unwrap().to_vec());
    let (mut chance, rounds) = crate::random::Random::new(20_000, 5_500_000);
    let mut valid = 0;
    for _ in 0..rounds {
        let mut bytes = samples[chance.below(4)].clone();
        let end = [HEADER, bytes.len().min(300)][chance.below(2)];
        chance.damage(&mut bytes, end, 6);
        bytes.truncate(bytes.len() - if chance.below(8) == 0 { chance.below(40) } else { 0 });
        let _ = (head(&bytes), validate_split(&bytes, bytes.len() as u64 + 64));
        if validate_foreign(&bytes).is_err() {
            continue;
        }
        valid += 1;
        let packet = Packet::new(Body::copy_of(&bytes)).unwrap();
        for attribute in packet.attributes() {
            let found = packet.find(attribute.name).map(|found| found.value.len());
            assert_eq!(found, Some(attribute.value.len()));
            std::hint::black_box(matches!(
                crate::value::from_attribute(&attribute),
                Native::Opaque
            ));
        }
        for nth in 0..u32_at(&bytes, 12) as usize {
            std::hint::black_box(
                packet.buffer_bytes(nth).iter().map(|byte| *byte as u64).sum::<u64>(),
            );
        }
        crate::summary::summary_of(&bytes[HEADER..]);
        std::hint::black_box(packet.payload().iter().map(|byte| *byte as u64).sum::<u64>());
        if let Some(opened) = open(&bytes[..bytes.len().min(SEEN)], bytes.len()) {
            assert_eq!(packet.envelope(), Some(opened.envelope));
            assert_eq!(packet.payload(), &bytes[opened.at..opened.at + opened.length]);
        }
    }
    assert!(valid > rounds / 100, "not all of it is damaged: {valid} of {rounds}");
}
