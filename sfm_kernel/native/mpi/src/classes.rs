//! Error classes: their meanings in words, and those that the program adds.

use std::sync::Mutex;

use sfm_native::sync::lock;

use crate::errors::{fail, Answer, Failure};
use crate::handles::*;

macro_rules! table {
    ($($name:ident: $meaning:literal,)*) => { &[$((stringify!($name), $name, $meaning)),*] };
}

/// Name, value and meaning of each class.
const CLASSES: &[(&str, c_int, &str)] = table! {
    MPI_SUCCESS: "no error",
    MPI_ERR_BUFFER: "invalid buffer",
    MPI_ERR_COUNT: "invalid count",
    MPI_ERR_TYPE: "invalid datatype",
    MPI_ERR_TAG: "invalid tag",
    MPI_ERR_COMM: "invalid communicator",
    MPI_ERR_RANK: "invalid rank",
    MPI_ERR_ROOT: "invalid root",
    MPI_ERR_GROUP: "invalid group",
    MPI_ERR_OP: "invalid operation",
    MPI_ERR_TOPOLOGY: "invalid topology",
    MPI_ERR_DIMS: "invalid dimension",
    MPI_ERR_ARG: "invalid argument",
    MPI_ERR_UNKNOWN: "unknown error",
    MPI_ERR_TRUNCATE: "message longer than the receive buffer",
    MPI_ERR_OTHER: "an error without a class of its own",
    MPI_ERR_INTERN: "a mistake in this library",
    MPI_ERR_IN_STATUS: "the error is in the status",
    MPI_ERR_PENDING: "neither complete nor failed yet",
    MPI_ERR_REQUEST: "invalid request",
    MPI_ERR_ACCESS: "no permission",
    MPI_ERR_AMODE: "invalid access mode",
    MPI_ERR_BAD_FILE: "invalid file name",
    MPI_ERR_CONVERSION: "a conversion function failed",
    MPI_ERR_DUP_DATAREP: "this data representation exists already",
    MPI_ERR_FILE_EXISTS: "the file exists",
    MPI_ERR_FILE_IN_USE: "the file is open",
    MPI_ERR_FILE: "invalid file handle",
    MPI_ERR_INFO: "invalid info object",
    MPI_ERR_INFO_KEY: "an info key that is empty or too long",
    MPI_ERR_INFO_VALUE: "an info value that is empty or too long",
    MPI_ERR_INFO_NOKEY: "no such key in the info object",
    MPI_ERR_IO: "input or output failed",
    MPI_ERR_NAME: "no such published name",
    MPI_ERR_NO_MEM: "no memory left",
    MPI_ERR_NOT_SAME: "an argument differs between processes",
    MPI_ERR_NO_SPACE: "no space left",
    MPI_ERR_NO_SUCH_FILE: "no such file",
    MPI_ERR_PORT: "invalid port",
    MPI_ERR_QUOTA: "quota exceeded",
    MPI_ERR_READ_ONLY: "read only",
    MPI_ERR_SERVICE: "invalid service name",
    MPI_ERR_SPAWN: "processes could not be started",
    MPI_ERR_UNSUPPORTED_DATAREP: "unsupported representation",
    MPI_ERR_UNSUPPORTED_OPERATION: "unsupported operation",
    MPI_ERR_WIN: "invalid window",
    MPI_ERR_BASE: "invalid base address",
    MPI_ERR_LOCKTYPE: "invalid lock type",
    MPI_ERR_KEYVAL: "invalid key value",
    MPI_ERR_RMA_CONFLICT: "conflicting accesses to a window",
    MPI_ERR_RMA_SYNC: "wrong synchronisation of a window",
    MPI_ERR_SIZE: "invalid size",
    MPI_ERR_DISP: "invalid displacement",
    MPI_ERR_ASSERT: "invalid assertion",
    MPI_ERR_RMA_RANGE: "outside of the window",
    MPI_ERR_RMA_ATTACH: "memory cannot be attached",
    MPI_ERR_RMA_SHARED: "memory cannot be shared",
    MPI_ERR_RMA_FLAVOR: "the wrong kind of window",
    MPI_ERR_SESSION: "invalid session",
    MPI_ERR_PROC_ABORTED: "the other process has ended or has left the call",
    MPI_ERR_VALUE_TOO_LARGE: "the value does not fit",
    MPI_ERR_ERRHANDLER: "invalid error handler",
    MPI_ERR_ABI: "the wrong binary interface",
    MPI_T_ERR_MEMORY: "no memory left",
    MPI_T_ERR_NOT_INITIALIZED: "the interface is not initialized",
    MPI_T_ERR_CANNOT_INIT: "the interface cannot be initialized",
    MPI_T_ERR_INVALID_INDEX: "no such variable, category or event",
    MPI_T_ERR_INVALID_ITEM: "no such item",
    MPI_T_ERR_INVALID_HANDLE: "invalid handle of a tool",
    MPI_T_ERR_OUT_OF_HANDLES: "no more handles",
    MPI_T_ERR_OUT_OF_SESSIONS: "no more sessions",
    MPI_T_ERR_INVALID_SESSION: "invalid session of a tool",
    MPI_T_ERR_CVAR_SET_NOT_NOW: "cannot be set now",
    MPI_T_ERR_CVAR_SET_NEVER: "cannot be set",
    MPI_T_ERR_PVAR_NO_STARTSTOP: "cannot be started or stopped",
    MPI_T_ERR_PVAR_NO_WRITE: "cannot be written or reset",
    MPI_T_ERR_PVAR_NO_ATOMIC: "cannot be read and reset at once",
    MPI_T_ERR_INVALID_NAME: "no such name",
    MPI_T_ERR_INVALID: "invalid use of the tool information interface",
    MPI_T_ERR_NOT_SUPPORTED: "not supported",
    MPI_T_ERR_NOT_ACCESSIBLE: "not accessible",
    MPI_ERR_LASTCODE: "the last predefined code",
};

