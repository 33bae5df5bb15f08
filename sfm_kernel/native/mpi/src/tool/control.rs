//! Control variables: the engine's limits, which can be changed, and constants.

use std::ops::RangeInclusive;

use sfm_native::trace;

use super::enums::Of;
use super::registry::Registry;
use crate::engine::limits::{self, Limit};
use crate::errors::{fail, Answer};
use crate::handles::*;

pub struct Variable {
    pub name: &'static str,
    pub about: &'static str,
    pub verbosity: c_int,
    pub scope: c_int,
    pub value: Value,
}

pub enum Value {
    /// Bytes, and the range of valid values.
    Limit(&'static Limit, RangeInclusive<usize>),
    Number(c_int, Option<Of>),
    Text(fn() -> String),
}

use Value::*;

const LIMIT: Variable = Variable {
    name: "",
    about: "",
    verbosity: MPI_T_VERBOSITY_TUNER_BASIC,
    scope: MPI_T_SCOPE_LOCAL,
    value: Number(0, None),
};
const FACT: Variable =
    Variable { verbosity: MPI_T_VERBOSITY_USER_BASIC, scope: MPI_T_SCOPE_CONSTANT, ..LIMIT };

pub static ALL: [Variable; 8] = [
    Variable {
        name: "offer_from",
        about: "messages of at least this many bytes are offered, and fetched by their receiver; \
            smaller ones carry their bytes",
        // The ring has room for twice as much.
        value: Limit(&limits::OFFER_FROM, 1..=128 << 10),
        ..LIMIT
    },
    Variable {
        name: "help_from",
        about: "the sender helps to copy messages of at least this many bytes while it waits",
        value: Limit(&limits::HELP_FROM, 1..=usize::MAX),
        ..LIMIT
    },
    Variable {
        name: "buffering",
        about: "bytes that this process may have sent to another without their being received; \
            sends beyond that wait; with 0 each send waits until its receive has begun",
        value: Limit(&limits::BUFFERING, 0..=usize::MAX),
        ..LIMIT
    },
    Variable {
        name: "pouring",
        about: "bytes of large messages that may be in transit to a process that does not fetch \
            them alone",
        value: Limit(&limits::POURING, 1..=usize::MAX),
        ..LIMIT
    },
    Variable {
        name: "thread_level",
        about: "the highest level that MPI_Init_thread provides",
        value: Number(MPI_THREAD_MULTIPLE, Some(Of::ThreadLevel)),
        ..FACT
    },
    Variable {
        name: "events_kept",
        about: "events that the trace keeps for observers; older ones are overwritten",
        value: Number(trace::EVENTS as c_int, None),
        ..FACT
    },
    Variable {
        name: "library_version",
        about: "the text of MPI_Get_library_version",
        value: Text(library_version),
        ..FACT
    },
    Variable {
        name: "world",
        about: "the name under which observers find the processes of this program",
        scope: MPI_T_SCOPE_READONLY,
        value: Text(crate::process::world_name),
        ..FACT
    },
];

impl Variable {
    pub fn datatype(&self) -> MPI_Datatype {
        match self.value {
            Limit(..) => MPI_UNSIGNED_LONG,
            Number(..) => MPI_INT,
            Text(_) => MPI_CHAR,
        }
    }

    pub fn enumeration(&self) -> Option<Of> {
        match self.value {
            Number(_, of) => of,
            Limit(..) | Text(_) => None,
        }
    }
}

pub struct Handle {
    variable: &'static Variable,
    /// The text at the creation of the handle, which returned its length.
    text: String,
}

static HANDLES: Registry<Handle> = Registry::new();

pub fn clear() {
    HANDLES.clear();
}

/// Make a handle; returns it and the number of elements of its value.
pub fn open(variable: &'static Variable) -> (MPI_T_cvar_handle, c_int) {
    let text = match &variable.value {
        Text(text) => text(),
        Limit(..) | Number(..) => String::new(),
    };
    let count = text.len() as c_int + 1; // a number is one element, a text ends with a zero
    (HANDLES.insert(Handle { variable, text }), count)
}

fn wrong() -> crate::errors::Failure {
    let text = "argument handle is not a handle of a control variable, or was freed";
    fail(MPI_T_ERR_INVALID_HANDLE, text)
}

pub fn close(handle: MPI_T_cvar_handle) -> Answer {
    HANDLES.remove(handle).map(|_| ()).ok_or_else(wrong)
}

/// Write the value to the tool's memory.
///
/// # Safety
/// There is room for as many elements as `open` has returned.
pub unsafe fn read(handle: MPI_T_cvar_handle, to: *mut c_void) -> Answer {
    let handle = HANDLES.get(handle).ok_or_else(wrong)?;
    match &handle.variable.value {
        Limit(limit, _) => to.cast::<usize>().write_unaligned(limit.get()),
        Number(number, _) => to.cast::<c_int>().write_unaligned(*number),
        Text(_) => {
            let text = &handle.text;
            std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), text.len());
            to.cast::<u8>().add(text.len()).write(0);
        }
    }
    Ok(())
}

/// # Safety
/// `from` has a value of the variable's type.
pub unsafe fn write(handle: MPI_T_cvar_handle, from: *const c_void) -> Answer {
    let handle = HANDLES.get(handle).ok_or_else(wrong)?;
    let Variable { name, value, .. } = handle.variable;
    let Limit(limit, range) = value else {
        let text = format!("{name} is constant, and cannot be set");
        return Err(fail(MPI_T_ERR_CVAR_SET_NEVER, text));
    };
    let bytes = from.cast::<usize>().read_unaligned();
    if !range.contains(&bytes) {
        let (least, most) = (range.start(), range.end());
        let text = format!("{name} cannot be {bytes}; it is from {least} to {most} bytes");
        return Err(fail(MPI_T_ERR_INVALID, text));
    }
    limit.set(bytes);
    Ok(())
}
