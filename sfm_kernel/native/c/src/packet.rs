//! `sfm_packet`: attributes to be sent, or to be matched.

use std::ffi::{c_char, c_int, c_void};

use sfm_endpoint::receive::{Expected, Template};
use sfm_endpoint::{Name, Route};
use sfm_native::packet::{Builder, Kind, MAX_DIMENSIONS};

use crate::arguments::{attribute, name, required, text, writable};
use crate::codes::{answer, answer_with, Code, Failure, Result};
use crate::types::{is_element, Type};

/// Texts and bytes up to this size are stored among the attributes, as in Python.
const INLINE: usize = 1024;

pub struct Packet {
    attributes: Vec<(String, Value)>,
}

enum Value {
    Int(i64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Array(Array),
    Any(Type),
}

/// Numbers of the caller, which stay in its memory.
struct Array {
    from: *const u8,
    length: usize,
    /// kind, item size, order, dimensions
    front: [u8; 4],
    extents: Vec<u8>,
}

impl Packet {
    fn set(&mut self, name: &str, value: Value) {
        match self.attributes.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.attributes.push((name.to_owned(), value)),
        }
    }

    /// Write the message for this route.
    pub fn encode(&self, route: &Route) -> Result<Builder> {
        let mut builder = Builder::new();
        builder.extend(route.ends(), 2);
        for (name, value) in &self.attributes {
            if matches!(name.as_str(), "src" | "dest") {
                let text = format!("sending adds the attribute {name:?}: use another name");
                return Err(Failure::argument(text));
            }
            add(&mut builder, name, value)?;
        }
        Ok(builder)
    }

    pub fn template(&self) -> Result<Template> {
        let mut template = Template::default();
        for (key, value) in &self.attributes {
            let expected = match value {
                Value::Int(rank) if key == "src" => {
                    template.src = Some(Name::Rank(*rank));
                    continue;
                }
                Value::Text(text) if key == "src" => {
                    template.src = Some(name(text));
                    continue;
                }
                Value::Int(number) => Expected::Int(*number),
                Value::Double(number) => Expected::Double(*number),
                Value::Text(text) => Expected::Text(text.clone()),
                Value::Bytes(bytes) => Expected::Bytes(bytes.clone()),
                Value::Any(kind) => Expected::Any { shown: kind.shown(), accepts: kind.accepts() },
                Value::Array(_) => {
                    let text = format!(
                        "{key:?} is an array, which a template cannot contain: use another \
                        attribute, or sfm_set_any({key:?}, SFM_ARRAY)"
                    );
                    return Err(Failure::argument(text));
                }
            };
            template.attributes.push((key.clone(), expected));
        }
        Ok(template)
    }
}

fn add(builder: &mut Builder, name: &str, value: &Value) -> Result {
    let mut large = |kind, bytes: &[u8]| {
        let nth = builder.buffer(bytes.as_ptr(), bytes.len());
        builder.attribute(name, kind, &[&nth.to_le_bytes()])
    };
    let done = match value {
        Value::Text(text) if text.len() > INLINE => large(Kind::BigStr, text.as_bytes()),
        Value::Bytes(bytes) if bytes.len() > INLINE => large(Kind::BigBytes, bytes),
        Value::Text(text) => builder.attribute(name, Kind::Str, &[text.as_bytes()]),
        Value::Bytes(bytes) => builder.attribute(name, Kind::Bytes, &[bytes]),
        Value::Int(number) => builder.attribute(name, Kind::Int, &[&number.to_le_bytes()]),
        Value::Double(number) => builder.attribute(name, Kind::Float, &[&number.to_le_bytes()]),
        Value::Array(Array { from, length, front, extents }) => {
            let nth = builder.buffer(*from, *length).to_le_bytes();
            builder.attribute(name, Kind::Array, &[&nth, front, extents])
        }
        Value::Any(_) => {
            let text = format!("{name:?} has no value, only a type: that is for templates");
            return Err(Failure::argument(text));
        }
    };
    done.map_err(|why| Failure::argument(format!("attribute {name:?} cannot be sent: {why}")))
}

