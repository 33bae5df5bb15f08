use super::*;

fn sample() -> Packet {
    let mut builder = Builder::new();
    builder.attribute("dest", Kind::Str, &[b"B"]).unwrap();
    builder.attribute("tag", Kind::Int, &[&42i64.to_le_bytes()]).unwrap();
    let first = builder.buffer(5);
    let second = builder.buffer(3);
    builder.attribute("raw", Kind::BigBytes, &[&first.to_le_bytes()]).unwrap();
    builder.attribute("more", Kind::BigBytes, &[&second.to_le_bytes()]).unwrap();
    builder.finish(|nth, memory| memory.fill(nth as u8 + 1)).unwrap()
}

#[test]
fn what_is_built_is_valid_and_reads_back() {
    let packet = sample();
    validate(packet.bytes()).unwrap();
    assert_eq!(head(packet.bytes()), Ok(Head::Packet(packet.len() as u64)));
    let names: Vec<&str> = table(packet.bytes()).map(|one| one.name).collect();
    assert_eq!(names, ["dest", "tag", "raw", "more"]);
    assert_eq!(packet.find("tag").unwrap().value, 42i64.to_le_bytes());
    let (at, length) = buffer(packet.bytes(), 1);
    assert_eq!((at % ALIGN, &packet.bytes()[at..at + length]), (0, &[2u8, 2, 2][..]));
}

#[test]
fn every_truncation_is_incomplete_or_refused_never_a_panic() {
    let packet = sample();
    for cut in 0..packet.len() {
        let bytes = &packet.bytes()[..cut];
        if cut < HEADER {
            assert_eq!(head(bytes), Ok(Head::Incomplete));
        }
        assert!(validate(bytes).is_err());
    }
}

#[test]
fn every_single_byte_damage_is_survived() {
    let good = sample();
    let mut refused = 0;
    for at in 0..good.len() {
        for flip in [1u8, 0x80, 0xff] {
            let mut bytes = good.bytes().to_vec();
            bytes[at] ^= flip;
            match validate(&bytes) {
                Err(_) => refused += 1,
                // Damage inside a value or a gap is not visible to the format: the walk
                // over the tables must then still be safe.
                Ok(()) => {
                    for one in table(&bytes) {
                        std::hint::black_box((one.name.len(), one.value.len()));
                    }
                    buffer(&bytes, 0);
                }
            }
        }
    }
    assert!(refused > 200, "the check refuses what it should: {refused}");
}
