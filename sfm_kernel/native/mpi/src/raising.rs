//! The end of a failed call: its object's error handler is called, or the program ends.

use crate::errhandlers::{function, known, Handler};
use crate::errors::{latest_text, Answer, Failure, On, INTERRUPTED};
use crate::handles::*;
use crate::{classes, comm, engine, file, launcher, session, window, world};

/// What precedes an observer's verdict, which names the calls as the program does.
const VERDICT: &str = ": Deadlock: ";

/// The end of every function that returns an error code.
#[inline]
pub fn answer(function: &str, on: Option<On>, answer: Answer) -> c_int {
    if let Some(engine) = engine::running() {
        engine.settle();
    }
    match answer {
        Ok(()) => MPI_SUCCESS,
        Err(failure) => raise(failure, function, on),
    }
}

/// Call the error handler. Returns the code, which the handler may have changed, unless the
/// handler ends the program.
#[cold]
pub fn raise(failure: Failure, function: &str, on: Option<On>) -> c_int {
    if failure.code == INTERRUPTED {
        return MPI_ERR_OTHER;
    }
    if failure.code == MPI_ERR_PROC_ABORTED {
        launcher::report_loss();
    }
    failure.note(function);
    let text = format!("{function}: {}", failure.text);
    handle(failure.code, &text, failure.on.or(on))
}

/// Call the handler on behalf of a function such as MPI_Comm_call_errhandler.
pub fn call(function: &str, code: c_int, on: On) {
    let class = classes::text(code).unwrap_or_else(|_| format!("error code {code}"));
    handle(code, &format!("{function}: {class}"), Some(on));
}

/// The handler of an object, if the object exists.
fn of(on: On) -> Option<MPI_Errhandler> {
    match on {
        On::Comm(handle) => comm::get(handle).ok().map(|comm| comm.errhandler.current()),
        On::Session(handle) => session::find(handle).map(|session| session.errhandler.current()),
        On::File(handle) => Some(file::current_errhandler(handle)),
        On::Handler(handler) => known(handler).ok().map(|()| handler),
        On::Win(handle) => window::get(handle).ok().map(|window| window.errhandler.current()),
    }
}

/// Call the handler of the object, or the one for errors without an object. Returns the code that
/// the failed call returns: the handler may change it.
pub fn handle(mut code: c_int, text: &str, on: Option<On>) -> c_int {
    let found = on.and_then(of);
    let handler = found.unwrap_or_else(without_object);
    if handler == MPI_ERRORS_RETURN {
        return code;
    }
    let comm = on.filter(|_| found.is_some()).and_then(On::comm);
    let end = std::ptr::null_mut::<c_void>();
    // SAFETY, of each: the program gave this function for this use; it gets a handle and the code,
    // and the null ends the variable arguments.
    match (function(handler), on) {
        (Some(Handler::Comm(Some(function))), _) => unsafe {
            function(&mut comm.unwrap_or(MPI_COMM_SELF), &mut code, end);
        },
        (Some(Handler::Session(Some(function))), Some(On::Session(mut handle))) => unsafe {
            function(&mut handle, &mut code, end);
        },
        (Some(Handler::Session(Some(function))), _) => unsafe {
            function(&mut { MPI_SESSION_NULL }, &mut code, end);
        },
        (Some(Handler::File(Some(function))), Some(On::File(handle))) => unsafe {
            function(&mut (handle as MPI_File), &mut code, end);
        },
        (Some(Handler::Win(Some(function))), Some(On::Win(mut handle))) => unsafe {
            function(&mut handle, &mut code, end);
        },
        _ => fatal(code, text, comm),
    }
    code
}

/// The handler of errors without an object. Before version 4 of the standard it was
/// MPI_COMM_WORLD's; since then it is MPI_COMM_SELF's, which takes precedence here once it is set.
fn without_object() -> MPI_Errhandler {
    let of = |comm| comm::get(comm).map_or(MPI_ERRORS_ARE_FATAL, |c| c.errhandler.current());
    match of(MPI_COMM_SELF) {
        MPI_ERRORS_ARE_FATAL => of(MPI_COMM_WORLD),
        of_self => of_self,
    }
}

/// The text of MPI_Error_string, at most MPI_MAX_ERROR_STRING - 1 bytes.
pub fn string(code: c_int) -> Answer<String> {
    let class = classes::text(code)?;
    let mut text = match latest_text(code).filter(|_| !classes::is_added(code)) {
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