/// A class or a code that the program added; the index of a removed one is reused.
struct Added {
    class: c_int,
    text: String,
}

static ADDED: Mutex<Vec<Option<Added>>> = Mutex::new(Vec::new());
const FIRST: c_int = MPI_ERR_LASTCODE + 1;

fn with<T>(use_: impl FnOnce(&mut Vec<Option<Added>>) -> T) -> T {
    use_(&mut lock(&ADDED))
}

fn added<T>(code: c_int, use_: impl FnOnce(&Added) -> T) -> Option<T> {
    let index = usize::try_from(code.checked_sub(FIRST)?).ok()?;
    with(|all| all.get(index).and_then(Option::as_ref).map(use_))
}

fn predefined(code: c_int) -> Option<&'static (&'static str, c_int, &'static str)> {
    CLASSES.iter().find(|(_, value, _)| *value == code)
}

/// Add a new class, or a code of the class `class`.
pub fn add(class: Option<c_int>) -> Answer<c_int> {
    if let Some(class) = class {
        self::class(class)?;
    }
    with(|all| {
        let index = all.iter().position(Option::is_none).unwrap_or(all.len());
        let code = FIRST + index as c_int;
        let added = Added { class: class.unwrap_or(code), text: String::new() };
        match all.get_mut(index) {
            Some(free) => *free = Some(added),
            None => all.push(Some(added)),
        }
        Ok(code)
    })
}

pub fn set_text(code: c_int, text: String) -> Answer {
    change(code, |added| added.text = text)
}

/// Remove a class (`is_class`) or a code, which must have no text and no codes.
pub fn remove(code: c_int, is_class: bool) -> Answer {
    let used = with(|all| all.iter().flatten().filter(|added| added.class == code).count());
    let mut wrong = None;
    change(code, |added| {
        let itself = usize::from(added.class == code);
        wrong = match (is_class, itself) {
            (true, 0) => Some("is a code; MPI_Remove_error_code removes it"),
            (false, 1) => Some("is a class; MPI_Remove_error_class removes it"),
            _ if !added.text.is_empty() => Some("has a text; remove that first"),
            _ if used > itself => Some("has codes; remove them first"),
            _ => None,
        };
    })?;
    if let Some(wrong) = wrong {
        return Err(fail(MPI_ERR_ARG, format!("{code} {wrong}")));
    }
    with(|all| all[(code - FIRST) as usize] = None);
    Ok(())
}

fn change(code: c_int, change: impl FnOnce(&mut Added)) -> Answer {
    if let Some(index) = code.checked_sub(FIRST).and_then(|index| usize::try_from(index).ok()) {
        let done = with(|all| all.get_mut(index).and_then(Option::as_mut).map(change));
        if done.is_some() {
            return Ok(());
        }
    }
    let text = format!(
        "{code} is not an error class or code of MPI_Add_error_class or MPI_Add_error_code; those \
        of the standard cannot be changed"
    );
    Err(fail(MPI_ERR_ARG, text))
}

/// The largest code in use: MPI_LASTUSEDCODE.
pub fn last_used() -> c_int {
    with(|all| FIRST - 1 + all.len() as c_int)
}

pub fn class(code: c_int) -> Answer<c_int> {
    if predefined(code).is_some() {
        return Ok(code);
    }
    added(code, |added| added.class).ok_or_else(|| unknown(code))
}

fn unknown(code: c_int) -> Failure {
    fail(MPI_ERR_ARG, format!("{code} is not an error code: no MPI function returns it"))
}

/// A text such as `MPI_ERR_RANK: invalid rank`.
pub fn text(code: c_int) -> Answer<String> {
    if let Some((name, _, meaning)) = predefined(code) {
        return Ok(format!("{name}: {meaning}"));
    }
    added(code, |added| added.text.clone()).ok_or_else(|| unknown(code))
}

/// True if the program has added it: then its text is complete.
pub fn is_added(code: c_int) -> bool {
    added(code, |_| ()).is_some()
}

pub fn name(code: c_int) -> String {
    predefined(code).map_or_else(|| format!("error {code}"), |(name, _, _)| (*name).into())
}