pub unsafe extern "C" fn new() -> *mut Packet {
    let none = std::ptr::null_mut();
    answer_with(none, || Ok(Box::into_raw(Box::new(Packet { attributes: Vec::new() }))))
}

pub unsafe extern "C" fn clear(packet: *mut Packet) {
    if let Some(packet) = packet.as_mut() {
        packet.attributes.clear();
    }
}

pub unsafe extern "C" fn free(packet: *mut Packet) {
    if !packet.is_null() {
        drop(Box::from_raw(packet));
    }
}

unsafe fn set(
    packet: *mut Packet,
    key: *const c_char,
    value: impl FnOnce() -> Result<Value>,
) -> c_int {
    answer(|| {
        let (packet, key) = (writable(packet, "the packet")?, attribute(key)?);
        packet.set(key, value()?);
        Ok(())
    })
}

pub unsafe extern "C" fn set_int(packet: *mut Packet, key: *const c_char, value: i64) -> c_int {
    set(packet, key, || Ok(Value::Int(value)))
}

pub unsafe extern "C" fn set_double(packet: *mut Packet, key: *const c_char, value: f64) -> c_int {
    set(packet, key, || Ok(Value::Double(value)))
}

pub unsafe extern "C" fn set_text(
    packet: *mut Packet,
    key: *const c_char,
    value: *const c_char,
) -> c_int {
    set(packet, key, || Ok(Value::Text(text(value, "the text")?.to_owned())))
}

pub unsafe extern "C" fn set_bytes(
    packet: *mut Packet,
    key: *const c_char,
    bytes: *const c_void,
    length: usize,
) -> c_int {
    set(packet, key, || {
        if length == 0 {
            return Ok(Value::Bytes(Vec::new()));
        }
        if length > isize::MAX as usize {
            return Err(Failure::argument(format!("{length} bytes are larger than any memory")));
        }
        let first = required(bytes.cast::<u8>(), "the first byte")?;
        let mut copy = Vec::new();
        copy.try_reserve_exact(length).map_err(|_| {
            Failure::new(Code::NoMemory, format!("there is no memory for {length} bytes"))
        })?;
        copy.extend_from_slice(std::slice::from_raw_parts(first, length));
        Ok(Value::Bytes(copy))
    })
}

pub unsafe extern "C" fn set_array(
    packet: *mut Packet,
    key: *const c_char,
    element: c_int,
    numbers: *const c_void,
    dimensions: c_int,
    shape: *const usize,
) -> c_int {
    set(packet, key, || {
        let (kind, item) = is_element(element).ok_or_else(|| {
            Failure::argument(format!("element {element} is none of SFM_INT32, SFM_FLOAT64 ..."))
        })?;
        let few = u8::try_from(dimensions).ok().filter(|few| *few <= MAX_DIMENSIONS);
        let few = few.ok_or_else(|| {
            Failure::argument(format!("{dimensions} dimensions: give 0 to {MAX_DIMENSIONS}"))
        })?;
        let shape = match few {
            0 => &[][..],
            few => std::slice::from_raw_parts(required(shape, "the shape")?, few.into()),
        };
        let length =
            shape.iter().try_fold(usize::from(item), |length, extent| length.checked_mul(*extent));
        let length = length.filter(|length| *length <= isize::MAX as usize).ok_or_else(|| {
            Failure::argument(format!("an array of shape {shape:?} is larger than any memory"))
        })?;
        if length > 0 {
            required(numbers.cast::<u8>(), "the array")?;
        }
        let extents = shape.iter().flat_map(|extent| (*extent as u64).to_le_bytes()).collect();
        let front = [kind, item, b'C', few];
        Ok(Value::Array(Array { from: numbers.cast(), length, front, extents }))
    })
}

pub unsafe extern "C" fn set_any(packet: *mut Packet, key: *const c_char, number: c_int) -> c_int {
    set(packet, key, || {
        Type::for_template(number).map(Value::Any).ok_or_else(|| {
            Failure::argument(format!("type {number} is none of SFM_INT, SFM_TEXT ... SFM_ANY"))
        })
    })
}
