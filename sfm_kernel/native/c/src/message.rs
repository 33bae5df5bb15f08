//! `sfm_message`: received attributes.

use std::ffi::{c_char, c_int, c_void, CString};
use std::sync::{Arc, Mutex, OnceLock};

use sfm_native::packet::{u32_at, u64_at, Attribute, Kind, Packet, Shape, MAX_DIMENSIONS};
use sfm_native::sync::lock;

use crate::arguments::{attribute, required, writable};
use crate::codes::{answer, answer_with, Code, Failure, Result};
use crate::types::{element, Type};

pub struct Message {
    packet: Arc<Packet>,
    /// With a final zero, which packets do not have.
    names: OnceLock<Vec<CString>>,
    src: OnceLock<CString>,
    texts: Mutex<Vec<(String, CString)>>,
}

/// `sfm_array`.
#[repr(C)]
pub struct Array {
    element: c_int,
    dimensions: c_int,
    shape: [usize; MAX_DIMENSIONS as usize],
    count: usize,
    size: usize,
    first_fastest: c_int,
    data: *mut c_void,
}

impl Message {
    pub fn new(packet: Arc<Packet>) -> Message {
        let (names, src, texts) = Default::default();
        Message { packet, names, src, texts }
    }

    fn find(&self, name: &str) -> Result<Attribute<'_>> {
        self.packet.find(name).ok_or_else(|| {
            let names: Vec<_> =
                self.packet.attributes().map(|attribute| attribute.name).take(20).collect();
            let text =
                format!("the message has no attribute {name:?}. It has: {}", names.join(", "));
            Failure::new(Code::NoAttribute, text)
        })
    }

    /// The bytes of a value, which is in the table or in a buffer.
    fn bytes<'a>(&'a self, attribute: &Attribute<'a>) -> &'a [u8] {
        match attribute.kind {
            Kind::BigStr | Kind::BigBytes => {
                self.packet.buffer_bytes(u32_at(attribute.value, 0) as usize)
            }
            _ => attribute.value,
        }
    }
}

/// The error of reading an attribute as another type.
fn mismatch(attribute: &Attribute<'_>) -> Failure {
    let name = attribute.name;
    let (code, why) = match attribute.kind {
        Kind::BigInt => {
            (Code::NeedsPython, "is an integer beyond 64 bits: send it as text, or as a float")
        }
        Kind::Pickle | Kind::BigPickle => (
            Code::NeedsPython,
            "is a pickled object, which only Python can open: send numbers, text, bytes or \
             contiguous NumPy arrays of numbers instead, such as numpy.array(values), float(x) or \
             int(x)",
        ),
        kind => (Code::WrongType, Type::of(kind).advice()),
    };
    Failure::new(code, format!("attribute {name:?} {why}"))
}

unsafe fn get<'a>(
    message: *const Message,
    key: *const c_char,
) -> Result<(&'a Message, Attribute<'a>)> {
    let message = required(message, "the message")?;
    Ok((message, message.find(attribute(key)?)?))
}

pub unsafe extern "C" fn get_int(
    message: *const Message,
    key: *const c_char,
    value: *mut i64,
) -> c_int {
    answer(|| {
        let (to, (_, attribute)) =
            (writable(value, "the pointer to the integer")?, get(message, key)?);
        *to = match attribute.kind {
            Kind::Int => u64_at(attribute.value, 0) as i64,
            Kind::False => 0,
            Kind::True => 1,
            _ => return Err(mismatch(&attribute)),
        };
        Ok(())
    })
}

pub unsafe extern "C" fn get_double(
    message: *const Message,
    key: *const c_char,
    value: *mut f64,
) -> c_int {
    answer(|| {
        let (to, (_, attribute)) =
            (writable(value, "the pointer to the double")?, get(message, key)?);
        *to = match attribute.kind {
            Kind::Float => f64::from_bits(u64_at(attribute.value, 0)),
            Kind::Int => u64_at(attribute.value, 0) as i64 as f64,
            Kind::False => 0.0,
            Kind::True => 1.0,
            _ => return Err(mismatch(&attribute)),
        };
        Ok(())
    })
}

