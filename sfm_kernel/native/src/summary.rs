//! What an observer is told about a queue: one line for each of the first messages.

use crate::core::Queues;
use crate::packet::{next_entry, u32_at, u64_at, Attribute, Kind, Shape};
use crate::value::text;

/// Messages that are described; of the others only the number is known.
const SHOWN: usize = 50;
const LONGEST: usize = 40;

/// One line a message: its context, its bytes, then name and value of each attribute, in Python's
/// notation. Tabs are between attributes; a name ends with UNIT.
pub fn summary(queue: &Queues) -> String {
    let mut lines = String::new();
    for packet in queue.iter().take(SHOWN) {
        lines.push_str(&format!("{:x}\t{}", packet.context(), packet.len()));
        for one in packet.attributes() {
            let size = |nth: u32| Some(packet.buffer(nth as usize).1);
            lines.push_str(&format!("\t{}{UNIT}{}", clean(one.name), value(&one, &size)));
        }
        lines.push('\n');
    }
    lines
}

/// What stands between name and value.
pub const UNIT: char = '\u{1f}';

/// The same of the beginning of a packet's table: what is whole, and of values what is there.
pub fn summary_of(mut entries: &[u8]) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    while let Some((one, whole, rest)) = next_entry(entries) {
        let shown = if whole { value(&one, &|_| None) } else { "…".into() };
        pairs.push((clean(one.name), shown));
        entries = rest;
    }
    pairs
}

fn clean(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).take(LONGEST).collect()
}

/// `size(nth)`: the length of a buffer, if it is known.
fn value(one: &Attribute<'_>, size: &dyn Fn(u32) -> Option<usize>) -> String {
    let number = || u64_at(one.value, 0);
    let bytes = |count: Option<usize>| count.map_or_else(|| "…".into(), |count| count.to_string());
    let buffers =
        |first: u32, count: u32| -> Option<usize> { (first..first + count).map(size).sum() };
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
            let quote = if whole.contains('\'') && !whole.contains('"') { '"' } else { '\'' };
            format!("{quote}{}{dots}{quote}", clean(whole))
        }
        Kind::Bytes => format!("<bytes: {}>", one.value.len()),
        Kind::BigStr => format!("<str: {} bytes>", bytes(size(u32_at(one.value, 0)))),
        Kind::BigBytes => format!("<bytes: {}>", bytes(size(u32_at(one.value, 0)))),
        Kind::Array => {
            let shape = Shape::of(one.value).expect("validated");
            let extents: Vec<String> = shape.extents().map(|extent| extent.to_string()).collect();
            let letter = char::from(shape.kind);
            format!("<array: {} of {letter}{}>", extents.join("x"), shape.item)
        }
        Kind::Pickle | Kind::BigPickle => {
            let beside = buffers(u32_at(one.value, 0), u32_at(one.value, 4));
            format!("<object: {} bytes>", bytes(beside.map(|beside| one.value.len() - 8 + beside)))
        }
    }
}
