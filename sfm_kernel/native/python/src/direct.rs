//! The sends and receives of MPI's communicators, where they are simple: one process, one message,
//! and nothing else under way. What is not simple is left to methods of the Python class:
//! `_send_otherwise`, `_recv_otherwise`, `_Send_otherwise`, `_Recv_otherwise`, with the same
//! arguments; `_received(message, into, status)` and `_translated(error)`.
//!
//! A communicator's `_state` has `direct`, a `Direct`, which knows what these need.

use std::sync::atomic::Ordering;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

use super::calls::{waiter, wires};
use super::decode::value_of;
use super::encode::Encoder;
use super::ends::{send_memory, write, Direct};
use super::errors;
use super::fastcall::{add_methods, method, Arguments, Outcome};
use super::here;
use super::memory::{number, Memory};
use super::message::received_message;
use super::parts::{data_of, receive_parts, size_of_parts};
use super::search::{Search, Waited};
use super::template::Template;
use sfm_native::matching::Taken;

/// Where a simple call goes: None where Python has to look at it.
fn direct<'py>(slf: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Direct>>> {
    let py = slf.py();
    let state = slf.getattr(intern!(py, "_state"))?;
    if state.is_none() {
        return Ok(None);
    }
    let direct = state.getattr(intern!(py, "direct"))?.cast_into::<Direct>()?;
    let busy = direct.get().busy.get().0.load(Ordering::Relaxed);
    Ok((!busy).then_some(direct))
}

/// The arguments by their names' places; None where there is one too many or an unknown one.
fn named<'a, 'py, const N: usize>(
    arguments: &Arguments<'a, 'py>,
    names: [&Bound<'py, PyString>; N],
) -> PyResult<Option<[Option<&'a Bound<'py, PyAny>>; N]>> {
    let mut found = [None; N];
    if arguments.positional.len() > N {
        return Ok(None);
    }
    for (place, value) in arguments.positional.iter().enumerate() {
        found[place] = Some(value);
    }
    let mut left = arguments.values.len();
    if left > 0 {
        for (place, name) in names.iter().enumerate() {
            if let Some(value) = arguments.find(name)? {
                if found[place].replace(value).is_some() {
                    return Ok(None);
                }
                left -= 1;
            }
        }
    }
    Ok((left == 0).then_some(found))
}

/// Let Python do it, with the same arguments.
fn otherwise<'py>(
    slf: &Bound<'py, PyAny>,
    method: &Bound<'py, PyString>,
    arguments: &Arguments<'_, 'py>,
) -> Outcome<'py> {
    let positional = PyTuple::new(arguments.py, arguments.positional)?;
    let method = slf.getattr(method)?;
    if arguments.values.is_empty() {
        return method.call1(positional);
    }
    method.call(positional, Some(&arguments.dict("")?))
}

/// Our errors become those of MPI.
fn translated<'py>(slf: &Bound<'py, PyAny>, outcome: Outcome<'py>) -> Outcome<'py> {
    match outcome {
        Err(failure) if errors::is_ours(slf.py(), &failure) => {
            let value = failure.into_value(slf.py());
            slf.call_method1(intern!(slf.py(), "_translated"), (value,))
        }
        outcome => outcome,
    }
}

// ---- sending ----

fn send<'py>(slf: &Bound<'py, PyAny>, arguments: &Arguments<'_, 'py>) -> Outcome<'py> {
    let py = slf.py();
    here::mark(py)?;
    let names = [intern!(py, "obj"), intern!(py, "dest"), intern!(py, "tag")];
    if let (Some(direct), Some([Some(obj), Some(dest), tag])) =
        (direct(slf)?, named(arguments, names)?)
    {
        if let (Some(dest), Some(tag)) = (number(Some(dest), -1), number(tag, 0)) {
            let direct = direct.get();
            let buffering = direct.context.get().get_buffering();
            let fill = |encoder: &mut Encoder<'py>| encoder.add("obj", obj);
            let sent = write(direct, py, dest, tag, buffering, fill);
            match sent {
                Ok(true) => return Ok(py.None().into_bound(py)),
                Ok(false) => {}
                Err(failure) => return translated(slf, Err(failure)),
            }
        }
    }
    otherwise(slf, intern!(py, "_send_otherwise"), arguments)
}

#[expect(non_snake_case, reason = "MPI's name")]
fn Send<'py>(slf: &Bound<'py, PyAny>, arguments: &Arguments<'_, 'py>) -> Outcome<'py> {
    let py = slf.py();
    here::mark(py)?;
    let names = [intern!(py, "buf"), intern!(py, "dest"), intern!(py, "tag")];
    if let (Some(direct), Some([Some(buf), Some(dest), tag])) =
        (direct(slf)?, named(arguments, names)?)
    {
        if let (Some(dest), Some(tag), Some(memory)) =
            (number(Some(dest), -1), number(tag, 0), Memory::of(buf)?)
        {
            let direct = direct.get();
            let buffering = direct.context.get().get_buffering();
            match send_memory(direct, py, dest, tag, &memory, buffering) {
                Ok(true) => return Ok(py.None().into_bound(py)),
                Ok(false) => {}
                Err(failure) => return translated(slf, Err(failure)),
            }
        }
    }
    otherwise(slf, intern!(py, "_Send_otherwise"), arguments)
}

// ---- receiving ----

