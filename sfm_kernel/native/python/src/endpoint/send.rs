//! `send`.

use pyo3::prelude::*;

use super::calls::{looked_up, wires, Me, Wires};
use super::fastcall::{Arguments, Outcome};
use crate::errors::{self, error};
use crate::host::location;
use crate::packet::encode::Encoder;
use crate::transport::channel::Channel;

pub fn send<'py>(slf: Me<'_, 'py>, arguments: &Arguments<'_, 'py>) -> Outcome<'py> {
    let py = slf.py();
    arguments.no_positional("send")?;
    let Some(dest) = arguments.find("dest") else {
        let why = "send needs a destination: send(dest='B', ...)";
        return Err(error(py, "AddressError", (why,)));
    };
    let wires = wires(slf)?;
    let channel = match looked_up(wires.channels.bind(py), dest)? {
        Some(channel) => channel,
        None if arguments.find("src").is_some() => return Err(src_given(py)),
        None => {
            location::mark(py)?;
            wires.hooks().channel.bind(py).call1((slf, dest))? // the first message to `dest`
        }
    };
    let buffering = slf.get().get_buffering();
    match write(wires, &channel, arguments, buffering) {
        Err(failure) if errors::is(py, &failure, "PeerLost") => {
            // Another process may have replaced it.
            let successor =
                wires.hooks().successor.bind(py).call1((slf, dest, failure, channel))?;
            write(wires, &successor, arguments, buffering)?;
        }
        sent => sent?,
    }
    Ok(py.None().into_bound(py))
}

/// Send the named arguments through the channel.
fn write<'py>(
    wires: &Wires,
    channel: &Bound<'py, PyAny>,
    arguments: &Arguments<'_, 'py>,
    buffering: u64,
) -> PyResult<()> {
    let channel = channel.cast_exact::<Channel>()?.get();
    let mut encoder = Encoder::new();
    encoder.plain = channel.plain;
    encoder.set_context(wires.context);
    encoder.extend(channel.ends(), 2);
    for argument in arguments.named() {
        match argument {
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
