//! What an observer is told about a queue: one line for each of the first messages, and for those
//! that a blocked receive wants most nearly.

use crate::core::Queues;
use crate::matching::Template;
use crate::packet::{next_entry, u32_at, u64_at, Attribute, Kind, Packet, Shape};
use crate::value::{compare, text, Scalar, Verdict};

/// Messages that are described; of the others only the number is known.
const SHOWN: usize = 50;
/// Characters that are shown of a text.
pub const LONGEST: usize = 40;
/// So many of these may be nearer ones from further behind.
const NEAR: usize = 10;
/// Messages among which those are looked for; nobody receives meanwhile.
const SOUGHT: usize = 50_000;

/// What a blocked receive waits for.
pub struct Wanted {
    context: u64,
    conditions: Vec<(String, Value)>,
}

enum Value {
    Unknown,
    None,
    Int(i64),
    Float(u64),
    Str(String),
    Bytes(Vec<u8>),
}

impl Wanted {
    pub fn of(context: u64, template: &Template<'_>) -> Wanted {
        let conditions = template.conditions.iter().map(|one| {
            let wanted = match one.wanted {
                None => Value::Unknown,
                Some(Scalar::None) => Value::None,
                Some(Scalar::Int(number)) => Value::Int(number),
                Some(Scalar::Float(bits)) => Value::Float(bits),
                Some(Scalar::Str(text)) => Value::Str(text.to_owned()),
                Some(Scalar::Bytes(bytes)) => Value::Bytes(bytes.to_owned()),
            };
            (one.name.to_owned(), wanted)
        });
        Wanted { context, conditions: conditions.collect() }
    }

    /// How many of its conditions the message meets, as far as that is known here.
    fn met_by(&self, packet: &Packet) -> usize {
        let is_met = |(name, wanted): &&(String, Value)| {
            let wanted = match wanted {
                Value::Unknown => return packet.find(name).is_some(),
                Value::None => Scalar::None,
                Value::Int(number) => Scalar::Int(*number),
                Value::Float(bits) => Scalar::Float(*bits),
                Value::Str(text) => Scalar::Str(text),
                Value::Bytes(bytes) => Scalar::Bytes(bytes),
            };
            packet.find(name).is_some_and(|one| matches!(compare(&wanted, &one), Verdict::Yes))
        };
        self.conditions.iter().filter(is_met).count()
    }
}

/// The messages that are described: the first ones, and behind them what is nearer to what is wanted.
fn chosen<'a>(queue: &'a Queues, wanted: Option<&Wanted>) -> Vec<&'a Packet> {
    let wanted = match wanted {
        Some(wanted) if queue.len() > SHOWN => wanted,
        _ => return queue.iter().take(SHOWN).collect(),
    };
    let mut chosen: Vec<_> = queue.iter().take(SHOWN - NEAR).collect();
    let behind = queue.iter().skip(SHOWN - NEAR).take(SOUGHT);
    let mut near: Vec<_> = behind
        .filter(|packet| packet.context() == wanted.context)
        .map(|packet| (wanted.met_by(packet), packet))
        .collect();
    near.sort_by_key(|(met, _)| std::cmp::Reverse(*met)); // stable: in their order where equal
    chosen.extend(near.into_iter().take(NEAR).map(|(_, packet)| packet));
    chosen
}

/// One line a message: its context, its bytes, then name and value of each attribute, in Python's
/// notation. Tabs are between attributes; a name ends with UNIT.
pub fn summary(queue: &Queues, wanted: Option<&Wanted>) -> String {
    let mut lines = String::new();
    for packet in chosen(queue, wanted) {
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
    let buffers = |first: u32, count: u32| -> Option<usize> {
        (first..first.saturating_add(count)).map(size).sum()
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
