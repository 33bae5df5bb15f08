//! Outflow: the account of one peer, where the transport itself does not count.

use std::sync::Arc;

use pyo3::prelude::*;

use super::blocked::{Blocked, TICK};
use super::detached::{without_gil, InCall};
use super::encode::PyPacket;
use super::errors::{closed, unfit};
use super::here;
use super::inbox::Inbox;
use super::segment::parse_uid;
use crate::bell::Woken;
use crate::core::{packet_from, Core};
use crate::outflow::Outflow;
use crate::packet::{account, context_of, cost};
use crate::segment::Doing;

/// The accounts of one peer: bytes sent and not yet received there.
#[pyclass(name = "Outflow", module = "sfm_kernel._native", frozen)]
pub struct PyOutflow {
    pub outflow: Arc<Outflow>,
    peer: String,
}

/// What observers are told of a wait for `peer`, as Python writes its name.
pub fn facts_of_send(peer: &str) -> String {
    format!("{{\"kind\": \"send\", \"peer\": {}}}", quoted(peer))
}

/// A text in JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for one in text.chars() {
        match one {
            '"' | '\\' => quoted.extend(['\\', one]),
            one if one.is_control() => quoted.push_str(&format!("\\u{:04x}", one as u32)),
            one => quoted.push(one),
        }
    }
    quoted.push('"');
    quoted
}

/// Wait until `ready()` gives something: interruptible, checking on the peer, seen by observers.
/// `seen()`: what the peer had taken when it was not ready; UNSETTLED where the peer need not
/// receive anything for it to become so.
#[expect(clippy::too_many_arguments, reason = "what a wait has")]
pub fn block_until<T>(
    py: Python<'_>,
    core: &Core,
    text: &str,
    peer: &str,
    check: &Bound<'_, PyAny>,
    seen: impl Fn() -> u64,
    mut ready: impl FnMut() -> Option<T>,
    mut wait: impl FnMut() -> Woken + Send,
) -> PyResult<T> {
    let mut blocked = Blocked::enter(core, Doing::Sending, text, &facts_of_send(peer), None);
    loop {
        if core.is_closed() {
            return Err(closed(py));
        }
        let examined = seen();
        if let Some(result) = ready() {
            return Ok(result);
        }
        blocked.judged(py)?;
        blocked.settle_send(examined);
        let woken = without_gil(py, &mut wait);
        if woken == Woken::Signal {
            py.check_signals()?;
        }
        if blocked.ticks(TICK) {
            py.check_signals()?;
            check.call0()?;
            blocked.tell(py, None)?;
        }
    }
}

#[pymethods]
impl PyOutflow {
    #[new]
    fn new(inbox: &Bound<'_, Inbox>, peer: &str, uid: &str) -> PyResult<PyOutflow> {
        let outflow = Arc::new(Outflow::new(inbox.get().core.clone(), parse_uid(uid)?));
        Ok(PyOutflow { outflow, peer: peer.to_owned() })
    }

    /// Wait for credit, and put the packet into `inbox`. One call, so that nothing that interrupts
    /// comes between the counting and the delivery.
    fn send(
        &self,
        py: Python<'_>,
        inbox: &Bound<'_, Inbox>,
        lane: u32,
        packet: &Bound<'_, PyPacket>,
        buffering: u64,
        check: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        here::mark(py)?;
        let outflow = &self.outflow;
        let core = outflow.core();
        let peer = &inbox.get().core;
        let nbytes = packet.get().packet.len();
        let bytes = packet.get().packet.whole().expect("packed into one place");
        let (account, cost) = (account(context_of(bytes)), cost(nbytes));
        if core.is_closed() {
            return Err(closed(py));
        }
        if !outflow.try_acquire(account, cost, buffering) {
            let text = format!("room at {} for {nbytes} bytes", self.peer);
            let ready = || outflow.try_acquire(account, cost, buffering).then_some(());
            let wait = || {
                core.wait_as_sender(TICK, || {
                    outflow.may_acquire(account, cost, buffering) || core.is_closed()
                })
            };
            let seen = || outflow.all_taken();
            block_until(py, core, &text, &self.peer, check, seen, ready, wait)?;
        }
        if peer.is_closed() {
            outflow.release(account, cost);
            check.call0()?;
            return Err(closed(py));
        }
        let copy = packet_from(bytes).map_err(|why| {
            outflow.release(account, cost);
            unfit(py, why)
        })?;
        // One step with the counting, under the GIL: no other thread's packet comes between.
        peer.deliver(lane, Arc::new(copy), false);
        outflow.count(nbytes, bytes);
        if buffering == 0 {
            self.drain(py, account, check)?;
        }
        Ok(())
    }
}

impl PyOutflow {
    /// Wait until all that was counted on an account is received.
    fn drain(&self, py: Python<'_>, account: usize, check: &Bound<'_, PyAny>) -> PyResult<()> {
        let outflow = &self.outflow;
        let core = outflow.core();
        let text = format!("{} to receive it (buffering=0)", self.peer);
        let ready = || (outflow.waiting(account) == 0).then_some(());
        let wait =
            || core.wait_as_sender(TICK, || outflow.waiting(account) == 0 || core.is_closed());
        let seen = || outflow.all_taken();
        block_until(py, core, &text, &self.peer, check, seen, ready, wait)
    }
}
