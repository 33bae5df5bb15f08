//! The calls that users make: `send`, `recv`, `recv_nb`, `peek`.
//!
//! What is rare is left to methods of the Python class that inherits from this one:
//! `_way`, `_successor`, `_canonical`, `_waiter`, `_timed_out`, `_would_block`, `_polled`.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple, PyType};
use smallvec::SmallVec;

use super::channel::Channel;
use super::encode::Encoder;
use super::errors::{self, error};
use super::fastcall::{add_methods, method, Arguments, Outcome};
use super::here;
use super::inbox::Inbox;
use super::message::{queued_message, received_message, Message};
use super::search::{duration, Search, Waited};
use super::template::Template;
use sfm_native::core::Core;

/// What an endpoint inherits its calls from.
#[pyclass(subclass, frozen, module = "sfm_kernel._native")]
pub struct Calls {
    wires: PyOnceLock<Wires>,
    buffering: AtomicU64,
}

pub(super) struct Wires {
    pub core: Arc<Core>,
    /// Name or rank -> Channel: those that are known.
    pub channels: Py<PyDict>,
    /// Rank -> name: what `src=rank` in a template means.
    ranks: Py<PyDict>,
    /// The space in which messages are matched.
    pub context: u64,
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
    #[pyo3(signature = (inbox, channels, ranks, context=0))]
    fn _wire(
        &self,
        py: Python<'_>,
        inbox: &Bound<'_, Inbox>,
        channels: Py<PyDict>,
        ranks: Py<PyDict>,
        context: u64,
    ) -> PyResult<()> {
        let core = inbox.get().core.clone();
        let wires = Wires { core, channels, ranks, context, ranks_as_of: AtomicU64::new(0) };
        self.wires.set(py, wires).map_err(|_| PyRuntimeError::new_err("wired already"))
    }

    /// Of several receives that wait in this order (a list of dicts), the place of the first for
    /// which there is a message, and the message; None if there is none. It stays queued without
    /// `take`.
    fn _any(
        slf: &Bound<'_, Self>,
        templates: &Bound<'_, PyList>,
        take: bool,
    ) -> PyResult<Option<(usize, Py<Message>)>> {
        let py = slf.py();
        here::mark(py)?;
        let wires = wires(slf)?;
        if wires.core.is_closed() {
            return Err(errors::closed(py));
        }
        let mut pairs = SmallVec::<[_; 16]>::new();
        let mut ends = SmallVec::<[usize; 8]>::new();
        for template in templates {
            pairs.extend(template.cast_into::<PyDict>()?.iter());
            ends.push(pairs.len());
        }
        let mut parsed = SmallVec::<[Template<'_, '_>; 8]>::new();
        let mut from = 0;
        for end in ends {
            let pairs = pairs[from..end].iter();
            parsed.push(Template::new(
                pairs.map(|(name, value)| Ok((name.cast::<PyString>()?.to_str()?, value))),
            )?);
            from = end;
        }
        let natives: SmallVec<[_; 8]> = parsed.iter().map(|one| &one.native).collect();
        let found = wires.core.look_for_any(wires.context, &natives, take);
        let Some((nth, packet, taken)) = found else { return Ok(None) };
        wires.core.shared().polls.end();
        let message = match taken {
            Some(taken) => received_message(&wires.core, taken),
            None => queued_message(&packet),
        };
        Ok(Some((nth, Py::new(py, message)?)))
    }

    #[getter(_buffering)]
    pub fn get_buffering(&self) -> u64 {
        self.buffering.load(Ordering::Relaxed)
    }

    #[setter(_buffering)]
    fn set_buffering(&self, nbytes: u64) {
        self.buffering.store(nbytes, Ordering::Relaxed);
    }
}

type Me<'a, 'py> = &'a Bound<'py, Calls>;

pub(super) fn wires<'a>(slf: Me<'a, '_>) -> PyResult<&'a Wires> {
    let wires = slf.get().wires.get(slf.py());
    wires.ok_or_else(|| PyRuntimeError::new_err("this endpoint was never opened"))
}

/// What a user's object is the key of. What cannot be looked up (a list) is there as little as
/// others: the slow way says so. Stop may strike in the object's own comparison.
pub(super) fn looked_up<'py>(
    dict: &Bound<'py, PyDict>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match dict.get_item(key) {
        Err(failure) if failure.is_instance_of::<PyException>(dict.py()) => Ok(None),
        found => found,
    }
}

fn send<'py>(slf: &Bound<'py, PyAny>, arguments: &Arguments<'_, 'py>) -> Outcome<'py> {
    let (slf, py) = (slf.cast::<Calls>()?, slf.py());
    here::mark(py)?;
    arguments.no_positional("send")?;
    let Some(dest) = arguments.find(intern!(py, "dest"))? else {
        let why = "send needs a destination: send(dest='B', ...)";
        return Err(error(py, "AddressError", (why,)));
    };
    let wires = wires(slf)?;
    let channel = match looked_up(wires.channels.bind(py), dest)? {
        Some(channel) => channel,
        None if arguments.find(intern!(py, "src"))?.is_some() => return Err(src_given(py)),
        None => slf.call_method1(intern!(py, "_channel"), (dest,))?, // the first message to somebody
    };
    let buffering = slf.get().buffering.load(Ordering::Relaxed);
    match write(wires, &channel, arguments, buffering) {
        Err(failure) if errors::is(py, &failure, "PeerLost") => {
            // Another process may have taken its place.
            let heir = slf.call_method1(intern!(py, "_successor"), (dest, failure, channel))?;
            write(wires, &heir, arguments, buffering)?;
        }
        sent => sent?,
    }
    Ok(py.None().into_bound(py))
}

