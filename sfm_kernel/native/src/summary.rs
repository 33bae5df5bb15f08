//! A queue's summary for observers: one line for each of the first messages, and for those that
//! come nearest to a blocked receive's template.

use crate::matching::Template;
use crate::packet::{next_entry, u32_at, u64_at, Attribute, Kind, Packet, Shape};
use crate::value::{compare, text, Scalar, Verdict};

/// Messages that are described; the others are only counted.
const SHOWN: usize = 50;
/// Characters that are shown of a text.
pub const LONGEST: usize = 40;
/// Described messages that may come from further behind because they are nearer.
const NEAR: usize = 10;
/// Messages among which the nearer ones are searched; nobody receives meanwhile.
const SEARCHED: usize = 50_000;

/// The template of a blocked receive.
pub struct RequestedTemplate {
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

impl RequestedTemplate {
    pub fn of(context: u64, template: &Template<'_>) -> RequestedTemplate {
        let conditions = template.conditions.iter().map(|condition| {
            let value = match condition.expected {
                None => Value::Unknown,
                Some(Scalar::None) => Value::None,
                Some(Scalar::Int(number)) => Value::Int(number),
                Some(Scalar::Float(bits)) => Value::Float(bits),
                Some(Scalar::Str(text)) => Value::Str(text.to_owned()),
                Some(Scalar::Bytes(bytes)) => Value::Bytes(bytes.to_owned()),
            };
            (condition.name.to_owned(), value)
        });
        RequestedTemplate { context, conditions: conditions.collect() }
    }

    /// The number of its conditions that the message meets, as far as can be compared natively.
    fn met_by(&self, packet: &Packet) -> usize {
        let is_met = |(name, requested): &&(String, Value)| {
            let requested = match requested {
                Value::Unknown => return packet.find(name).is_some(),
                Value::None => Scalar::None,
                Value::Int(number) => Scalar::Int(*number),
                Value::Float(bits) => Scalar::Float(*bits),
                Value::Str(text) => Scalar::Str(text),
                Value::Bytes(bytes) => Scalar::Bytes(bytes),
            };
            packet
                .find(name)
                .is_some_and(|attribute| matches!(compare(&requested, &attribute), Verdict::Yes))
        };
        self.conditions.iter().filter(is_met).count()
    }
}

/// The described messages: the first ones, and those further behind that are nearer to the
/// template.
fn chosen<'a, All: Iterator<Item = &'a Packet>>(
    queue: impl Fn() -> All,
    requested: Option<&RequestedTemplate>,
) -> Vec<&'a Packet> {
    let requested = match requested {
        Some(requested) if queue().nth(SHOWN).is_some() => requested,
        _ => return queue().take(SHOWN).collect(),
    };
    let mut chosen: Vec<_> = queue().take(SHOWN - NEAR).collect();
    let behind = queue().skip(SHOWN - NEAR).take(SEARCHED);
    let mut near: Vec<_> = behind
        .filter(|packet| packet.context() == requested.context)
        .map(|packet| (requested.met_by(packet), packet))
        .collect();
    near.sort_by_key(|(met, _)| std::cmp::Reverse(*met)); // stable: equally near ones stay in their order
    chosen.extend(near.into_iter().take(NEAR).map(|(_, packet)| packet));
    chosen
}

/// One line per message: its context, its bytes, then name and value of each attribute, in Python's
/// notation. Tabs separate attributes; a name ends with UNIT.
pub fn summary<'a, All: Iterator<Item = &'a Packet>>(
    queue: impl Fn() -> All,
    requested: Option<&RequestedTemplate>,
) -> String {
    let mut lines = String::new();
    for packet in chosen(queue, requested) {
        lines.push_str(&format!("{:x}\t{}", packet.context(), packet.len()));
        for attribute in packet.attributes() {
            let size = |nth: u32| Some(packet.buffer(nth as usize).1);
            let (name, value) = (clean(attribute.name), value(&attribute, &size));
            lines.push_str(&format!("\t{name}{UNIT}{value}"));
        }
        lines.push('\n');
    }
    lines
}

/// Separates name and value.
pub const UNIT: char = '\u{1f}';

/// The same for the beginning of a packet's table: complete attributes, and values as far as they
/// go.
pub fn summary_of(mut entries: &[u8]) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    while let Some((attribute, complete, rest)) = next_entry(entries) {
        let shown = if complete { value(&attribute, &|_| None) } else { "…".into() };
        pairs.push((clean(attribute.name), shown));
        entries = rest;
    }
    pairs
}

fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect()
}

/// `size(nth)`: the length of a buffer, if it is known.
fn value(attribute: &Attribute<'_>, size: &dyn Fn(u32) -> Option<usize>) -> String {
    let number = || u64_at(attribute.value, 0);
    let bytes = |count: Option<usize>| count.map_or_else(|| "…".into(), |count| count.to_string());
    let buffers = |first: u32, count: u32| -> Option<usize> {
        (first..first.saturating_add(count)).map(size).sum()
    };
    match attribute.kind {
        Kind::None => "None".into(),
        Kind::False => "False".into(),
        Kind::True => "True".into(),
        Kind::Int => (number() as i64).to_string(),
        Kind::Float => format!("{:?}", f64::from_bits(number())),
        Kind::BigInt => format!("<int of {} bytes>", attribute.value.len()),
        Kind::Str => {
            let complete = text(attribute.value);
            let dots = if complete.chars().count() > LONGEST { "…" } else { "" };
            let quote = if complete.contains('\'') && !complete.contains('"') { '"' } else { '\'' };
            format!("{quote}{}{dots}{quote}", clean(complete))
        }
        Kind::Bytes => format!("<bytes: {}>", attribute.value.len()),
        Kind::BigStr => format!("<str: {} bytes>", bytes(size(u32_at(attribute.value, 0)))),
        Kind::BigBytes => format!("<bytes: {}>", bytes(size(u32_at(attribute.value, 0)))),
        Kind::Array => {
            let shape = Shape::of(attribute.value).expect("validated");
            let extents: Vec<String> = shape.extents().map(|extent| extent.to_string()).collect();
            let letter = char::from(shape.kind);
            format!("<array: {} of {letter}{}>", extents.join("x"), shape.item)
        }
        Kind::Pickle | Kind::BigPickle => {
            let beside = buffers(u32_at(attribute.value, 0), u32_at(attribute.value, 4));
            let total = beside.map(|beside| attribute.value.len() - 8 + beside);
            format!("<object: {} bytes>", bytes(total))
        }
    }
}
