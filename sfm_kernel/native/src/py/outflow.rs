//! Outflow: the account of one peer, where the transport itself does not count.

use std::sync::Arc;

use pyo3::prelude::*;

use super::blocked::{Blocked, TICK};
use super::errors::closed;
use super::inbox::Inbox;
use super::segment::parse_uid;
use crate::bell::Woken;
use crate::core::Core;
use crate::outflow::Outflow;
use crate::packet::cost;
use crate::segment::Doing;

/// The account of one peer: bytes sent and not yet received there.
#[pyclass(name = "Outflow", module = "sfm_kernel._native", frozen)]
pub struct PyOutflow {
    pub outflow: Arc<Outflow>,
    peer: String,
}

/// Wait until `ready()` gives something: interruptible, checking on the peer, seen by observers.
pub fn block_until<T>(
    py: Python<'_>,
    core: &Core,
    text: &str,
    check: &Bound<'_, PyAny>,
    mut ready: impl FnMut() -> Option<T>,
    mut wait: impl FnMut() -> Woken + Send,
) -> PyResult<T> {
    let mut blocked = Blocked::enter(core, Doing::Sending, text);
    loop {
        if core.is_closed() {
            return Err(closed(py));
        }
        if let Some(result) = ready() {
            return Ok(result);
        }
        let woken = py.detach(&mut wait);
        if woken == Woken::Signal {
            py.check_signals()?;
        }
        if blocked.ticks(TICK) {
            py.check_signals()?;
            check.call0()?;
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

    /// True if the receiver should acknowledge this packet at once.
    fn acquire(
        &self,
        py: Python<'_>,
        nbytes: usize,
        buffering: u64,
        check: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let outflow = &self.outflow;
        let core = outflow.core();
        if core.is_closed() {
            return Err(closed(py));
        }
        let cost = cost(nbytes);
        if !outflow.try_acquire(cost, buffering) {
            let text = format!("room at {} for {nbytes} bytes", self.peer);
            let ready = || outflow.try_acquire(cost, buffering).then_some(());
            let wait = || {
                core.spin_then_sleep(TICK, || {
                    outflow.may_acquire(cost, buffering) || core.is_closed()
                })
            };
            block_until(py, core, &text, check, ready, wait)?;
        }
        Ok(outflow.waiting() > buffering / 2)
    }

    fn drain(&self, py: Python<'_>, check: &Bound<'_, PyAny>) -> PyResult<()> {
        let outflow = &self.outflow;
        let core = outflow.core();
        let text = format!("{} to receive it (buffering=0)", self.peer);
        let ready = || (outflow.waiting() == 0).then_some(());
        let wait = || core.spin_then_sleep(TICK, || outflow.waiting() == 0 || core.is_closed());
        block_until(py, core, &text, check, ready, wait)
    }

    fn release(&self, nbytes: usize) {
        self.outflow.release(cost(nbytes));
    }

    fn credit(&self, total: u64) {
        self.outflow.credit(total);
    }

    /// Count a packet as handed over (its `acquire` went before).
    fn count(&self, nbytes: usize) {
        self.outflow.count(nbytes);
    }

    #[getter]
    fn waiting(&self) -> u64 {
        self.outflow.waiting()
    }
}