/// Send the named arguments on their way.
fn write<'py>(
    wires: &Wires,
    channel: &Bound<'py, PyAny>,
    arguments: &Arguments<'_, 'py>,
    buffering: u64,
) -> PyResult<()> {
    let channel = channel.cast_exact::<Channel>()?.get();
    let mut encoder = Encoder::new();
    encoder.set_context(wires.context);
    encoder.extend(channel.ends(), 2);
    for pair in arguments.named() {
        match pair? {
            ("dest", _) => {}
            ("src", _) => return Err(src_given(arguments.py)),
            (name, value) => encoder.add(name, value)?,
        }
    }
    channel.write(arguments.py, &encoder.gather(), buffering)
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
                return Err(errors::closed(py)); // and in a forked child the channels are the parent's
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

fn recv<'py>(slf: &Bound<'py, PyAny>, arguments: &Arguments<'_, 'py>) -> Outcome<'py> {
    let (slf, py) = (slf.cast::<Calls>()?, slf.py());
    here::mark(py)?;
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
    let again = Cell::new(false);
    let waiter = || {
        let template = arguments.dict("")?;
        let told = slf.call_method1(intern!(py, "_waiter"), (template,))?;
        again.set(told.is_none());
        told.extract()
    };
    let wait = || with_template(slf, arguments, |mut search| search.wait(py, timeout, waiter));
    let mut waited = wait();
    while again.take() {
        waited = wait();
    }
    match waited? {
        Waited::Taken(taken) => message(slf, taken),
        Waited::TimedOut => {
            polled(slf, "recv", given, arguments)?;
            let template = arguments.dict("")?;
            Err(PyErr::from_value(slf.call_method1(intern!(py, "_timed_out"), (given, template))?))
        }
    }
}

fn recv_nb<'py>(slf: &Bound<'py, PyAny>, arguments: &Arguments<'_, 'py>) -> Outcome<'py> {
    let (slf, py) = (slf.cast::<Calls>()?, slf.py());
    here::mark(py)?;
    arguments.no_positional("recv_nb")?;
    match with_template(slf, arguments, |mut search| search.take(py))? {
        Some(taken) => message(slf, taken),
        None => {
            polled(slf, "recv_nb", None, arguments)?;
            let template = arguments.dict("")?;
            Err(PyErr::from_value(slf.call_method1(intern!(py, "_would_block"), (template,))?))
        }
    }
}

fn peek<'py>(slf: &Bound<'py, PyAny>, arguments: &Arguments<'_, 'py>) -> Outcome<'py> {
    let (slf, py) = (slf.cast::<Calls>()?, slf.py());
    arguments.no_positional("peek")?;
    let found = with_template(slf, arguments, |mut search| search.peek(py))?;
    if found {
        wires(slf)?.core.shared().polls.end();
    } else {
        polled(slf, "peek", None, arguments)?;
    }
    Ok(pyo3::types::PyBool::new(py, found).to_owned().into_any())
}

/// A call has asked in vain: observers want to know, should it go on like that.
fn polled(
    slf: Me<'_, '_>,
    function: &str,
    timeout: Option<&Bound<'_, PyAny>>,
    arguments: &Arguments<'_, '_>,
) -> PyResult<()> {
    let (py, shared) = (slf.py(), wires(slf)?.core.shared());
    if shared.polled() {
        here::mark(py)?;
        let asked = (function, timeout, arguments.dict("")?);
        let about = slf.call_method1(intern!(py, "_polled"), asked);
        match about.and_then(|about| about.extract::<String>()) {
            Ok(about) => shared.tell_polls(&about),
            // A value that cannot be shown is no reason for the call to fail; Stop is.
            Err(failure) if failure.is_instance_of::<PyException>(py) => shared.tell_polls(""),
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

fn message<'py>(slf: Me<'_, 'py>, taken: sfm_native::matching::Taken) -> Outcome<'py> {
    let core = &wires(slf)?.core;
    Ok(Bound::new(slf.py(), received_message(core, taken))?.into_any())
}

/// Give `Calls` its methods.
pub fn add_calls(class: &Bound<'_, PyType>) -> PyResult<()> {
    let methods = [
        method!("send", send, "docs/send.txt"),
        method!("recv", recv, "docs/recv.txt"),
        method!("recv_nb", recv_nb, "docs/recv_nb.txt"),
        method!("peek", peek, "docs/peek.txt"),
    ];
    add_methods(class, &methods)
}
