//! Error codes, and the text of each thread's latest error.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

use sfm_endpoint::{Error, Kind};

/// `enum sfm_code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    Ok = 0,
    WouldBlock = 1,
    TimedOut = 2,
    PeerLost = 3,
    UnknownName = 4,
    Closed = 5,
    Deadlock = 6,
    Interrupted = 7,
    NoAttribute = 8,
    WrongType = 9,
    NeedsPython = 10,
    BadArgument = 11,
    TooLarge = 12,
    NoRoom = 13,
    NoMemory = 14,
    MessagesLost = 15,
    Damaged = 16,
    BadName = 17,
    NameInUse = 18,
    WorldFull = 19,
    WorldGone = 20,
    WorldAccess = 21,
    WorldError = 22,
    System = 23,
    Internal = 24,
}

#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub text: String,
}

pub type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(code: Code, text: impl Into<String>) -> Failure {
        Failure { code, text: text.into() }
    }

    pub fn argument(text: impl Into<String>) -> Failure {
        Failure::new(Code::BadArgument, text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match error.kind {
            Kind::Argument => Code::BadArgument,
            Kind::WouldBlock => Code::WouldBlock,
            Kind::TimedOut => Code::TimedOut,
            Kind::PeerLost => Code::PeerLost,
            Kind::MessagesLost => Code::MessagesLost,
            Kind::MessageTooLarge => Code::TooLarge,
            Kind::Closed => Code::Closed,
            Kind::Deadlock => Code::Deadlock,
            Kind::Interrupted => Code::Interrupted,
            Kind::SegmentFull => Code::NoRoom,
            Kind::Packet => Code::Damaged,
            Kind::UnknownName => Code::UnknownName,
            Kind::BadName => Code::BadName,
            Kind::NameInUse => Code::NameInUse,
            Kind::WorldFull => Code::WorldFull,
            Kind::WorldGone => Code::WorldGone,
            Kind::WorldAccess => Code::WorldAccess,
            Kind::World => Code::WorldError,
            Kind::System => Code::System,
        };
        Failure::new(code, error.text)
    }
}

thread_local! {
    /// None: no call of this thread has failed.
    static LATEST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// The code of `work`'s result; its error becomes the thread's latest. A panic is a mistake of this
/// library, which must not end the program.
pub fn answer(work: impl FnOnce() -> Result) -> c_int {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return Code::Ok as c_int,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(
            Code::Internal,
            "this is a mistake in libsfm, which is described on stderr: please report it. This \
            call has failed; others may continue",
        ),
    };
    note(&failure);
    failure.code as c_int
}

/// The same for a function that returns no code: `none` if it fails.
pub fn answer_with<T>(none: T, work: impl FnOnce() -> Result<T>) -> T {
    let mut found = none;
    answer(|| {
        found = work()?;
        Ok(())
    });
    found
}

fn note(failure: &Failure) {
    let text = CString::new(printable(&failure.text)).unwrap_or_default();
    // At the thread's end its storage may be gone, and nothing reads it any more.
    let _ = LATEST.try_with(|latest| *latest.borrow_mut() = Some(text));
}

/// Escape control characters: text from other processes must not control a terminal, nor end the
/// string.
fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

const NOTHING: &CStr = c"no call of this thread has failed";

pub unsafe extern "C" fn error_text() -> *const c_char {
    let latest = LATEST.try_with(|latest| latest.borrow().as_ref().map(|text| text.as_ptr()));
    latest.ok().flatten().unwrap_or(NOTHING.as_ptr())
}
