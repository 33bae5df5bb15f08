//! The native side of a route, as `send` uses it.

use pyo3::prelude::*;

use super::ringsender::RingSender;
use super::zmqsender::ZmqSender;
use crate::packet::Gather;

pub enum Way<'a> {
    Ring(&'a RingSender),
    Zmq(&'a ZmqSender),
}

impl<'a> Way<'a> {
    pub fn of(sender: &'a Bound<'_, PyAny>) -> PyResult<Way<'a>> {
        match sender.cast_exact::<RingSender>() {
            Ok(ring) => Ok(Way::Ring(ring.get())),
            Err(_) => Ok(Way::Zmq(sender.cast_exact::<ZmqSender>()?.get())),
        }
    }

    /// The attributes `dest` and `src` of every message that goes this way, two of them.
    pub fn ends(&self) -> &[u8] {
        match self {
            Way::Ring(ring) => ring.ends(),
            Way::Zmq(zmq) => zmq.ends(),
        }
    }

    /// See `Route.send`.
    pub fn write(&self, py: Python<'_>, packet: &Gather<'_>, buffering: u64) -> PyResult<()> {
        match self {
            Way::Ring(ring) => ring.write(py, packet, buffering),
            Way::Zmq(zmq) => zmq.write(py, packet, buffering),
        }
    }
}
