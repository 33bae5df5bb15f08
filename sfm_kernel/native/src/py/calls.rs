//! The calls that users make: `send`, `recv`, `recv_nb`, `peek`.
//!
//! They take their arguments as the interpreter has them (METH_FASTCALL), since making a dict of
//! the attributes and calling through Python would cost as much as all the rest. What is rare is
//! left to methods of the Python class that inherits from this one: `_send_otherwise`,
//! `_send_after_loss`, `_canonical`, `_waiter`, `_timed_out`, `_would_block`.

use std::ffi::CStr;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple, PyType};
use pyo3::{ffi, intern};

use super::encode::{text_of, Encoder};
use super::errors::{self, error};
use super::inbox::Inbox;
use super::message::received_message;
use super::search::{duration, Search, Waited};
use super::template::Template;
use super::way::Way;
use crate::core::Core;

/// What an endpoint inherits its calls from.
#[pyclass(subclass, frozen, module = "sfm_kernel._native")]
pub struct Calls {
    wires: PyOnceLock<Wires>,
    buffering: AtomicU64,
}

struct Wires {
    core: Arc<Core>,
    /// Name or rank -> RingSender or ZmqSender: the ways that this module uses by itself.
    rings: Py<PyDict>,
    /// Rank -> name: what `src=rank` in a template means.
    ranks: Py<PyDict>,
    /// The space in which messages are matched.
    context: u64,
    /// How many had ever sent us something when `ranks` was made or renewed.
    ranks_as_of: AtomicU64,
}

#[pymethods]
impl Calls {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Calls {
        Calls { wires: PyOnceLock::new(), buffering: AtomicU64::new(0) }
    }

    /// Connect the calls with an inbox and with what is known of others.
    #[pyo3(signature = (inbox, rings, ranks, context=0))]
    fn _wire(
        &self,
        py: Python<'_>,
        inbox: &Bound<'_, Inbox>,
        rings: Py<PyDict>,
        ranks: Py<PyDict>,
        context: u64,
    ) -> PyResult<()> {
        let core = inbox.get().core.clone();
        let wires = Wires { core, rings, ranks, context, ranks_as_of: AtomicU64::new(0) };
        self.wires.set(py, wires).map_err(|_| PyRuntimeError::new_err("wired already"))
    }

    #[getter(_buffering)]
    fn get_buffering(&self) -> u64 {
        self.buffering.load(Ordering::Relaxed)
    }

    #[setter(_buffering)]
    fn set_buffering(&self, nbytes: u64) {
        self.buffering.store(nbytes, Ordering::Relaxed);
    }
}

/// The arguments of a call, as the interpreter passes them.
struct Arguments<'a, 'py> {
    py: Python<'py>,
    positional: &'a [Bound<'py, PyAny>],
    names: Option<&'a Bound<'py, PyTuple>>,
    values: &'a [Bound<'py, PyAny>],
}

impl<'a, 'py> Arguments<'a, 'py> {
    /// The named ones.
    fn named(
        &self,
    ) -> impl Iterator<Item = PyResult<(&'a str, &'a Bound<'py, PyAny>)>> + use<'a, 'py> {
        let names = self.names;
        self.values.iter().enumerate().map(move |(nth, value)| {
            let names = names.expect("as many names as values");
            let name = names.get_borrowed_item(nth)?;
            let name = name.cast::<PyString>()?;
            let name: &str = text_of(&name)?;
            // SAFETY: the tuple of names holds the text at least as long as 'a: for the call.
            Ok((unsafe { &*(name as *const str) }, value))
        })
    }

