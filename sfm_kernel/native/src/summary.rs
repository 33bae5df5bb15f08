//! What an observer is told about a queue: one line for each of the first messages.

use crate::core::Queues;
use crate::packet::{u32_at, u64_at, Attribute, Kind, Packet, Shape};
use crate::value::text;

/// Messages that are described; of the others only the number is known.
const SHOWN: usize = 50;
const LONGEST: usize = 40;

/// One line a message: `name=value` pairs in Python's notation, separated by tabs.
pub fn summary(queue: &Queues) -> String {
    let mut lines = String::new();
    for packet in queue.iter().take(SHOWN) {
        lines.push_str(&line(packet));
        lines.push('\n');
    }
    lines
}

fn line(packet: &Packet) -> String {
    let pairs: Vec<String> = packet
        .attributes()
        .map(|one| format!("{}={}", clean(one.name), value(packet, &one)))
        .collect();
    pairs.join("\t")
}

fn clean(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).take(LONGEST).collect()
}

fn value(packet: &Packet, one: &Attribute<'_>) -> String {
    let number = || u64_at(one.value, 0);
    let buffers = |first: u32, count: u32| -> usize {
        (first..first + count).map(|nth| packet.buffer(nth as usize).1).sum()
    };
    match one.kind {
        Kind::None => "None".into(),
        Kind::False => "False".into(),
        Kind::True => "True".into(),
        Kind::Int => (number() as i64).to_string(),
        Kind::Float => format!("{:?}", f64::from_bits(number())),
        Kind::BigInt => format!("<int of {} bytes>", one.value.len()),
        Kind::Str => {
            let whole = text(one.value);
            let dots = if whole.chars().count() > LONGEST { "…" } else { "" };
            format!("'{}{dots}'", clean(whole))
        }
        Kind::Bytes => format!("<bytes: {}>", one.value.len()),
        Kind::BigStr => format!("<str: {} bytes>", buffers(u32_at(one.value, 0), 1)),
        Kind::BigBytes => format!("<bytes: {}>", buffers(u32_at(one.value, 0), 1)),
        Kind::Array => {
            let shape = Shape::of(one.value).expect("validated");
            let extents: Vec<String> = shape.extents().map(|extent| extent.to_string()).collect();
            let letter = char::from(shape.kind);
            format!("<array: {} of {letter}{}>", extents.join("x"), shape.item)
        }
        Kind::Pickle | Kind::BigPickle => {
            let size = one.value.len() - 8 + buffers(u32_at(one.value, 0), u32_at(one.value, 4));
            format!("<object: {size} bytes>")
        }
    }
}
