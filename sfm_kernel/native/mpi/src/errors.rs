//! Failed calls: classes, codes, texts, error handlers.
//!
//! An error's code is its class, so that `if (rc == MPI_ERR_RANK)` works as well as
//! MPI_Error_class. MPI_Error_string appends the text of the last error of that class: of this
//! thread, or else of any, because an exception of mpi4py may be shown by another thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{LazyLock, Mutex};

use sfm_native::sync::lock;

use crate::engine::origin;
use crate::handles::*;
use crate::{classes, comm, engine, errhandlers, launcher, world};

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

/// What precedes an observer's verdict, which names the calls as the program does.
const VERDICT: &str = ": Deadlock: ";

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

    /// Call the error handler. Returns the code, which the handler may have changed, unless the
    /// handler ends the program.
    #[cold]
    pub fn raise(self, function: &str, on: Option<On>) -> c_int {
        if self.code == INTERRUPTED {
            return MPI_ERR_OTHER;
        }
        if self.code == MPI_ERR_PROC_ABORTED {
            launcher::report_loss();
        }
        self.note(function);
        let text = format!("{function}: {}", self.text);
        errhandlers::handle(self.code, &text, self.on.or(on))
    }

    /// Store the text for MPI_Error_string, and return it.
    pub fn note(&self, function: &str) -> String {
        let text = format!("{function}: {}", origin::plain(&self.text));
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

/// The text of MPI_Error_string, at most MPI_MAX_ERROR_STRING - 1 bytes.
pub fn string(code: c_int) -> Answer<String> {
    let class = classes::text(code)?;
    let last = TEXTS.with_borrow(|texts| texts.get(&code).cloned());
    let last = last.or_else(|| lock(&LATEST).get(&code).cloned());
    let mut text = match last.filter(|_| !classes::is_added(code)) {
        Some(last) => in_full(code, &class, &last),
        None => class,
    };
    cut(&mut text, MPI_MAX_ERROR_STRING as usize - 1);
    Ok(text)
}

/// Cut a text to this many bytes, where possible behind a sentence.
fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        while text.len() > most {
            text.pop();
        }
        let end = text.rfind(['.', ';', ':']).filter(|end| text[*end..].len() < most / 2);
        let end = text.rfind('\n').or(end.map(|end| end + 1));
        text.truncate(end.unwrap_or(text.len()));
    }
}

/// The text of an error with its class, and with the function if the program has called it by that
/// name. A Python program has not: its traceback shows the call, which mpi4py may make of several.
fn in_full(code: c_int, class: &str, last: &str) -> String {
    if let Some(at) = last.find(VERDICT) {
        return last[at + 2..].to_owned();
    }
    let (function, why) = last.split_once(": ").unwrap_or(("", last));
    match (code, engine::is_python()) {
        (MPI_ERR_OTHER, true) => why.to_owned(),
        (MPI_ERR_OTHER, false) => last.to_owned(),
        (_, true) => format!("{class}. {}: {why}", function.trim_end_matches("_c")),
        (_, false) => format!("{class}. {last}"),
    }
}

/// Print the error and end all processes of the program.
pub fn fatal(code: c_int, text: &str, comm: Option<MPI_Comm>) -> ! {
    let name = comm.and_then(|handle| comm::get(handle).ok()).map(|comm| comm.name());
    let class = Some(classes::name(code)).filter(|_| code != MPI_ERR_OTHER);
    let on = name.filter(|name| name != "MPI_COMM_WORLD" && !text.contains(name.as_str()));
    let more: Vec<String> = [class, on].into_iter().flatten().collect();
    let text = match more.is_empty() {
        true => text.to_owned(),
        false => format!("{text} [{}]", more.join(" on ")),
    };
    world::fail_fatally(code, code == MPI_ERR_PROC_ABORTED, &text)
}

/// The end of every function that returns an error code.
#[inline]
pub fn answer(function: &str, on: Option<On>, answer: Answer) -> c_int {
    if let Some(engine) = engine::running() {
        engine.settle();
    }
    match answer {
        Ok(()) => MPI_SUCCESS,
        Err(failure) => failure.raise(function, on),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_behind_a_sentence() {
        for (text, expected) in [
            ("short", "short"),
            ("Deadlock: A.\nA is in a.py, line 3.\nB is", "Deadlock: A.\nA is in a.py, line 3."),
            ("Two sentences. One is", "Two sentences."),
            ("nothing but words and words", "nothing but words an"),
        ] {
            let mut text = text.to_owned();
            let most = if text.contains('\n') { 38 } else { 20 };
            cut(&mut text, most);
            assert_eq!(text, expected);
        }
    }
}