    /// The one called `name`.
    fn find(&self, name: &Bound<'py, PyString>) -> PyResult<Option<&'a Bound<'py, PyAny>>> {
        let Some(names) = self.names else { return Ok(None) };
        // Names in a program's text are interned, as ours is: comparing pointers finds them.
        for (nth, value) in self.values.iter().enumerate() {
            if names.get_borrowed_item(nth)?.is(name) {
                return Ok(Some(value));
            }
        }
        let wanted = name.to_str()?;
        for pair in self.named() {
            let (name, value) = pair?;
            if name == wanted {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// The named ones but `left_out`, as a dict.
    fn dict(&self, left_out: &str) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        for pair in self.named() {
            let (name, value) = pair?;
            if name != left_out {
                dict.set_item(name, value)?;
            }
        }
        Ok(dict)
    }

    fn no_positional(&self, call: &str) -> PyResult<()> {
        match self.positional {
            [] => Ok(()),
            _ => Err(PyTypeError::new_err(format!(
                "{call} takes attributes by name only: {call}(tag='x', ...)"
            ))),
        }
    }
}

type Me<'a, 'py> = &'a Bound<'py, Calls>;
type Result<'py> = PyResult<Bound<'py, PyAny>>;

fn wires<'a>(slf: Me<'a, '_>) -> PyResult<&'a Wires> {
    let wires = slf.get().wires.get(slf.py());
    wires.ok_or_else(|| PyRuntimeError::new_err("this endpoint was never opened"))
}

fn send<'py>(slf: Me<'_, 'py>, arguments: &Arguments<'_, 'py>) -> Result<'py> {
    let py = slf.py();
    arguments.no_positional("send")?;
    let Some(dest) = arguments.find(intern!(py, "dest"))? else {
        let why = "send needs a destination: send(dest='B', ...)";
        return Err(error(py, "AddressError", (why,)));
    };
    // What cannot be looked up (a list) cannot be a name either: the slow way says so.
    let wires = wires(slf)?;
    let ring = wires.rings.bind(py).get_item(dest).unwrap_or(None);
    let Some(ring) = ring else {
        let rest = arguments.dict("dest")?;
        if rest.contains(intern!(py, "src"))? {
            return Err(src_given(py));
        }
        return slf.call_method1(intern!(py, "_send_otherwise"), (dest, rest));
    };
    let way = Way::of(&ring)?;
    let mut encoder = Encoder::new();
    encoder.set_context(wires.context);
    encoder.extend(way.ends(), 2);
    for pair in arguments.named() {
        match pair? {
            ("dest", _) => {}
            ("src", _) => return Err(src_given(py)),
            (name, value) => encoder.add(name, value)?,
        }
    }
    let buffering = slf.get().buffering.load(Ordering::Relaxed);
    match way.write(py, &encoder.gather(), buffering) {
        Ok(()) => Ok(py.None().into_bound(py)),
        Err(failure) if errors::is(py, &failure, "PeerLost") => {
            // Another process may have taken its place.
            let rest = arguments.dict("dest")?;
            slf.call_method1(intern!(py, "_send_after_loss"), (dest, rest, failure, ring))
        }
        Err(failure) => Err(failure),
    }
}

fn src_given(py: Python<'_>) -> PyErr {
    error(py, "AddressError", ("src is added by send and cannot be given; use another name",))
}

/// Run `work` with the template that the named arguments are.
fn with_template<'py, T>(
    slf: Me<'_, 'py>,
    arguments: &Arguments<'_, 'py>,
    work: impl FnOnce(Search<'_, 'py>) -> PyResult<T>,
) -> PyResult<T> {
    let wires = wires(slf)?;
    let src = canonical_src(slf, wires, arguments)?;
    let pairs = arguments.named().map(|pair| match (pair?, &src) {
        (("src", _), Some(canonical)) => Ok(("src", canonical)),
        (pair, _) => Ok(pair),
    });
    let template = Template::new(pairs)?;
    work(Search::new(&wires.core, wires.context, template))
}

/// A rank in `src=` means the process's name, which is what messages carry.
fn canonical_src<'py>(
    slf: Me<'_, 'py>,
    wires: &Wires,
    arguments: &Arguments<'_, 'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = slf.py();
    match arguments.find(intern!(py, "src"))? {
        Some(value) if value.is_exact_instance_of::<PyInt>() => {
            let core = &wires.core;
            if core.is_closed() {
                return Err(errors::closed(py)); // and in a forked child the rings are the parent's
            }
            if core.shared().has_arrivals() {
                core.take_in();
            }
            // Has somebody new sent something? A dead one's rank may be theirs now.
            let senders = core.senders_ever();
            let news = wires.ranks_as_of.load(Ordering::Relaxed) != senders;
            match wires.ranks.bind(py).get_item(value)? {
                Some(known) if !news => Ok(Some(known)),
                _ => {
                    let name = slf.call_method1(intern!(py, "_canonical"), (value, news))?;
                    wires.ranks_as_of.store(senders, Ordering::Relaxed);
                    Ok(Some(name))
                }
            }
        }
        _ => Ok(None),
    }
}

fn recv<'py>(slf: Me<'_, 'py>, arguments: &Arguments<'_, 'py>) -> Result<'py> {
    let py = slf.py();
    let given = match arguments.positional {
        [] => None,
        [timeout] if timeout.is_none() => None,
        [timeout] => Some(timeout),
        _ => {
            let why = "recv takes one argument by position, the timeout in seconds";
            return Err(PyTypeError::new_err(why));
        }
    };
    let timeout = match given {
        None => None,
        Some(given) => match given.extract::<f64>().ok().and_then(duration) {
            Some(timeout) => Some(timeout),
            None => {
                let why =
                    format!("timeout is a number of seconds, 0 or more, not {}", given.repr()?);
                return Err(PyValueError::new_err(why));
            }
        },
    };
    let waiter = || {
        let template = arguments.dict("")?;
        slf.call_method1(intern!(py, "_waiter"), (template,))?.extract()
    };
    match with_template(slf, arguments, |mut search| search.wait(py, timeout, waiter))? {
        Waited::Taken(taken) => message(slf, taken),
        Waited::TimedOut => {
            let template = arguments.dict("")?;
            Err(PyErr::from_value(slf.call_method1(intern!(py, "_timed_out"), (given, template))?))
        }
    }
}

