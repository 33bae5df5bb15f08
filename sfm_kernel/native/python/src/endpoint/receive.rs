//! `recv`, `recv_nb`, `peek`, and the search for several templates at once.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString};
use smallvec::SmallVec;

use super::calls::{wires, Me, Wires};
use super::fastcall::{Arguments, Outcome};
use super::search::Waiting;
use crate::errors;
use crate::host::location;
use crate::host::python::PyHost;
use crate::packet::message::{queued_message, received_message, Message};
use crate::packet::template::Template;
use crate::transport::inbox::duration;
use sfm_native::calls::{deadline, Search};

/// Run `work` with the template that the named arguments form.
fn with_template<'py, T>(
    slf: Me<'_, 'py>,
    arguments: &Arguments<'_, 'py>,
    work: impl FnOnce(Search<'_, Template<'_, 'py>>) -> PyResult<T>,
) -> PyResult<T> {
    let wires = wires(slf)?;
    let src = canonical_src(slf, wires, arguments)?;
    let pairs = arguments.named().map(|argument| match (argument, &src) {
        (("src", _), Some(canonical)) => Ok(("src", canonical)),
        (argument, _) => Ok(argument),
    });
    let template = Template::new(pairs)?;
    work(Search::new(&wires.core, wires.context, template))
}

/// The process's name for a rank in `src=`: messages carry names.
fn canonical_src<'py>(
    slf: Me<'_, 'py>,
    wires: &Wires,
    arguments: &Arguments<'_, 'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = slf.py();
    match arguments.find("src") {
        Some(value) if value.is_exact_instance_of::<PyInt>() => {
            let core = &wires.core;
            if core.is_closed() {
                return Err(errors::closed(py)); // in a forked child the channels are the parent's
            }
            if core.shared().has_arrivals() {
                core.take_in();
            }
            // A new sender may have the rank of a process that has died.
            let senders = core.senders_total();
            let new_sender = wires.ranks_as_of.load(Ordering::Relaxed) != senders;
            match wires.ranks.bind(py).get_item(value)? {
                Some(known) if !new_sender => Ok(Some(known)),
                _ => {
                    let name = wires.hooks().canonical.bind(py).call1((slf, value, new_sender))?;
                    wires.ranks_as_of.store(senders, Ordering::Relaxed);
                    Ok(Some(name))
                }
            }
        }
        _ => Ok(None),
    }
}

pub fn recv<'py>(slf: Me<'_, 'py>, arguments: &Arguments<'_, 'py>) -> Outcome<'py> {
    let py = slf.py();
    location::mark(py)?;
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
    let hooks = wires(slf)?.hooks();
    let again = Cell::new(false);
    let waiter = || {
        let template = arguments.dict()?;
        let waiter = hooks.begin_wait.bind(py).call1((slf, template))?;
        again.set(waiter.is_none());
        waiter.extract()
    };
    let wait = || {
        with_template(slf, arguments, |mut search| {
            search.wait(&PyHost(py), deadline(timeout), Waiting::new(waiter))
        })
    };
    let mut waited = wait();
    while again.take() {
        waited = wait();
    }
    match waited? {
        Some(taken) => message(slf, taken),
        None => {
            polled(slf, "recv", given, arguments)?;
            let template = arguments.dict()?;
            Err(PyErr::from_value(hooks.timed_out.bind(py).call1((slf, given, template))?))
        }
    }
}

pub fn recv_nb<'py>(slf: Me<'_, 'py>, arguments: &Arguments<'_, 'py>) -> Outcome<'py> {
    let py = slf.py();
    location::mark(py)?;
    arguments.no_positional("recv_nb")?;
    match with_template(slf, arguments, |mut search| search.take(&PyHost(py)))? {
        Some(taken) => message(slf, taken),
        None => {
            polled(slf, "recv_nb", None, arguments)?;
            let template = arguments.dict()?;
            let would_block = wires(slf)?.hooks().would_block.bind(py);
            Err(PyErr::from_value(would_block.call1((slf, template))?))
        }
    }
}

pub fn peek<'py>(slf: Me<'_, 'py>, arguments: &Arguments<'_, 'py>) -> Outcome<'py> {
    let py = slf.py();
    arguments.no_positional("peek")?;
    let found = with_template(slf, arguments, |mut search| search.peek(&PyHost(py)))?;
    if found {
        wires(slf)?.core.shared().polls.end();
    } else {
        polled(slf, "peek", None, arguments)?;
    }
    Ok(pyo3::types::PyBool::new(py, found).to_owned().into_any())
}

/// A call has found nothing: if that happens repeatedly, publish it for observers.
fn polled(
    slf: Me<'_, '_>,
    function: &str,
    timeout: Option<&Bound<'_, PyAny>>,
    arguments: &Arguments<'_, '_>,
) -> PyResult<()> {
    let (py, wires) = (slf.py(), wires(slf)?);
    let shared = wires.core.shared();
    if shared.polled() {
        location::mark(py)?;
        let call = (slf, function, timeout, arguments.dict()?);
        let facts = wires.hooks().polled.bind(py).call1(call);
        match facts.and_then(|facts| facts.extract::<String>()) {
            Ok(facts) => shared.publish_polls(&facts),
            // A value that cannot be shown must not make the call fail; Stop must end it.
            Err(failure) if failure.is_instance_of::<PyException>(py) => shared.publish_polls(""),
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

fn message<'py>(slf: Me<'_, 'py>, taken: sfm_native::matching::Taken) -> Outcome<'py> {
    let source = wires(slf)?.source.bind(slf.py());
    Ok(Bound::new(slf.py(), received_message(source, taken))?.into_any())
}

/// See `Calls::_any`.
pub fn find_any(
    slf: Me<'_, '_>,
    templates: &Bound<'_, PyList>,
    take: bool,
) -> PyResult<Option<(usize, Py<Message>)>> {
    let py = slf.py();
    location::mark(py)?;
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
    let natives: SmallVec<[_; 8]> = parsed.iter().map(|template| &template.native).collect();
    let found = wires.core.find_any(wires.context, &natives, take);
    let Some((nth, packet, taken)) = found else { return Ok(None) };
    wires.core.shared().polls.end();
    let message = match taken {
        Some(taken) => received_message(wires.source.bind(py), taken),
        None => queued_message(&packet),
    };
    Ok(Some((nth, Py::new(py, message)?)))
}