pub unsafe extern "C" fn get_text(
    message: *const Message,
    key: *const c_char,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    answer(|| {
        let (to, (message, attribute)) =
            (writable(text, "the pointer to the text")?, get(message, key)?);
        if !matches!(attribute.kind, Kind::Str | Kind::BigStr) {
            return Err(mismatch(&attribute));
        }
        let bytes = message.bytes(&attribute);
        let mut texts = lock(&message.texts);
        let known = texts.iter().position(|(name, _)| name == attribute.name);
        let nth = known.unwrap_or_else(|| {
            // It may contain zeros: `length` gives its end.
            let text = CString::from_vec_with_nul_unchecked([bytes, &[0]].concat());
            texts.push((attribute.name.to_owned(), text));
            texts.len() - 1
        });
        *to = texts[nth].1.as_ptr();
        if let Some(length) = length.as_mut() {
            *length = bytes.len();
        }
        Ok(())
    })
}

pub unsafe extern "C" fn get_bytes(
    message: *const Message,
    key: *const c_char,
    bytes: *mut *const c_void,
    length: *mut usize,
) -> c_int {
    answer(|| {
        let to = writable(bytes, "the pointer to the bytes")?;
        let count = writable(length, "the pointer to their number")?;
        let (message, attribute) = get(message, key)?;
        if !matches!(attribute.kind, Kind::Bytes | Kind::BigBytes) {
            return Err(mismatch(&attribute));
        }
        let found = message.bytes(&attribute);
        (*to, *count) = (found.as_ptr().cast(), found.len());
        Ok(())
    })
}

pub unsafe extern "C" fn get_array(
    message: *const Message,
    key: *const c_char,
    array: *mut Array,
) -> c_int {
    answer(|| {
        let (to, (message, attribute)) =
            (writable(array, "the pointer to the array")?, get(message, key)?);
        let shape = Shape::of(attribute.value).filter(|_| attribute.kind == Kind::Array);
        let shape = shape.ok_or_else(|| mismatch(&attribute))?;
        let (data, bytes) = message.packet.buffer(u32_at(attribute.value, 0) as usize);
        let mut extents = [0; MAX_DIMENSIONS as usize];
        let mut dimensions = 0;
        for (to, extent) in extents.iter_mut().zip(shape.extents()) {
            *to = extent as usize;
            dimensions += 1;
        }
        let size = usize::from(shape.item);
        *to = Array {
            element: element(&shape),
            dimensions,
            shape: extents,
            count: bytes / size,
            size,
            first_fastest: c_int::from(shape.order == b'F' && dimensions > 1),
            data: data.cast(),
        };
        Ok(())
    })
}

pub unsafe extern "C" fn type_of(message: *const Message, key: *const c_char) -> c_int {
    answer_with(Type::Absent as c_int, || {
        let (message, key) = (required(message, "the message")?, attribute(key)?);
        let found =
            message.packet.find(key).map_or(Type::Absent, |attribute| Type::of(attribute.kind));
        Ok(found as c_int)
    })
}

pub unsafe extern "C" fn attribute_name(message: *const Message, index: c_int) -> *const c_char {
    answer_with(std::ptr::null(), || {
        let message = required(message, "the message")?;
        let names = message.names.get_or_init(|| {
            message.packet.attributes().map(|attribute| terminated(attribute.name)).collect()
        });
        let found = usize::try_from(index).ok().and_then(|index| names.get(index));
        Ok(found.map_or(std::ptr::null(), |name| name.as_ptr()))
    })
}

pub unsafe extern "C" fn src(message: *const Message) -> *const c_char {
    answer_with(std::ptr::null(), || {
        let message = required(message, "the message")?;
        let src = message.src.get_or_init(|| match message.packet.find("src") {
            Some(attribute) if attribute.kind == Kind::Int => {
                terminated(&(u64_at(attribute.value, 0) as i64).to_string())
            }
            Some(attribute) if attribute.kind == Kind::Str => {
                terminated(sfm_native::value::text(attribute.value))
            }
            _ => CString::default(),
        });
        Ok(src.as_ptr())
    })
}

/// With a final zero, and none inside.
fn terminated(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

pub unsafe extern "C" fn release(message: *mut Message) {
    if !message.is_null() {
        answer(|| {
            drop(Box::from_raw(message));
            Ok(())
        });
    }
}