fn recv_nb<'py>(slf: Me<'_, 'py>, arguments: &Arguments<'_, 'py>) -> Result<'py> {
    let py = slf.py();
    arguments.no_positional("recv_nb")?;
    match with_template(slf, arguments, |mut search| search.take(py))? {
        Some(taken) => message(slf, taken),
        None => {
            let template = arguments.dict("")?;
            Err(PyErr::from_value(slf.call_method1(intern!(py, "_would_block"), (template,))?))
        }
    }
}

fn peek<'py>(slf: Me<'_, 'py>, arguments: &Arguments<'_, 'py>) -> Result<'py> {
    let py = slf.py();
    arguments.no_positional("peek")?;
    let found = with_template(slf, arguments, |mut search| search.peek(py))?;
    Ok(pyo3::types::PyBool::new(py, found).to_owned().into_any())
}

fn message<'py>(slf: Me<'_, 'py>, taken: crate::matching::Taken) -> Result<'py> {
    let core = &wires(slf)?.core;
    Ok(Bound::new(slf.py(), received_message(core, taken))?.into_any())
}

/// From the interpreter's way of calling to ours.
///
/// # Safety
/// Called by the interpreter as a METH_FASTCALL | METH_KEYWORDS method of `Calls`.
unsafe fn enter(
    slf: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    call: for<'py> fn(Me<'_, 'py>, &Arguments<'_, 'py>) -> Result<'py>,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the interpreter keeps all of these for the time of the call: `slf`, of a type
            // that the method descriptor has checked; the tuple of names or null; and as many
            // arguments as positional ones and names together. `Bound` is a transparent pointer.
            unsafe {
                let slf = Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Calls>();
                let names = Bound::from_borrowed_ptr_or_opt(py, names)
                    .map(|names| names.cast_into_unchecked::<PyTuple>());
                let named = names.as_ref().map_or(0, |names| names.len());
                let positional = positional as usize;
                let all: &[Bound<'_, PyAny>] = match positional + named {
                    0 => &[],
                    count => std::slice::from_raw_parts(arguments.cast(), count),
                };
                let (positional, values) = all.split_at(positional);
                call(&slf, &Arguments { py, positional, names: names.as_ref(), values })
            }
        }));
        match outcome {
            Ok(Ok(result)) => result.into_ptr(),
            Ok(Err(failure)) => {
                failure.restore(py);
                std::ptr::null_mut()
            }
            Err(_) => {
                PyRuntimeError::new_err("the native core panicked; see stderr").restore(py);
                std::ptr::null_mut()
            }
        }
    })
}

macro_rules! method {
    ($name:ident, $doc:literal) => {{
        unsafe extern "C" fn entry(
            slf: *mut ffi::PyObject,
            arguments: *const *mut ffi::PyObject,
            positional: ffi::Py_ssize_t,
            names: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
            // SAFETY: the interpreter calls it as `enter` wants.
            unsafe { enter(slf, arguments, positional, names, $name) }
        }
        const DOC: &str = concat!(include_str!($doc), "\0");
        (concat!(stringify!($name), "\0"), DOC, entry as ffi::PyCFunctionFastWithKeywords)
    }};
}

/// Give `Calls` its methods. pyo3 has no way to write them that passes arguments on as they are.
pub fn add_methods(class: &Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    let methods = [
        method!(send, "docs/send.txt"),
        method!(recv, "docs/recv.txt"),
        method!(recv_nb, "docs/recv_nb.txt"),
        method!(peek, "docs/peek.txt"),
    ];
    for (name, doc, function) in methods {
        let text =
            |text: &'static str| CStr::from_bytes_with_nul(text.as_bytes()).expect("one NUL");
        // The interpreter refers to it for ever.
        let definition = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: text(name).as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: text(doc).as_ptr(),
        }));
        // SAFETY: a type object and a definition that stays.
        let method = unsafe {
            let made = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
            Bound::from_owned_ptr_or_err(py, made)?
        };
        class.setattr(text(name).to_str().expect("ASCII"), method)?;
    }
    Ok(())
}