fn recv<'py>(slf: &Bound<'py, PyAny>, arguments: &Arguments<'_, 'py>) -> Outcome<'py> {
    let py = slf.py();
    here::mark(py)?;
    let names =
        [intern!(py, "buf"), intern!(py, "source"), intern!(py, "tag"), intern!(py, "status")];
    if let (Some(direct), Some([buf, source, tag, status])) =
        (direct(slf)?, named(arguments, names)?)
    {
        if buf.is_some_and(|buf| !buf.is_none()) {
            return otherwise(slf, intern!(py, "_recv_otherwise"), arguments);
        }
        let direct = direct.get();
        match translated_take(slf, direct, source, tag)? {
            None => {}
            Some(taken) => {
                let simple = status.is_none_or(|status| status.is_none())
                    && taken.packet.find("transfer").is_none();
                if let (true, Some(one)) = (simple, taken.packet.find("obj")) {
                    return value_of(py, &taken.packet, &one);
                }
                return received(slf, direct, taken, None, status);
            }
        }
    }
    otherwise(slf, intern!(py, "_recv_otherwise"), arguments)
}

#[expect(non_snake_case, reason = "MPI's name")]
fn Recv<'py>(slf: &Bound<'py, PyAny>, arguments: &Arguments<'_, 'py>) -> Outcome<'py> {
    let py = slf.py();
    here::mark(py)?;
    let names =
        [intern!(py, "buf"), intern!(py, "source"), intern!(py, "tag"), intern!(py, "status")];
    if let (Some(direct), Some([Some(buf), source, tag, status])) =
        (direct(slf)?, named(arguments, names)?)
    {
        let direct = direct.get();
        if Memory::of(buf)?.is_some_and(|memory| memory.writable) {
            if let Some(taken) = translated_take(slf, direct, source, tag)? {
                // Looked at again: another thread may have changed the list while this one slept.
                let memory = Memory::of(buf)?.filter(|memory| memory.writable);
                let simple = status.is_none_or(|status| status.is_none())
                    && taken.packet.find("transfer").is_none();
                let size = size_of_parts(&taken.packet);
                if let (true, Some(memory), Some(size)) = (simple, &memory, size) {
                    if size <= memory.length {
                        let parts = direct.parts.bind(py);
                        // SAFETY: an array's memory of at least this size, held by the caller.
                        let done =
                            unsafe { receive_parts(py, parts, &taken.packet, memory.at, size) };
                        let none = py.None().into_bound(py);
                        return translated(slf, done.map(|()| none));
                    }
                }
                let simple = simple && size.is_none();
                if let (true, Some(memory), Some(data)) = (simple, memory, data_of(&taken.packet)) {
                    if data.len() <= memory.length {
                        // SAFETY: an array's memory of at least this length, held by the caller; a
                        // packet is no array's memory that anybody writes.
                        unsafe {
                            std::ptr::copy_nonoverlapping(data.as_ptr(), memory.at, data.len());
                        }
                        return Ok(py.None().into_bound(py));
                    }
                }
                return received(slf, direct, taken, Some(buf), status);
            }
        }
    }
    otherwise(slf, intern!(py, "_Recv_otherwise"), arguments)
}

/// Wait for a message; None where Python has to look at the arguments.
fn translated_take<'py>(
    slf: &Bound<'py, PyAny>,
    direct: &Direct,
    source: Option<&Bound<'py, PyAny>>,
    tag: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Taken>> {
    take(slf.py(), direct, source, tag).or_else(|failure| {
        translated(slf, Err(failure))?;
        Err(PyTypeError::new_err("_translated raises"))
    })
}

fn take<'py>(
    py: Python<'py>,
    direct: &Direct,
    source: Option<&Bound<'py, PyAny>>,
    tag: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Taken>> {
    let (Some(from), Some(tag_number)) =
        (number(source, direct.any_source), number(tag, direct.any_tag))
    else {
        return Ok(None);
    };
    let peers = direct.peers.bind(py);
    let src = match from {
        any if any == direct.any_source => None,
        rank if rank >= 0 && rank < peers.len() as i64 => Some(peers.get_item(rank as usize)?),
        _ => return Ok(None),
    };
    let tag = match (tag, tag_number) {
        (_, any) if any == direct.any_tag => None,
        (Some(tag), 0..) => Some(tag),
        _ => return Ok(None),
    };
    let context = direct.context.bind(py);
    let wires = wires(context)?;
    let wanted = [("src", src.as_ref()), ("tag", tag)];
    let pairs = wanted.into_iter().filter_map(|(name, value)| Some(Ok((name, value?))));
    let mut search = Search::new(&wires.core, wires.context, Template::new(pairs)?);
    let waiter = || {
        let given = wanted.into_iter().filter_map(|(name, value)| Some((name, value?)));
        waiter(context, given)
    };
    match search.wait(py, None, waiter)? {
        Waited::Taken(taken) => Ok(Some(taken)),
        Waited::TimedOut => unreachable!("no timeout"),
    }
}

/// Let Python take a message in that is not simple.
fn received<'py>(
    slf: &Bound<'py, PyAny>,
    direct: &Direct,
    taken: Taken,
    into: Option<&Bound<'py, PyAny>>,
    status: Option<&Bound<'py, PyAny>>,
) -> Outcome<'py> {
    let py = slf.py();
    let message = Bound::new(py, received_message(&wires(direct.context.bind(py))?.core, taken))?;
    let outcome = slf.call_method1(intern!(py, "_received"), (&message, into, status));
    if outcome.is_err() {
        message.get().put_back(); // Stop, or a wrong argument, came before anybody looked at it
    }
    outcome
}

/// Give a Python class of communicators `send`, `recv`, `Send` and `Recv`.
#[pyfunction]
pub fn add_direct(class: &Bound<'_, PyType>) -> PyResult<()> {
    let methods = [
        method!("send", send, "docs/mpi_send.txt"),
        method!("recv", recv, "docs/mpi_recv.txt"),
        method!("Send", Send, "docs/mpi_Send.txt"),
        method!("Recv", Recv, "docs/mpi_Recv.txt"),
    ];
    add_methods(class, &methods)
}
