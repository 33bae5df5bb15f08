//! The types of attributes and of array elements.

use std::ffi::c_int;

use sfm_native::packet::{Kind, Shape};

/// `enum sfm_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Type {
    Absent = 0,
    Int = 1,
    Double = 2,
    Text = 3,
    Bytes = 4,
    Array = 5,
    None = 6,
    Object = 7,
    Any = 8,
}

impl Type {
    pub fn of(kind: Kind) -> Type {
        match kind {
            Kind::None => Type::None,
            Kind::False | Kind::True | Kind::Int => Type::Int,
            Kind::Float => Type::Double,
            Kind::Str | Kind::BigStr => Type::Text,
            Kind::Bytes | Kind::BigBytes => Type::Bytes,
            Kind::Array => Type::Array,
            Kind::BigInt | Kind::Pickle | Kind::BigPickle => Type::Object,
        }
    }

    /// A type that a template may contain.
    pub fn for_template(number: c_int) -> Option<Type> {
        use Type::*;
        [Int, Double, Text, Bytes, Array, None, Object, Any]
            .into_iter()
            .find(|kind| *kind as c_int == number)
    }

    /// A function that is true for values of this type, as a template of the core demands.
    pub fn accepts(self) -> fn(Kind) -> bool {
        match self {
            Type::Absent => |_| false,
            Type::Int => |kind| Type::of(kind) == Type::Int,
            Type::Double => |kind| Type::of(kind) == Type::Double,
            Type::Text => |kind| Type::of(kind) == Type::Text,
            Type::Bytes => |kind| Type::of(kind) == Type::Bytes,
            Type::Array => |kind| Type::of(kind) == Type::Array,
            Type::None => |kind| Type::of(kind) == Type::None,
            Type::Object => |kind| Type::of(kind) == Type::Object,
            Type::Any => |_| true,
        }
    }

    /// For observers.
    pub fn shown(self) -> &'static str {
        match self {
            Type::Absent => "nothing",
            Type::Int => "int",
            Type::Double => "double",
            Type::Text => "text",
            Type::Bytes => "bytes",
            Type::Array => "array",
            Type::None => "None",
            Type::Object => "object",
            Type::Any => "any",
        }
    }

    /// Advice on the function that reads this type, for error texts.
    pub fn advice(self) -> &'static str {
        match self {
            Type::Int => "is an integer: read it with sfm_get_int",
            Type::Double => "is a double: read it with sfm_get_double",
            Type::Text => "is text: read it with sfm_get_text",
            Type::Bytes => "is bytes: read it with sfm_get_bytes",
            Type::Array => "is an array: read it with sfm_get_array",
            Type::None => "is Python's None, which has no value to be read",
            Type::Object | Type::Absent | Type::Any => "cannot be read here",
        }
    }
}

/// `enum sfm_element`: NumPy's letter, and the bytes of one element; None for any other number.
pub fn is_element(element: c_int) -> Option<(u8, u8)> {
    let [kind, item] = u16::try_from(element).ok()?.to_be_bytes();
    let value = [0, 0, 0, 0, kind, item, b'C', 0];
    Shape::of(&value).map(|_| (kind, item))
}

/// The number of an element.
pub fn element(shape: &Shape<'_>) -> c_int {
    c_int::from(u16::from_be_bytes([shape.kind, shape.item]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::Code;

    /// The constants of sfm.h, by name.
    fn header() -> impl Fn(&str) -> c_int {
        let text = include_str!("../../../c/include/sfm.h");
        let letter = |word: &str| word.trim_matches('\'').bytes().next().unwrap();
        let number = move |value: &str| match value.split_once(" * 256 + ") {
            Some((kind, item)) => c_int::from(letter(kind)) * 256 + item.parse::<c_int>().unwrap(),
            None => value.parse().unwrap(),
        };
        move |name: &str| {
            let line = text.lines().find(|line| line.trim().starts_with(&format!("{name} = ")));
            let (_, value) = line.unwrap_or_else(|| panic!("{name}")).split_once(" = ").unwrap();
            number(value.split("/*").next().unwrap().trim().trim_end_matches(','))
        }
    }

    #[test]
    fn the_header_has_the_same_constants() {
        let of = header();
        use Code::*;
        for (name, code) in [
            ("SFM_OK", Ok),
            ("SFM_WOULD_BLOCK", WouldBlock),
            ("SFM_TIMED_OUT", TimedOut),
            ("SFM_PEER_LOST", PeerLost),
            ("SFM_UNKNOWN_NAME", UnknownName),
            ("SFM_CLOSED", Closed),
            ("SFM_DEADLOCK", Deadlock),
            ("SFM_INTERRUPTED", Interrupted),
            ("SFM_NO_ATTRIBUTE", NoAttribute),
            ("SFM_WRONG_TYPE", WrongType),
            ("SFM_NEEDS_PYTHON", NeedsPython),
            ("SFM_BAD_ARGUMENT", BadArgument),
            ("SFM_TOO_LARGE", TooLarge),
            ("SFM_NO_ROOM", NoRoom),
            ("SFM_NO_MEMORY", NoMemory),
            ("SFM_MESSAGES_LOST", MessagesLost),
            ("SFM_DAMAGED", Damaged),
            ("SFM_BAD_NAME", BadName),
            ("SFM_NAME_IN_USE", NameInUse),
            ("SFM_WORLD_FULL", WorldFull),
            ("SFM_WORLD_GONE", WorldGone),
            ("SFM_WORLD_ACCESS", WorldAccess),
            ("SFM_WORLD_ERROR", WorldError),
            ("SFM_SYSTEM", System),
            ("SFM_INTERNAL", Internal),
        ] {
            assert_eq!(of(name), code as c_int, "{name}");
        }
        for (name, kind) in [
            ("SFM_ABSENT", Type::Absent),
            ("SFM_INT", Type::Int),
            ("SFM_DOUBLE", Type::Double),
            ("SFM_TEXT", Type::Text),
            ("SFM_BYTES", Type::Bytes),
            ("SFM_ARRAY", Type::Array),
            ("SFM_NONE", Type::None),
            ("SFM_OBJECT", Type::Object),
            ("SFM_ANY", Type::Any),
        ] {
            assert_eq!(of(name), kind as c_int, "{name}");
        }
        let elements = "BOOL8 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 FLOAT16 FLOAT32 \
                        FLOAT64 COMPLEX64 COMPLEX128";
        for name in elements.split(' ') {
            let (_, item) = is_element(of(&format!("SFM_{name}"))).unwrap();
            let bits: u8 = name.trim_start_matches(char::is_alphabetic).parse().unwrap();
            assert_eq!(item * 8, bits, "{name}");
        }
        assert_eq!(is_element(0), None);
        assert_eq!(is_element(c_int::from(b'f') * 256 + 1), None);
    }
}
