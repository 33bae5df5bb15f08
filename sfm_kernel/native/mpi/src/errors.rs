//! Failed calls: their codes and texts. `raising` calls their error handlers.
//!
//! An error's code is its class, so that `if (rc == MPI_ERR_RANK)` works as well as
//! MPI_Error_class. MPI_Error_string appends the text of the last error of that class: of this
//! thread, or else of any, because an exception of mpi4py may be shown by another thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{LazyLock, Mutex};

use sfm_endpoint::Kind;
use sfm_native::sync::lock;

use crate::handles::*;

/// A function's result; a failure goes to the object's error handler.
pub type Answer<T = ()> = Result<T, Failure>;

/// Boxed, so that an `Answer` is a pointer, and a call that does not fail moves nothing else.
#[derive(Debug)]
pub struct Failure(Box<Details>);

#[derive(Debug)]
pub struct Details {
    /// The error's class, or a code that the program added.
    pub code: c_int,
    /// One or two sentences, without the function's name: what is wrong, and what to do next.
    pub text: String,
    /// The object whose error handler is called, if it is not an argument (a request's
    /// communicator).
    pub on: Option<On>,
}

/// The code of a call that the program has interrupted by a signal handler that ends it. No error
/// handler is called: the rest is the program's decision.
pub const INTERRUPTED: c_int = -1;

/// An object with an error handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Comm(MPI_Comm),
    Win(MPI_Win),
    /// The handle, which is a pointer; MPI_FILE_NULL's handler gets the errors of files that could
    /// not be opened.
    File(usize),
    Session(MPI_Session),
    /// An object that does not exist yet, with this handler.
    Handler(MPI_Errhandler),
}

impl On {
    pub fn comm(self) -> Option<MPI_Comm> {
        match self {
            On::Comm(handle) => Some(handle),
            _ => None,
        }
    }
}

/// Used as `Err(fail(MPI_ERR_RANK, format!(…)))`.
pub fn fail(code: c_int, text: impl Into<String>) -> Failure {
    Failure(Box::new(Details { code, text: text.into(), on: None }))
}

impl Deref for Failure {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl DerefMut for Failure {
    fn deref_mut(&mut self) -> &mut Details {
        &mut self.0
    }
}

impl Failure {
    pub fn on(mut self, object: On) -> Failure {
        self.on = Some(object);
        self
    }

    /// Store the text for MPI_Error_string, and return it.
    pub fn note(&self, function: &str) -> String {
        let text = format!("{function}: {}", plain(&self.text));
        TEXTS.with_borrow_mut(|texts| texts.insert(self.code, text.clone()));
        lock(&LATEST).insert(self.code, text.clone());
        text
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

thread_local! {
    static TEXTS: RefCell<HashMap<c_int, String>> = RefCell::new(HashMap::new());
}

/// Of all threads.
static LATEST: LazyLock<Mutex<HashMap<c_int, String>>> = LazyLock::new(Mutex::default);

/// The latest text of this error: this thread's, or else any thread's.
pub fn latest_text(code: c_int) -> Option<String> {
    let own = TEXTS.with_borrow(|texts| texts.get(&code).cloned());
    own.or_else(|| lock(&LATEST).get(&code).cloned())
}

/// Around a location that is not in words. The launcher finds the line of a program without Python
/// (sfm_kernel/observe/crashes.py).
pub const EDGE: char = '\u{2}';

/// A text without locations that are not in words.
pub fn plain(text: &str) -> String {
    text.split(EDGE).step_by(2).collect()
}

/// An error of the world as an MPI error.
pub fn of_world(error: sfm_endpoint::Error) -> Failure {
    let code = match error.kind {
        Kind::PeerLost | Kind::WorldGone | Kind::MessagesLost => MPI_ERR_PROC_ABORTED,
        Kind::SegmentFull | Kind::MessageTooLarge => MPI_ERR_NO_MEM,
        Kind::Interrupted => INTERRUPTED,
        _ => MPI_ERR_OTHER,
    };
    fail(code, error.text)
}
